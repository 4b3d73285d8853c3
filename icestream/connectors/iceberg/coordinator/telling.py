"""What the coordinator tells of its commits, as a sink's manager does of its batches. Of the workers, which
are Java's, it knows the files alone: every row that it hears of was written, and what tasks do is theirs.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from icestream.api.errors import Cancelled, CommitConflict, CommitUnknown, RetriableError
from icestream.api.history import BatchRecord, Observer, Outcome, TargetCommit
from icestream.connectors.iceberg.coordinator import table_commits

_log = logging.getLogger(__name__)
_MOST_NOTE = 500


class RoundTelling:
    """Of one job; called by its thread."""

    def __init__(
        self,
        job: str,
        observer: Observer,
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
    ) -> None:
        self._job = job
        self._observer = observer
        self._clock = clock
        self._wall = wall
        self._now: BatchRecord | None = None
        self._began = self._committing = 0.0

    def begins(self, commit_id: str, waiting: int = 0) -> None:
        """Workers were asked for what they have."""
        self._began = self._clock()
        at_ms = int(self._wall().timestamp() * 1000)
        self._now = BatchRecord(commit_id, at_ms, Outcome.UNDER_WAY, planned=waiting)
        self._tell(self._now)

    def commits(self, commit_id: str) -> None:
        if self._now is None:
            self.begins(commit_id)
        self._committing = self._clock()

    def committed(
        self, outcomes: Sequence[table_commits.Outcome], through: dt.datetime | None, lag: int | None
    ) -> None:
        """What became of each table; what failed waits for the next commit."""
        if self._now is None:
            return
        rows = sum(one.rows for one in outcomes)
        failed = [str(one.failure) for one in outcomes if one.failure is not None]
        landed = any(one.snapshot_id is not None for one in outcomes)
        outcome = Outcome.COMMITTED if landed else Outcome.UNAVAILABLE if failed else Outcome.EMPTY
        now = self._clock()
        record = replace(
            self._now,
            read=rows,
            written=rows,
            lag_after=lag,
            valid_through_ms=None if through is None else int(through.timestamp() * 1000),
            stages={"plan": self._committing - self._began, "commit": now - self._committing},
            targets=tuple(_target(one, now - self._committing) for one in outcomes),
        )
        self._end(record, outcome, "; ".join(failed))

    def gave_up(self, error: BaseException) -> None:
        if self._now is not None:
            self._end(self._now, _outcome_of(error), str(error) or type(error).__name__)

    def _end(self, record: BatchRecord, outcome: Outcome, note: str) -> None:
        self._now = None
        seconds = self._clock() - self._began
        self._tell(replace(record, outcome=outcome, seconds=seconds, note=note[:_MOST_NOTE]))

    def _tell(self, record: BatchRecord) -> None:
        try:
            self._observer.batch(self._job, record)
        except Exception:  # an observer's edge
            _log.exception("nobody was told of a commit", extra={"connector": self._job})


def _target(one: table_commits.Outcome, seconds: float) -> TargetCommit:
    name = str(one.table)
    if one.failure is not None:
        return TargetCommit(name, seconds=seconds, outcome=_outcome_of(one.failure))
    commit_id = "" if one.snapshot_id is None else str(one.snapshot_id)
    return TargetCommit(name, commit_id, one.rows, seconds, tuple(one.file_bytes))


def _outcome_of(error: BaseException) -> Outcome:
    match error:
        case CommitConflict():
            return Outcome.CONFLICT
        case CommitUnknown():
            return Outcome.UNKNOWN
        case Cancelled():
            return Outcome.CANCELLED
        case RetriableError():
            return Outcome.UNAVAILABLE
    return Outcome.FAILED
