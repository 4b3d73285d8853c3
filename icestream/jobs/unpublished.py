"""Publishes what Kafka has missed of a batch that is in all targets. For the sink manager, and before offsets
are moved by hand."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from icestream.api.batch import Batch, PartlyStaged
from icestream.api.sink import Sink, SinkPlan, Target, TargetTask
from icestream.jobs import planning
from icestream.jobs.borders import BatchRunner
from icestream.jobs.channel import Channel

_log = logging.getLogger(__name__)


def publish_missing(
    batch: Batch, targets: Sequence[Target], sink: Sink, runner: BatchRunner, channel: Channel, job: str
) -> None:
    """Decode the batch again for its dead letters, and publish them with its offsets."""
    _log.info("publishing what Kafka has missed of batch %s", batch.id, extra=_context(job, batch))
    tasks = [TargetTask(target.name, target.plan({})) for target in targets]
    plan = SinkPlan(sink.writer, tasks)
    parts = [batch]
    while parts:
        part = parts.pop()
        try:
            result = runner.run(part, plan, stages=False)
        except PartlyStaged as failed:
            raise failed.reason from failed
        if result.overflow and part.span > 1:
            middle = planning.cut(part.start, part.end, max(1, part.span // 2))
            parts += [replace(part, start=middle), replace(part, end=middle)]
            continue
        closing = [] if parts else sink.events(batch.id, None, None)
        channel.publish(batch.id, result.rejected, closing, part.end)


def _context(job: str, batch: Batch) -> dict[str, str]:
    return {"connector": job, "batch": batch.id}
