"""What is kept of a connector's batches: sums since it came to this worker, and windows. `collecting.py`
feeds it with every batch that a job tells of; `job_rows.py` reads it.

Sums do not go back to zero when a connector is restarted, as Kafka's do: they end when it leaves the worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icestream.api.history import BatchRecord, Outcome
from icestream.metrics.dialects.windows import Share, StateShares, Window, WindowSize

_RUNS_AGAIN: Final = frozenset({Outcome.RUN_AGAIN, Outcome.CUT, Outcome.UNAVAILABLE})
_DID_NOT_LAND: Final = frozenset({Outcome.FAILED, Outcome.UNAVAILABLE})
_LANDED: Final = frozenset({Outcome.COMMITTED, Outcome.EMPTY})
"""Batches whose records are behind the job: others are read again, and counted then."""


@dataclass
class Totals:
    """Sums over batches that landed, and counts of those that did not."""

    read: int = 0
    sent: int = 0
    """What was left after transforms and rejects."""
    written: int = 0
    bytes: int = 0
    rejected: int = 0
    letters: int = 0
    lost_letters: int = 0
    retries: int = 0
    commits: int = 0
    refused: int = 0
    """Commits that the target's compare-and-set refused."""
    attempts: int = 0
    last_error_ms: int = 0


class JobMeasures:
    """Of one connector. Not for two threads at once."""

    def __init__(self, size: WindowSize) -> None:
        self.totals = Totals()
        self.states = StateShares()
        self.read = Window(size)
        self.sent = Window(size)
        self.written = Window(size)
        self.bytes = Window(size)
        self.batch_sizes = Window(size)
        self.active = Window(size)
        self.completed = Window(size)
        self.refused = Window(size)
        self.stage_ms = Window(size)
        self.read_ms = Window(size)
        self.commit_ms = Window(size)
        self.commit_share = Share(size)
        self._under_way: dict[str, int] = {}

    @property
    def active_count(self) -> int:
        """Records that are read and not yet in the target."""
        return sum(self._under_way.values())

    def batch(self, record: BatchRecord, now_ms: int) -> None:
        if record.is_over:
            # What the last telling knew of: a batch that ends at once was not told before.
            self.active.record(max(record.read, self._under_way.pop(record.id, 0)), now_ms)
            self._ended(record, now_ms)
        else:
            # A job works on one batch at a time: whatever was under way has been given up.
            self._under_way = {record.id: record.read}
        self.active.record(self.active_count, now_ms)

    def _ended(self, record: BatchRecord, now_ms: int) -> None:
        if record.outcome in _LANDED:
            self._landed(record, now_ms)
        self._committed(record, now_ms)
        rejected = sum(record.rejected.values())
        if record.outcome in _RUNS_AGAIN:
            self.totals.retries += 1
        if record.outcome is Outcome.FAILED:
            self.totals.lost_letters += record.letters
        if record.outcome is Outcome.FAILED or (rejected and record.outcome in _LANDED):
            self.totals.last_error_ms = now_ms

    def _landed(self, record: BatchRecord, now_ms: int) -> None:
        rejected, filtered = sum(record.rejected.values()), sum(record.filtered.values())
        read = record.read
        if not read:
            return
        sent = max(0, read - rejected - filtered)
        totals = self.totals
        totals.read += read
        totals.sent += sent
        totals.written += record.written
        totals.bytes += record.bytes
        totals.rejected += rejected
        totals.letters += record.letters
        self.read.record(read, now_ms)
        self.sent.record(sent, now_ms)
        self.written.record(record.written, now_ms)
        self.bytes.record(record.bytes, now_ms)
        self.batch_sizes.record(read, now_ms)
        spark = record.stages.get("queue", 0.0) + record.longest_task
        self.stage_ms.record(1000 * (spark or record.stages.get("stage", 0.0) or record.seconds), now_ms)
        self.read_ms.record(1000 * (record.stages.get("read", 0.0) or record.seconds), now_ms)

    def _committed(self, record: BatchRecord, now_ms: int) -> None:
        """An unknown outcome counts when it is decided: the batch is told of again."""
        if record.outcome is Outcome.COMMITTED:
            self.totals.commits += 1
            self.completed.record(1, now_ms)
            seconds = record.stages.get("commit", 0.0) + record.stages.get("publish", 0.0)
            self.commit_ms.record(
                1000 * (seconds or sum(target.seconds for target in record.targets)), now_ms
            )
        elif record.outcome is Outcome.CONFLICT:
            self.totals.refused += 1
            self.refused.record(1, now_ms)
        elif record.outcome not in _DID_NOT_LAND:
            return
        self.totals.attempts += 1
        self.commit_share.record(is_success=record.outcome is Outcome.COMMITTED, now_ms=now_ms)
