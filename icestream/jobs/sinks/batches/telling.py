"""What the sink manager tells of each batch: once when it is under way, once when it has ended, whatever
became of it. It only listens: nothing here changes what a batch does, and whoever is told harms nobody.
"""

from __future__ import annotations

import datetime as dt
import functools
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, ParamSpec

from icestream.api.batch import Batch, BatchResult, Counts
from icestream.api.errors import (
    Cancelled,
    CommitConflict,
    CommitUnknown,
    RetriableError,
    RowsRefused,
)
from icestream.api.history import (
    MOST_TOPICS,
    OTHER_TOPICS,
    PASSED_OVER,
    BatchRecord,
    Event,
    Observer,
    Outcome,
    TargetCommit,
    TopicCounts,
)
from icestream.api.offsets import Partition
from icestream.api.sink import TASK_PUT
from icestream.logs import at_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icestream.api.checkpoint import FoundCheckpoint
    from icestream.api.maintenance import MaintenanceRun, MaintenanceStep
    from icestream.api.sink import Receipt
    from icestream.jobs.sinks.batches.staging import StagedBatch

_LOG = logging.getLogger(__name__)
MOST_NOTE: Final = 500
"""Characters: an error may quote a whole record."""
_MOST_NAMES: Final = 10
_P = ParamSpec("_P")


