"""When the next batch of a job is due, and where it ends: by the clock, or when its files are full.

The sink manager asks its schedule at every turn, and tells it what became of the batch. `planning` has the
arithmetic of the clock, `filling` that of files.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping

from icestream.api.batch import Batch, BatchResult, Left
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.batches import planning
from icestream.jobs.sinks.batches.filling import FillSchedule, NextBatch
from icestream.jobs.sinks.batches.planning import Pace
from icestream.jobs.sinks.job import Limits, SinkJob


def schedule_of(job: SinkJob) -> BatchSchedule:
    return ByClock(job.limits) if job.filling is None else ByFiles(job.limits, FillSchedule(job.filling))


class BatchSchedule(ABC):
    """Of one job. It knows how large batches may be by those before."""

    holds_back = False
    """Whether records may wait for days: nobody looks after them until more come."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pace = Pace()

    @abstractmethod
    def next(self, start: Offsets, ends: Offsets, now: float, wall: dt.datetime) -> NextBatch | None:
        """The next batch, if it is due."""

    @abstractmethod
    def seconds(self, now: float, wall: dt.datetime) -> float | None:
        """How long until a batch is due although no record comes; None: never."""

    def waits_for(self, start: Offsets, ends: Offsets) -> str:
        """Why nothing happens although there are records, for the status."""
        return ""

    @abstractmethod
    def began(self, batch: Batch, due: NextBatch, wall: dt.datetime) -> None: ...

    def left(self, batch: Batch, left: Mapping[Partition, Left]) -> None:
        """What the writer of a batch has left of it."""
        return

    def was_too_large(self, batch: Batch, result: BatchResult) -> None:
        self._pace = planning.shrunk(self._pace, batch.span, result)

    def ended(self, batch: Batch, result: BatchResult, started: float, seconds: float, behind: bool) -> None:
        """The batch has landed; `behind`: there was more than it could take."""
        self._pace = Pace(
            last_start=started,
            behind=behind,
            rows_a_second=batch.span / seconds,
            bytes_a_row=result.bytes_read / batch.span if result.bytes_read else self._pace.bytes_a_row,
            rows_limit=planning.eased(self._pace, self._limits),
        )

    def _allowed(self) -> int:
        return planning.rows_allowed(self._pace, self._limits)


class ByClock(BatchSchedule):
    """A batch at every interval, and sooner if much is waiting."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._last_turn: Partition | None = None
        """The last partition of the batch before, if not all had their turn."""

    def next(self, start: Offsets, ends: Offsets, now: float, wall: dt.datetime) -> NextBatch | None:
        if not planning.is_due(now, planning.waiting(start, ends), self._pace, self._limits):
            return None
        return NextBatch(planning.cut(start, ends, self._allowed(), self._last_turn), may_leave=False)

    def seconds(self, now: float, wall: dt.datetime) -> float | None:
        return planning.until_due(now, self._pace, self._limits)

    def began(self, batch: Batch, due: NextBatch, wall: dt.datetime) -> None:
        self._last_turn = planning.last_of(batch, self._last_turn)


class ByFiles(BatchSchedule):
    """A batch when it fills files; what fills none waits, until its time is over."""

    holds_back = True

    def __init__(self, limits: Limits, files: FillSchedule) -> None:
        super().__init__(limits)
        self._files = files

    def next(self, start: Offsets, ends: Offsets, now: float, wall: dt.datetime) -> NextBatch | None:
        is_limited = self._pace.rows_limit is not None
        return self._files.next(start, ends, self._allowed(), wall, is_limited=is_limited)

    def seconds(self, now: float, wall: dt.datetime) -> float | None:
        return self._files.seconds(wall)

    def waits_for(self, start: Offsets, ends: Offsets) -> str:
        return self._files.told(start, ends)

    def began(self, batch: Batch, due: NextBatch, wall: dt.datetime) -> None:
        self._files.began(due, wall)

    def left(self, batch: Batch, left: Mapping[Partition, Left]) -> None:
        self._files.left(batch, left)
