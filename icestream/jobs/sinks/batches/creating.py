"""Has targets that are missing created, from the fields that the records of a batch have. Called by the sink
manager, which asks all targets anew before it goes on.

Nothing is staged before a target exists: a crash after the creation finds one that is there and empty, as if
somebody had made it by hand.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

from icestream.api.batch import Batch, BatchResult, PartlyStaged
from icestream.api.errors import SinkUnavailable
from icestream.api.sink import Sink, SinkPlan, Target, TargetTask
from icestream.jobs.sinks.batches.staging import BatchRunner
from icestream.jobs.sinks.resuming.resume import ResumePoint


def missing_targets(targets: Sequence[Target], resume: ResumePoint) -> list[Target]:
    return [target for target, found in zip(targets, resume.found, strict=True) if found.is_missing]


def look_at(
    batch: Batch,
    sink: Sink,
    targets: Sequence[Target],
    runner: BatchRunner,
    absent: Mapping[str, str] | None = None,
) -> BatchResult:
    """Run a batch for the fields of its records; nothing is staged. `targets` are those that are missing, and
    where records are routed, all others that they may be for."""
    tasks = [TargetTask(target.name, target.plan({})) for target in targets]
    same = Batch(str(uuid.uuid4()), batch.start, batch.end)
    try:
        return runner.run(same, SinkPlan(sink.writer, tasks, sink.routing, absent or {}))
    except PartlyStaged as failed:
        raise failed.reason from failed


def has_fields(target: Target, seen: BatchResult) -> bool:
    """Whether records of the batch have something to create the target from."""
    return target.name in seen.staged and bool(seen.staged[target.name].new_fields)


def create(
    missing: Sequence[Target], seen: BatchResult, batch: Batch, reached: Callable[[str], None]
) -> None:
    """Create the targets that records of the batch are for."""
    wanted = [target for target in missing if has_fields(target, seen)]
    if not wanted:
        names = ", ".join(target.name for target in missing)
        raise SinkUnavailable(
            f"{names} does not exist, and none of the {batch.span} records so far has a field to create it "
            "from; waiting for one that has"
        )
    for target in wanted:
        reached(f"creating {target.name}")
        target.create(seen.staged[target.name].new_fields)
        reached(f"created {target.name}")
