"""One turn of a source job: read a slice with fixed ends, convert it, send it, and remember where it ended.

Repeated by `jobs.job_thread`; built by `jobs.build`.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icestream.api.errors import IcestreamError, RecordRejected
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import Source, SourceSlice
from icestream.api.status import Progress
from icestream.jobs.source_outlets import Outlet
from icestream.jobs.source_records import LeftOut, Ready
from icestream.kafka.bulk_producer import Outgoing

_log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.25
_WAITING: Final = "records wait for Kafka, which does not answer; is the broker up?"


@dataclass(frozen=True)
class SourceJob:
    name: str
    rows: int
    """How many records a slice has at most."""
    commit_seconds: float
    """How long records may wait for their offset; 0: a commit for each slice."""
    tolerates_all: bool
    logs_rejects: bool


class SourceManager:
    """One per source connector; after every failure a new outlet is opened, and asked where to go on."""

    def __init__(
        self,
        job: SourceJob,
        source: Source,
        ready: Callable[[SourceSlice], Ready],
        ensure_topic: Callable[[str], None],
        open_outlet: Callable[[], Outlet],
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._job = job
        self._source = source
        self._ready = ready
        self._ensure_topic = ensure_topic
        self._open_outlet = open_outlet
        self._clock = clock
        self._wall = wall
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._outlet: Outlet | None = None
        self._unsaved: OffsetEntry | None = None
        self._committed_at = 0.0
        self.progress = Progress()
        """How far the job is; replaced as a whole, so other threads may read it."""

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""
        try:
            outlet = self._opened()
            found = self._source.read(self._job.rows) if outlet.has_room else None
            if found is not None:
                self._send(outlet, found)
            if self._is_commit_due(idle=found is None):
                self._commit(outlet)
        except BaseException:
            self._give_up()
            raise
        return 0.0 if found is not None else _POLL_SECONDS

    def close(self) -> None:
        """Save what was sent; what Kafka cannot take now is read again by the next job."""
        outlet, self._outlet = self._outlet, None
        try:
            if outlet is not None:
                if self._unsaved is not None:
                    self._commit(outlet)
                outlet.close()
        except IcestreamError as error:
            _log.warning("the last offset was not saved: %s", error, extra=self._context())
            if outlet is not None:
                outlet.abandon()
        finally:
            self._source.close()

    def _opened(self) -> Outlet:
        if self._outlet is None:
            outlet = self._open_outlet()
            try:
                self._source.seek(outlet.stored())
            except BaseException:
                outlet.abandon()
                raise
            self._outlet = outlet
            self._committed_at = self._clock()
        return self._outlet

    def _send(self, outlet: Outlet, found: SourceSlice) -> None:
        self._reached("read")
        ready = self._ready(found)
        if ready.left_out:
            self._set_aside(list(ready.left_out.values()))
        for outgoing in ready.outgoing:
            self._send_to(outlet, outgoing)
        self._unsaved = found.after

    def _send_to(self, outlet: Outlet, outgoing: Outgoing) -> None:
        if outgoing.topic not in self.progress.topics:
            self._ensure_topic(outgoing.topic)
        outlet.send(outgoing)
        self._note_topic(outgoing.topic)
        self.progress = replace(self.progress, rows=self.progress.rows + len(outgoing))

    def _set_aside(self, left_out: Sequence[LeftOut]) -> None:
        first = left_out[0]
        if not self._job.tolerates_all:
            raise RecordRejected(
                f"{first.reason} ({first.stage}); change the converter or the transform, or set "
                "errors.tolerance=all to go on without these records"
            )
        self.progress = replace(self.progress, rejected=self.progress.rejected + len(left_out))
        if self._job.logs_rejects:
            _log.error(
                "%d records were left out, the first: %s (%s)",
                len(left_out),
                first.reason,
                first.stage,
                extra=self._context(),
            )

    def _is_commit_due(self, *, idle: bool) -> bool:
        if self._unsaved is None:
            return False
        return idle or self._clock() - self._committed_at >= self._job.commit_seconds

    def _commit(self, outlet: Outlet) -> None:
        if self._unsaved is None:
            return
        if not outlet.commit([self._unsaved]):
            self.progress = replace(self.progress, warnings=(_WAITING,))
            return
        self._unsaved = None
        self._committed_at = self._clock()
        self.progress = replace(
            self.progress,
            warnings=(),
            batches=self.progress.batches + 1,
            last_commit_ms=int(self._wall().timestamp() * 1000),
        )

    def _give_up(self) -> None:
        """Whatever happened, a new outlet asks again where the source stands."""
        self._unsaved = None
        if self._outlet is not None:
            outlet, self._outlet = self._outlet, None
            outlet.abandon()

    def _note_topic(self, topic: str) -> None:
        if topic not in self.progress.topics:
            self.progress = replace(self.progress, topics=(*self.progress.topics, topic))

    def _context(self) -> dict[str, str]:
        return {"connector": self._job.name}
