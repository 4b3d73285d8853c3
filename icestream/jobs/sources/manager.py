"""Runs a source connector, any of them: in each turn its tasks read, and what they read goes to Kafka.

`jobs.build` makes a manager with `source_manager`; `cluster.reconciler` repeats its turns. In a turn
the tasks read (`api.source`), the records become bytes (`source_records`), a writer sends them and stores how
far the sources are (`source_writers`).
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import (
    FatalError,
    IcestreamError,
    OriginUnavailable,
    RecordRejected,
    RetriableError,
    SourceUnavailable,
)
from icestream.api.history import NobodyLooks, Observer
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import Source, SourceBatch, SourcePlugin
from icestream.api.source_settings import SOURCE_CONNECTOR
from icestream.api.status import Progress
from icestream.deadlines import Overdue, started
from icestream.jobs.offsets.formats import offset_key
from icestream.jobs.offsets.source_offsets import OffsetLocation
from icestream.jobs.sources.records import ConvertedBatch, SourcePath, source_path_from
from icestream.jobs.sources.telling import SourceTelling
from icestream.jobs.sources.writers import SourceWriter, open_writer
from icestream.records.records import Failure
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.25
_READ_SECONDS: Final = 600.0
_MOST_RECORDS: Final = 100_000
"""In one turn, of all tasks. A transaction costs as much as 10,000 records, so it may well hold many."""
_WAITING: Final = "records wait for Kafka, which does not answer; is the broker up?"


@dataclass(frozen=True)
class SourceJob:
    """What the connector's config says about its turns."""

    name: str
    commit_seconds: float
    """How long records may wait for their offsets; 0: a commit in each turn."""
    tolerates_all: bool
    logs_rejects: bool


def source_manager(
    name: str,
    plugin: SourcePlugin,
    config: Config,
    worker: Mapping[str, str],
    reached: Callable[[str], None] = lambda point: None,
    observer: Observer | None = None,
) -> SourceManager:
    location = OffsetLocation(name, worker, config)
    common = SOURCE_CONNECTOR.parse({**config, "name": name})
    tasks = plugin.tasks(config, common["tasks.max"])
    if len(tasks) > common["tasks.max"]:
        raise FatalError(f"the connector made {len(tasks)} tasks, more than tasks.max={common['tasks.max']}")
    interval = float(worker.get("offset.flush.interval.ms", "60000")) / 1000
    job = SourceJob(
        name,
        commit_seconds=0.0 if location.is_exactly_once else interval,
        tolerates_all=common["errors.tolerance"] == "all",
        logs_rejects=common["errors.log.enable"],
    )
    sources = [plugin.open(task) for task in tasks]
    path = source_path_from(config)
    return SourceManager(
        job, sources, path, lambda: open_writer(location, reached), reached=reached, observer=observer
    )


