"""What the manager of a source tells of its batches. A batch of a source is what was read between two commits
of its offsets: under way with the first record, over when Kafka has records and offsets.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from icestream.api.history import BatchRecord, Observer, Outcome, TargetCommit
from icestream.jobs.sinks.batches.telling import MOST_NOTE, harmless, outcome_of

if TYPE_CHECKING:
    from icestream.api.source import SourceBatch
    from icestream.jobs.sources.records import ConvertedBatch

_LOG = logging.getLogger(__name__)


@dataclass
class _UnderWay:
    id: str
    started: float
    started_ms: int
    read: int = 0
    bytes: int = 0
    written: Counter[str] = field(default_factory=Counter)
    """By topic."""
    newest_ms: dict[str, int] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    stages: dict[str, float] = field(default_factory=dict)

    def took(self, stage: str, seconds: float) -> None:
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds


class SourceTelling:
    """Of one job. Called by its thread."""

    def __init__(
        self,
        connector: str,
        tasks: int,
        observer: Observer,
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
    ) -> None:
        self._connector = connector
        self._tasks = tasks
        self._observer = observer
        self._clock = clock
        self._wall = wall
        self._now: _UnderWay | None = None
        self._reading = 0.0

    @harmless
    def has_read(self, seconds: float) -> None:
        """All tasks were asked in this turn."""
        self._reading += seconds

    @harmless
    def found(self) -> None:
        """There are records: a batch is under way, whatever becomes of it."""
        if self._now is None:
            self._begun()

    @harmless
    def converted(self, batch: SourceBatch, done: ConvertedBatch, seconds: float) -> None:
        """What was read is to be sent; what the turn fails for is not told: it is read again."""
        now = self._now or self._begun()
        now.read += sum(len(group) for group in batch.records)
        now.rejected.update(why.stage or "TASK_POLL" for why in done.failed.values())
        now.filtered.update(done.dropped.values())
        now.took("convert", seconds - done.transform_seconds)
        now.took("transform", done.transform_seconds)
        for outgoing in done.outgoing:
            now.written[outgoing.topic] += len(outgoing)
            now.bytes += _size(outgoing.values) + _size(outgoing.keys or ())
            times = [ms for ms in outgoing.timestamps or () if ms is not None and ms > 0]
            if times:
                newest = max(times)
                now.newest_ms[outgoing.topic] = max(newest, now.newest_ms.get(outgoing.topic, 0))

    @harmless
    def sent(self, seconds: float) -> None:
        if self._now is not None:
            self._now.took("stage", seconds)

    @harmless
    def committed(self, seconds: float) -> None:
        if self._now is not None:
            self._now.took("commit", seconds)
            self._end(Outcome.COMMITTED if self._now.written else Outcome.EMPTY)

    @harmless
    def gave_up(self, error: BaseException) -> None:
        """What was read since the last commit is read again."""
        if self._now is not None:
            self._end(outcome_of(error), (str(error) or type(error).__name__)[:MOST_NOTE])
        self._reading = 0.0

    # -- how --

    def _begun(self) -> _UnderWay:
        at_ms = int(self._wall().timestamp() * 1000)
        self._now = _UnderWay(str(uuid.uuid4()), self._clock(), at_ms)
        self._tell(BatchRecord(self._now.id, at_ms, Outcome.UNDER_WAY))
        return self._now

    def _end(self, outcome: Outcome, note: str = "") -> None:
        now, self._now = self._now, None
        assert now is not None
        stages = {"read": self._reading, **now.stages}
        self._reading = 0.0
        record = BatchRecord(
            now.id,
            now.started_ms,
            outcome,
            self._clock() - now.started,
            planned=now.read,
            tasks=self._tasks,
            stages=stages,
            note=note,
        )
        if record.landed:
            record = replace(
                record,
                read=now.read,
                # By the records that came in: a transform may make several of one.
                written=now.read - now.rejected.total() - now.filtered.total(),
                rejected=dict(now.rejected),
                filtered=dict(now.filtered),
                bytes=now.bytes,
                newest_ms=now.newest_ms,
                targets=_targets(now),
            )
        self._tell(record)

    def _tell(self, record: BatchRecord) -> None:
        try:
            self._observer.batch(self._connector, record)
        except Exception:  # an observer's edge
            _LOG.exception("nobody was told of a batch", extra={"connector": self._connector})


def _targets(now: _UnderWay) -> tuple[TargetCommit, ...]:
    """One for each topic; they share one commit."""
    seconds = now.stages.get("commit", 0.0)
    return tuple(TargetCommit(topic, now.id, rows, seconds) for topic, rows in sorted(now.written.items()))


def _size(column: Sequence[bytes | None]) -> int:
    return sum(map(len, filter(None, column)))
