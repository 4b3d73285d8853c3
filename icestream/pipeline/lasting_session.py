"""The worker's Spark session as something that may go away and come back. Used by the data plane.

A thread of its own looks at it and opens it again; jobs that ask meanwhile hear that it is away, as they
would of any other outage.
"""

from __future__ import annotations

import atexit
import datetime as dt
import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from pyspark.sql import SparkSession

from icestream.api.errors import EngineUnavailable
from icestream.api.status import Outage
from icestream.pipeline.session import words_of
from icestream.resilience.backoff import exponential

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 60.0
"""A JVM that collects garbage says nothing for seconds."""
_DOUBT_SECONDS: Final = 10.0
_LONGEST_WAIT: Final = 30.0


class Spark(Protocol):
    """How a session is opened, asked and let go of; `icestream.pipeline.session` has the real ways."""

    def open(self) -> SparkSession: ...

    def answers(self, session: SparkSession, seconds: float) -> bool: ...

    def let_go(self, session: SparkSession) -> None: ...

    def lacks_own_process(self) -> bool:
        """While there is no session: whether a process that only this worker has is what is missing."""


class LastingSession:
    """`turn` is one look of its thread."""

    def __init__(self, spark: Spark, wall: Callable[[], dt.datetime]) -> None:
        self._spark = spark
        self._wall = wall
        self._session = spark.open()
        self._outage: Outage | None = None
        self._failures = 0
        self._doubted = threading.Event()
        self._closing = threading.Event()

    def start(self) -> LastingSession:
        # Before Spark's own: a JVM that ends with this process is not missed.
        atexit.register(self.close)
        threading.Thread(target=self._run, name="spark-session", daemon=True).start()
        return self

    def close(self) -> None:
        self._closing.set()
        self._doubted.set()

    @property
    def outage(self) -> Outage | None:
        return self._outage

    def current(self) -> SparkSession:
        if (outage := self._outage) is not None:
            raise EngineUnavailable(str(outage))
        return self._session

    def has_lost(self, session: SparkSession) -> bool:
        """Asked after an error: whether it came of a session that is gone."""
        if session is not self._session or self._outage is not None:
            return True
        if self._spark.answers(session, _DOUBT_SECONDS):
            return False
        self._doubted.set()
        return True

    def turn(self) -> float:
        """Look, and open it again if it is gone. Returns how many seconds may pass before the next."""
        if self._outage is None:
            if self._spark.answers(self._session, _ANSWER_SECONDS) or self._closing.is_set():
                return _LOOK_SECONDS
            self._outage = self._away(self._wall(), "its process ended or does not answer")
            _LOG.error("%s; it is opened again", self._outage)
            self._failures = 0
        return self._open_again()

    def _open_again(self) -> float:
        try:
            self._spark.let_go(self._session)
            session = self._spark.open()
            if not self._spark.answers(session, _ANSWER_SECONDS):
                raise EngineUnavailable("a new session does not answer")
        except Exception as error:  # whatever Spark's start raises: it is tried again
            self._failures += 1
            wait = exponential(2.0, _LONGEST_WAIT, self._failures)
            reason = words_of(error).splitlines()[0]
            if self._outage is not None:
                self._outage = self._away(self._outage.since, reason)
            _LOG.warning("Spark could not be opened, again in %.0f s: %s", wait, reason)
            return wait
        self._session = session
        self._outage = None
        _LOG.info("Spark is there again")
        return _LOOK_SECONDS

    def _away(self, since: dt.datetime, reason: str) -> Outage:
        return Outage("Spark", since, reason, is_ours=self._spark.lacks_own_process())

    def _run(self) -> None:
        wait = _LOOK_SECONDS
        while True:
            self._doubted.wait(wait)
            self._doubted.clear()
            if self._closing.is_set():
                return
            try:
                wait = self.turn()
            except Exception:  # the thread's edge: without it nobody would open a session again
                _LOG.exception("a look at Spark failed")
                wait = _LOOK_SECONDS
