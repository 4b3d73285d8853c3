"""Has a batch staged for every target, again where a target first needs new columns. Called by the sink
manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from icestream.api.batch import Batch, BatchResult, Counts, Left, PartlyStaged, Staged, TaskTimes
from icestream.api.errors import FatalError
from icestream.api.offsets import Offsets, Partition
from icestream.api.queries import SparkQueries
from icestream.api.sink import Sink, SinkPlan, Target, TargetTask
from icestream.rows.new_columns import Path, combined

_MOST_RUNS = 5


class BatchRunner(Protocol):
    """`pipeline.spark_runner.SparkRunner`, or `pipeline.in_worker.InWorkerRunner`."""

    @property
    def queries(self) -> SparkQueries | None:
        """Spark SQL for commits that need it; None: the job runs without Spark."""
        return None

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult: ...

    def refuse_cancelled(self) -> None:
        """Cancelled, after `cancel`."""

    def cancel(self) -> None:
        """Give up the batch under way, and every later one until `allow`."""

    def allow(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class StagedBatch:
    """A batch whose rows are staged, with the plan of each target by which they were written."""

    batch: Batch
    result: BatchResult
    targets: Sequence[Target]
    plans: Mapping[str, Any]
    runs: int = 1
    """How often it was run: new columns take another one."""
    times: TaskTimes = field(default_factory=TaskTimes)
    """Of all its runs."""
    new_fields: Mapping[str, Mapping[Path, pa.DataType]] = field(default_factory=dict)
    """What each target gets columns for with this batch."""

    def staged(self, target: str) -> Staged:
        return self.result.staged.get(target, Staged())

    @property
    def left(self) -> dict[Partition, Left]:
        """What the writer left of the batch."""
        return {p: left for one in self.result.staged.values() for p, left in one.left.items()}

    def discard(self) -> None:
        _discard(self.targets, self.result)


def stage(
    batch: Batch,
    sink: Sink,
    targets: Sequence[Target],
    starts: Sequence[Offsets],
    runner: BatchRunner,
    absent: Mapping[str, str] | None = None,
    *,
    may_leave: bool = False,
) -> StagedBatch:
    """Run the batch until no target lacks a field. Columns are added by the commit itself, with the rows.

    If the writer `may_leave` the ends of partitions, what comes back is the batch without them.

    If records name targets that are neither here nor `absent`, nothing is staged, and the result tells them.
    """
    fields: dict[str, dict[Path, pa.DataType]] = {target.name: {} for target in targets}
    times = TaskTimes()
    for run in range(1, _MOST_RUNS + 1):
        plans = {target.name: target.plan(fields[target.name]) for target in targets}
        tasks = [
            TargetTask(target.name, plans[target.name], start)
            for target, start in zip(targets, starts, strict=True)
        ]
        plan = SinkPlan(sink.writer, tasks, sink.routing, absent or {}, may_leave, sink.whole_partitions)
        result = _run(runner, batch, targets, plan)
        times += result.times
        done = StagedBatch(batch, result, targets, plans, run, times, fields)
        if done.result.overflow:
            return done
        if done.result.unknown_targets:
            done.discard()
            return done
        if not done.result.needs_new_fields:
            _refuse_loss(done)
            return replace(done, batch=_without(batch, done.left))
        done.discard()
        fields = {name: combined(new, done.staged(name).new_fields) for name, new in fields.items()}
    raise FatalError(f"batch {batch.id} still found new fields after {_MOST_RUNS} runs: {fields}")


def _without(batch: Batch, left: Mapping[Partition, Left]) -> Batch:
    if not left:
        return batch
    end = {p: left[p].until if p in left else position for p, position in batch.end.positions.items()}
    return replace(batch, end=Offsets(end))


def _run(runner: BatchRunner, batch: Batch, targets: Sequence[Target], plan: SinkPlan) -> BatchResult:
    """Run the batch; if a part of it fails, remove what the other parts staged."""
    try:
        return runner.run(batch, plan)
    except PartlyStaged as failed:
        for part in failed.done:
            _discard(targets, part)
        raise failed.reason from failed


def _discard(targets: Sequence[Target], result: BatchResult) -> None:
    for target in targets:
        if target.name in result.staged:
            target.discard(result.staged[target.name])


def _refuse_loss(done: StagedBatch) -> None:
    """Every record is written, rejected or filtered, and as many rows are staged as were written; else
    nothing is committed."""
    every = sum(done.result.counts.values(), Counts())
    if not every.reconcile:
        raise FatalError(
            f"batch {done.batch.id} does not add up: of {every.read} records {every.written} were routed, "
            f"{every.rejected} rejected and {every.filtered} filtered; nothing was committed"
        )
    for name, staged in done.result.staged.items():
        total = sum(staged.counts.values(), Counts())
        if not total.reconcile or total.written != staged.rows:
            raise FatalError(
                f"batch {done.batch.id} does not add up for {name}: {total}, but {staged.rows} rows are "
                "staged; nothing was committed"
            )