def harmless(tell: Callable[_P, None]) -> Callable[_P, None]:
    """A batch goes on, whatever goes wrong with what is told of it: it may be committed by then."""

    @functools.wraps(tell)
    def told(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            tell(*args, **kwargs)
        except Exception:  # an observer's edge
            _LOG.exception("something about a batch was not told")

    return told


@dataclass
class _UnderWay:
    record: BatchRecord
    started: float
    stages: dict[str, float] = field(default_factory=dict)
    targets: dict[str, TargetCommit] = field(default_factory=dict)
    counts: BatchRecord | None = None
    """With the counts, once they are known."""
    commits_to: Sequence[str] = ()
    """The targets that it is being committed to."""
    has_landed: bool = False


class BatchTelling:
    """Of one job. Called by its thread, `committed_to` by those of its commits."""

    def __init__(
        self,
        connector: str,
        observer: Observer,
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
    ) -> None:
        self._connector = connector
        self._observer = observer
        self._clock = clock
        self._wall = wall
        self._now: _UnderWay | None = None
        self._unsure: tuple[BatchRecord, Sequence[str]] | None = None
        """The last batch, if nobody knows yet whether all these targets have it."""

    # -- what happens to a batch, in this order --

    @harmless
    def begins(self, batch: Batch, started: float) -> None:
        """It was planned, in the time since `started`."""
        now = self._clock()
        at_ms = int(self._wall().timestamp() * 1000) - int((now - started) * 1000)
        record = BatchRecord(batch.id, at_ms, Outcome.UNDER_WAY, planned=batch.span)
        self._now = _UnderWay(record, started, {"plan": now - started})
        self._tell(record)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """How long a stage of the batch takes."""
        before = self._clock()
        try:
            yield
        finally:
            if self._now is not None:
                stages = self._now.stages
                stages[name] = stages.get(name, 0.0) + self._clock() - before

    @harmless
    def staged(self, done: StagedBatch, valid_through: dt.datetime | None, *, has_queue: bool) -> None:
        """All of it is staged, and is about to be committed."""
        if self._now is None:
            return
        # What the tasks tell takes the place of the time that the manager has waited for them.
        waited = self._now.stages.pop("stage", 0.0)
        self._now.stages |= done.times.stages or {"stage": waited}
        valid_ms = None if valid_through is None else int(valid_through.timestamp() * 1000)
        letters = len(done.result.rejected) if has_queue else 0
        self._now.counts = replace(_counted(self._now.record, done, valid_ms), letters=letters)

    @harmless
    def commits_to(self, targets: Sequence[str]) -> None:
        if self._now is not None:
            self._now.commits_to = targets

    @harmless
    def committed_to(self, name: str, rows: int, began: float, receipt: Receipt) -> None:
        seconds = self._clock() - began
        commit_id = "" if receipt.id is None else str(receipt.id)
        self._note_target(TargetCommit(name, commit_id, rows, seconds, tuple(receipt.file_bytes)))

    @harmless
    def refused_by(self, name: str, rows: int, began: float, error: BaseException) -> None:
        self._note_target(
            TargetCommit(name, rows=rows, seconds=self._clock() - began, outcome=outcome_of(error))
        )

    @harmless
    def landed(self, done: StagedBatch) -> None:
        """All targets have it; what may still fail is to tell Kafka so."""
        if self._now is not None:
            self._now.has_landed = True
        for target, fields in done.new_fields.items():
            if fields:
                names = ", ".join(".".join(path) for path in list(fields)[:_MOST_NAMES])
                more = f" and {len(fields) - _MOST_NAMES} more" if len(fields) > _MOST_NAMES else ""
                text = f"{target} has columns for new fields of records: {names}{more}"
                self.event("schema", text, about="add_column", columns=len(fields))

    @harmless
    def maintained(self, run: MaintenanceRun) -> None:
        """A target was maintained, or was to be."""
        if not run.did_something:
            return
        did = [step for step in run.steps if step.did_something or step.error]
        text = f"maintained {run.target}: {'; '.join(_step_text(step) for step in did)}"
        self.event(
            "maintenance",
            text,
            about="failed" if run.error else "done",
            seconds=run.seconds,
            files=sum(step.removed_files for step in run.steps),
            bytes=sum(step.removed_bytes for step in run.steps),
        )

    @harmless
    def ends(self, outcome: Outcome, note: str = "", lag_after: int | None = None) -> None:
        now, self._now = self._now, None
        if now is None:
            return
        record = now.record
        if outcome in (Outcome.COMMITTED, Outcome.EMPTY) and now.counts is not None:
            record = now.counts
        self._tell(
            replace(
                record,
                outcome=outcome,
                seconds=self._clock() - now.started,
                stages=dict(now.stages),
                targets=tuple(now.targets.values()),
                lag_after=lag_after,
                note="; ".join(part for part in (record.note, note[:MOST_NOTE]) if part),
            )
        )

    @harmless
    def ended_by(self, error: BaseException) -> None:
        """The turn was given up, with the batch if there is one under way."""
        now = self._now
        if now is None:
            return
        if now.has_landed:
            self.ends(self._how_it_landed(now), f"its offsets and dead letters are published later: {error}")
            return
        if now.commits_to and now.counts is not None:
            seconds = self._clock() - now.started
            self._unsure = (replace(now.counts, seconds=seconds, stages=dict(now.stages)), now.commits_to)
        self.ends(outcome_of(error), str(error) or type(error).__name__)

    @harmless
    def ends_well(self, lag_after: int | None) -> None:
        if self._now is not None:
            self.ends(self._how_it_landed(self._now), lag_after=lag_after)

    @harmless
    def found(self, targets: Sequence[FoundCheckpoint]) -> None:
        """The targets were asked: the last batch may have landed after all."""
        unsure, self._unsure = self._unsure, None
        if unsure is None:
            return
        record, names = unsure
        have_it = {one.target for one in targets if one.checkpoint and one.checkpoint.commit == record.id}
        if have_it.issuperset(names):
            note = "the targets had it when they were asked again"
            self._tell(replace(record, outcome=Outcome.COMMITTED, note=note))

    @harmless
    def event(self, kind: str, text: str, about: str = "", **numbers: float) -> None:
        at_ms = int(self._wall().timestamp() * 1000)
        try:
            event = Event(at_ms, kind, text[:MOST_NOTE], about=about, numbers=numbers)
            self._observer.event(self._connector, event)
        except Exception:  # an observer's edge
            _LOG.exception("nobody was told of an event", extra={"connector": self._connector})

    # -- how --

    def _how_it_landed(self, now: _UnderWay) -> Outcome:
        has_commit = any(one.id for one in now.targets.values())
        return Outcome.COMMITTED if has_commit else Outcome.EMPTY

    def _note_target(self, commit: TargetCommit) -> None:
        if self._now is not None:
            self._now.targets[commit.name] = commit

    def _tell(self, record: BatchRecord) -> None:
        at_batch("" if record.is_over else record.id)
        try:
            self._observer.batch(self._connector, record)
        except Exception:  # an observer's edge: exactly-once does not depend on who looks
            _LOG.exception("nobody was told of a batch", extra={"connector": self._connector})


def _step_text(step: MaintenanceStep) -> str:
    if step.error:
        return f"{step.name} failed: {step.error}"
    moved = f" {step.before:,} {step.counted} are now {step.after:,}" if step.before != step.after else ""
    removed = f", {step.removed_files:,} files removed" if step.removed_files else ""
    return f"{step.name}{moved}{removed}{f', {step.note}' if step.note else ''}"


def outcome_of(error: BaseException) -> Outcome:
    match error:
        case RowsRefused():
            return Outcome.RUN_AGAIN
        case CommitConflict():
            return Outcome.CONFLICT
        case CommitUnknown():
            return Outcome.UNKNOWN
        case Cancelled():
            return Outcome.CANCELLED
        case RetriableError():
            return Outcome.UNAVAILABLE
    return Outcome.FAILED


def _counted(record: BatchRecord, done: StagedBatch, valid_ms: int | None) -> BatchRecord:
    result = done.result
    counts = _counts(result)
    rejected = Counter(one.stage for one in result.rejected)
    filtered = Counter({name: number for name, number in result.dropped.items() if number})
    _even_out(rejected, counts.rejected, TASK_PUT)
    _even_out(filtered, counts.filtered, PASSED_OVER)
    newest: dict[str, int] = {}
    for partition, ms in result.newest_ms.items():
        # Records without a timestamp are not of 1970.
        if ms > 0:
            newest[partition.topic] = max(ms, newest.get(partition.topic, 0))
    return replace(
        record,
        planned=done.batch.span,
        tasks=done.times.tasks,
        longest_task=done.times.longest,
        note=f"it ran {done.runs} times, because its records have new columns" if done.runs > 1 else "",
        read=counts.read,
        written=counts.written,
        rejected=dict(rejected),
        filtered=dict(filtered),
        bytes=result.bytes_read,
        newest_ms=newest,
        topics=_topics(result),
        valid_through_ms=valid_ms,
    )


def _counts(result: BatchResult) -> Counts:
    """Of all records of the batch."""
    return sum(_counts_by_partition(result).values(), Counts())


def _counts_by_partition(result: BatchResult) -> Mapping[Partition, Counts]:
    """A target that was ahead of the others has counted fewer."""
    nothing: Mapping[Partition, Counts] = {}
    each = (staged.counts for staged in result.staged.values())
    return result.counts or max(
        each, key=lambda counts: sum(one.read for one in counts.values()), default=nothing
    )


def _topics(result: BatchResult) -> dict[str, TopicCounts]:
    counted = _counts_by_partition(result)
    known = sorted({partition.topic for partition in counted})[:MOST_TOPICS]
    names = {topic: topic for topic in known}
    written: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    invalid: Counter[str] = Counter()
    for partition, counts in counted.items():
        topic = names.get(partition.topic, OTHER_TOPICS)
        written[topic] += counts.written
        rejected[topic] += counts.rejected
    for one in result.rejected:
        invalid[names.get(one.partition.topic, OTHER_TOPICS)] += one.breaks_schema
    return {topic: TopicCounts(written[topic], rejected[topic], invalid[topic]) for topic in sorted(written)}


def _even_out(parts: Counter[str], total: int, rest: str) -> None:
    """Parts that add up to what was counted: what nobody has a name for is under `rest`."""
    missing = total - parts.total()
    if missing > 0:
        parts[rest] += missing
    for name in sorted(parts, key=lambda one: -parts[one]) if missing < 0 else ():
        taken = min(parts[name], -missing)
        parts[name] -= taken
        missing += taken