class SourceManager:
    """One per source connector. All its tasks share one writer, so on an exactly-once worker a turn is one
    transaction, whatever the number of tasks. After a failure a new writer says where the sources go on."""

    def __init__(
        self,
        job: SourceJob,
        sources: Sequence[Source],
        path: SourcePath,
        open_writer: Callable[[], SourceWriter],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        reached: Callable[[str], None] = lambda point: None,
        observer: Observer | None = None,
    ) -> None:
        self._telling = SourceTelling(job.name, len(sources), observer or NobodyLooks(), clock, wall)
        self._job = job
        self._sources = sources
        self._path = path
        self._open_writer = open_writer
        self._clock = clock
        self._wall = wall
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._writer: SourceWriter | None = None
        self._unsaved: dict[bytes, OffsetEntry] = {}
        self._committed_at = 0.0
        self.progress = Progress()
        """How far the job is; replaced as a whole, so other threads may read it."""

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""
        try:
            writer = self._opened()
            found, errors = self._read() if writer.has_room else ([], [])
            began = self._clock()
            for converted, after in found:
                self._send(writer, converted, after)
            self._telling.sent(self._clock() - began)
            if self._is_commit_due(now=not found or bool(errors)):
                self._commit(writer)
            if errors:
                # What the other tasks read has been sent by now.
                raise self._worst(errors)
        except BaseException as error:
            self._telling.gave_up(error)
            self._give_up()
            raise
        return 0.0 if found else _POLL_SECONDS

    def close(self) -> None:
        """Save what was sent; what Kafka cannot take now is read again by the next job."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                self._commit(writer)
                writer.close()
        except IcestreamError as error:
            self._telling.gave_up(error)
            _log.warning("the last offsets were not saved: %s", error, extra=self._context())
            if writer is not None:
                writer.abandon()
        finally:
            for source in self._sources:
                source.close()

    def cancel(self) -> None:
        """Turns are short: there is nothing to give up."""

    def allow(self) -> None:
        """There was nothing to give up."""

    def _opened(self) -> SourceWriter:
        if self._writer is None:
            writer = self._open_writer()
            try:
                stored = writer.stored()
                for task, source in enumerate(self._sources):
                    self._seek(task, source, stored)
            except BaseException:
                writer.abandon()
                raise
            self._writer = writer
            self._committed_at = self._clock()
        return self._writer

    def _seek(self, task: int, source: Source, stored: Sequence[OffsetEntry]) -> None:
        try:
            source.seek(stored)
        except Exception as error:
            raise self._named(error, task) from error.__cause__

    def _read(self) -> tuple[list[tuple[ConvertedBatch, Sequence[OffsetEntry]]], list[Exception]]:
        """What each task read, as bytes, with its offsets; and the errors of the tasks that failed."""
        found, errors = [], []
        for task, result in enumerate(self._reads()):
            try:
                began = self._clock()
                batch = result()
                self._telling.has_read(self._clock() - began)
                if batch is not None:
                    self._reached("read")
                    found.append((self._converted(batch), batch.after))
            except Exception as error:  # raised by the turn, once the other tasks have had theirs
                errors.append(self._named(error, task))
        return found, errors

    def _reads(self) -> list[Callable[[], SourceBatch | None]]:
        """One result per task; several tasks read at the same time."""
        limit = max(1, _MOST_RECORDS // max(1, len(self._sources)))
        calls = [partial(source.read, limit) for source in self._sources]
        if len(calls) == 1:
            return list(calls)
        results = [started(call, f"{self._job.name}-{task}") for task, call in enumerate(calls)]
        return [partial(_awaited, result, task) for task, result in enumerate(results)]

    def _converted(self, batch: SourceBatch) -> ConvertedBatch:
        began = self._clock()
        self._telling.found()
        converted = self._path.convert(batch.records)
        seconds = self._clock() - began
        if converted.failed:
            self._set_aside(list(converted.failed.values()))
        # Not before: of a batch that is not sent nothing may count, though others are committed in this turn.
        self._telling.converted(batch, converted, seconds)
        return converted

    def _set_aside(self, failures: Sequence[Failure]) -> None:
        first = failures[0]
        if not self._job.tolerates_all:
            raise RecordRejected(
                f"{first.reason} ({first.stage}); change the converter or the transform, or set "
                "errors.tolerance=all to go on without these records"
            )
        self.progress = replace(self.progress, rejected=self.progress.rejected + len(failures))
        if self._job.logs_rejects:
            _log.error(
                "%d records were left out, the first: %s (%s)",
                len(failures),
                first.reason,
                first.stage,
                extra=self._context(),
            )

    def _send(self, writer: SourceWriter, converted: ConvertedBatch, after: Sequence[OffsetEntry]) -> None:
        for outgoing in converted.outgoing:
            writer.send(outgoing)
            topics = dict.fromkeys((*self.progress.topics, outgoing.topic))
            self.progress = replace(
                self.progress, topics=tuple(topics), rows=self.progress.rows + len(outgoing)
            )
        self._unsaved |= {offset_key(self._job.name, entry.partition): entry for entry in after}

    def _is_commit_due(self, *, now: bool) -> bool:
        return now or self._clock() - self._committed_at >= self._job.commit_seconds

    def _commit(self, writer: SourceWriter) -> None:
        if not self._unsaved:
            return
        began = self._clock()
        if not writer.commit(list(self._unsaved.values())):
            self.progress = replace(self.progress, warnings=(_WAITING,))
            return
        self._telling.committed(self._clock() - began)
        self._unsaved = {}
        self._committed_at = self._clock()
        self.progress = replace(
            self.progress,
            warnings=(),
            batches=self.progress.batches + 1,
            last_commit_ms=int(self._wall().timestamp() * 1000),
        )

    def _give_up(self) -> None:
        """The next turn opens a new writer and asks it how far the sources are."""
        self._unsaved = {}
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.abandon()

    def _named(self, error: Exception, task: int) -> Exception:
        """The same error; of a connector with several tasks, its message says which of them failed. What is
        away for a source is what it reads, and not Kafka."""
        if type(error) is SourceUnavailable:
            error = OriginUnavailable(str(error)).with_traceback(error.__traceback__)
        if len(self._sources) > 1:
            if isinstance(error, IcestreamError):
                error.args = (f"task {task}: {error}",)
            else:
                error.add_note(f"in task {task} of connector '{self._job.name}'")
        return error

    def _worst(self, errors: Sequence[Exception]) -> Exception:
        """The one that a new attempt does not mend, if there is one; the others are in the log."""
        worst = next((error for error in errors if not isinstance(error, RetriableError)), errors[0])
        for error in errors:
            if error is not worst:
                _log.warning("%s", error, extra=self._context())
        return worst

    def _context(self) -> dict[str, str]:
        return {"connector": self._job.name}


def _awaited(result: Callable[[float], SourceBatch | None], task: int) -> SourceBatch | None:
    try:
        with waiting_for(f"task {task} to read"):
            return result(_READ_SECONDS)
    except Overdue:
        # Not to be tried again: the call that hangs still has the source.
        raise FatalError(f"its source has not answered for {_READ_SECONDS:.0f} s; restart it") from None
