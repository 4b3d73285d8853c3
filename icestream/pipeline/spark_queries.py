"""Spark SQL for the commits of sinks, on the worker's Spark. Made by `spark_runner`, used by sinks.

Each piece of work borrows a session of its own: catalogs and the summaries of commits are settings of a
session, and jobs run side by side. Sessions are kept: each opens its catalog, with connections that nothing
closes, and the next batch need not wait for that.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from icestream.api.connector import SparkCatalog
from icestream.api.errors import Cancelled, EngineUnavailable, FatalError, RetriableError
from icestream.api.queries import Query, ReadPart
from icestream.deadlines import Overdue, within
from icestream.pipeline.lasting_session import LastingSession
from icestream.pipeline.session import words_of
from icestream.pipeline.task import settle_process
from icestream.waits import waiting_for

_LOG = logging.getLogger(__name__)

_T = TypeVar("_T")

_CANCEL_SECONDS: Final = 5.0
_SIGNS_OF_MISSING_JARS: Final = (
    "Cannot find catalog plugin class",
    "No suitable driver",
    "ClassNotFoundException",
    "NoClassDefFoundError",
)
_JAVA_CLASS: Final = re.compile(r"[a-z]\w*(\.[\w$]+)+(:|$)")
_LONGEST_QUERY: Final = 3600.0
"""Seconds: a table that takes longer to merge into needs smaller batches, or partitions."""


class SessionPool:
    """Sessions beside the worker's own, by their catalog; those of a Spark that is gone are forgotten."""

    def __init__(self, spark: LastingSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._origin: SparkSession | None = None
        self._free: dict[object, list[SparkSession]] = {}

    @contextmanager
    def borrowed(self, catalog: SparkCatalog, settings: Mapping[str, str]) -> Iterator[SparkSession]:
        origin = self._spark.current()
        key = (catalog.name, catalog.class_name, *sorted(catalog.properties.items()))
        with self._lock:
            if self._origin is not origin:
                self._origin, self._free = origin, {}
            kept = self._free.setdefault(key, [])
            session = kept.pop() if kept else None
        if session is None:
            session = _beside(origin)
            prefix = f"spark.sql.catalog.{catalog.name}"
            session.conf.set(prefix, catalog.class_name)
            for name, value in catalog.properties.items():
                session.conf.set(f"{prefix}.{name}", value)
        for name, value in settings.items():
            session.conf.set(name, value)
        yield session
        # Not after an error: nobody knows what it left in the session.
        for name in settings:
            session.conf.unset(name)
        with self._lock:
            if self._origin is origin:
                self._free[key].append(session)


def _beside(origin: SparkSession) -> SparkSession:
    """A session with settings of its own, on the same Spark; on a Spark Connect server it is a clone."""
    clone: Callable[[], SparkSession] | None = getattr(origin, "cloneSession", None)
    return clone() if clone is not None else origin.newSession()


class JobQueries:
    """The queries of one job; `cancel` may be called from another thread."""

    def __init__(
        self, spark: LastingSession, pool: SessionPool, tag: str, cancelled: threading.Event
    ) -> None:
        self._spark = spark
        self._pool = pool
        self._tag = f"{tag}-query"
        self._cancelled = cancelled
        """Of the job's batches."""
        self._running: dict[int, SparkSession] = {}

    def work(
        self, catalog: SparkCatalog, settings: Mapping[str, str], work: Callable[[Query], _T], doing: str
    ) -> _T:
        if self._cancelled.is_set():
            raise Cancelled("the batch was given up")
        origin = self._spark.current()
        try:
            with waiting_for(f"Spark: {doing}"), self._pool.borrowed(catalog, settings) as session:
                return self._tagged(session, work)
        except (RetriableError, FatalError):
            raise
        except (PySparkException, Py4JError) as error:
            # Not as the cause: the status of a connector is no place for hundreds of lines of Java's stack,
            # nor for what a catalog or an object store said to Java's client.
            raise self._told(error, catalog, doing) from None
        except Exception as error:
            # A session that is gone shows itself by errors of any kind.
            if self._spark.has_lost(origin):
                raise self._told(error, catalog, doing) from error
            raise

    def _tagged(self, session: SparkSession, work: Callable[[Query], _T]) -> _T:
        thread = threading.get_ident()
        session.addTag(self._tag)
        watchdog = threading.Timer(_LONGEST_QUERY, self._interrupt, [session])
        watchdog.daemon = True
        watchdog.start()
        self._running[thread] = session
        try:
            return work(_SessionQuery(session))
        finally:
            self._running.pop(thread, None)
            watchdog.cancel()
            # It cannot be told to a session that is gone, and must not hide what happened.
            with contextlib.suppress(Exception):
                session.removeTag(self._tag)

    def cancel(self) -> None:
        """End the queries that run; the caller has seen to it that none begins."""
        for session in list(self._running.values()):
            self._interrupt(session)

    def _interrupt(self, session: SparkSession) -> None:
        with contextlib.suppress(Overdue, PySparkException, OSError, Py4JError):
            within(_CANCEL_SECONDS, lambda: session.interruptTag(self._tag), "Spark: the end of a query")

    def _told(self, error: Exception, catalog: SparkCatalog, doing: str) -> Exception:
        if self._cancelled.is_set():
            return Cancelled("the batch was given up")
        words = _without_stack(error)
        _LOG.warning("%s failed; Spark says: %s", doing, "\n".join(words))
        if _lacks_a_class(words):
            return FatalError(
                f"{doing}: Spark lacks the classes of the catalog; set spark.jars.packages="
                f"{','.join(catalog.jars)} in the worker's config, or spark.jars to files of these"
            )
        if isinstance(error, AnalysisException):
            return FatalError(f"{doing}: Spark refuses it: {words[0]}")
        return EngineUnavailable(f"{doing}: the Spark job failed: {_gist(error, words)}")


def _without_stack(error: Exception) -> list[str]:
    """What Spark says, and the causes that it names, without the lines of Java's stack."""
    lines = [line.strip() for line in words_of(error).splitlines()]
    return [line for line in lines if line and not line.startswith(("at ", "... "))] or [type(error).__name__]


def _lacks_a_class(words: Sequence[str]) -> bool:
    return any(sign in line for line in words for sign in _SIGNS_OF_MISSING_JARS)


def _gist(error: Exception, words: Sequence[str]) -> str:
    """Of an error that Spark passes on from Java's libraries the class alone: others see the status."""
    if not isinstance(error, Py4JJavaError):
        return words[0]
    causes = [line.lstrip(": ").removeprefix("Caused by: ") for line in words[1:]]
    classes = [cause.partition(":")[0] for cause in causes if _JAVA_CLASS.match(cause)]
    return f"{classes[-1] if classes else 'an error of Java'} (its words are in the log of the worker)"


class _SessionQuery:
    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def run(self, statement: str) -> Sequence[Sequence[Any]]:
        return [tuple(row) for row in self._session.sql(statement).collect()]

    def view(self, name: str, columns: str, parts: int, read: ReadPart) -> None:
        rows = self._session.range(0, parts, 1, parts).mapInArrow(functools.partial(_read, read), columns)
        rows.createOrReplaceTempView(name)


def _read(read: ReadPart, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark calls this with the numbers of the parts to read."""
    settle_process()
    for batch in batches:
        for part in batch.column(0).to_pylist():
            yield from read(part)
