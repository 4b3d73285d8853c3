"""Pays what a batch owes Kafka: it is in all tables, and its transaction is missing. For the job manager, and
before offsets are moved by hand."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace

from icestream.api.batch import Batch, PartlyStaged
from icestream.api.offsets import NOTHING
from icestream.jobs import planning
from icestream.jobs.borders import BatchRunner, SinkTable
from icestream.jobs.channel import Channel
from icestream.jobs.events import CommitComplete
from icestream.pipeline.plan import TableTask

_log = logging.getLogger(__name__)


def publish_missing(
    batch: Batch, tables: Sequence[SinkTable], runner: BatchRunner, channel: Channel, job: str
) -> None:
    """Decode the batch again for its dead letters, and publish them with its offsets."""
    context = {"connector": job, "batch": batch.id}
    _log.info("publishing what batch %s still owes Kafka", batch.id, extra=context)
    tasks = [TableTask(table.plan({}), NOTHING) for table in tables]
    parts = [batch]
    while parts:
        part = parts.pop()
        try:
            taken = runner.run(part, tasks, evolves=False, stages=False)
        except PartlyStaged as failed:
            raise failed.reason from failed
        if taken.overflow and part.span > 1:
            middle = planning.cut(part.start, part.end, max(1, part.span // 2))
            parts += [replace(part, start=middle), replace(part, end=middle)]
            continue
        closing = [] if parts else [CommitComplete(uuid.UUID(batch.id), None)]
        channel.publish(batch.id, taken.rejected, closing, part.end)
