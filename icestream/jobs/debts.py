"""Pays what a batch owes Kafka: it is in all tables, and its transaction is missing. For the job manager, and
before offsets are moved by hand."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence

from icestream.api.batch import Batch
from icestream.api.offsets import NOTHING
from icestream.jobs import planning
from icestream.jobs.borders import BatchRunner, SinkTable
from icestream.jobs.channel import Channel
from icestream.jobs.events import CommitComplete
from icestream.pipeline.plan import TableTask

_log = logging.getLogger(__name__)


def pay(batch: Batch, tables: Sequence[SinkTable], runner: BatchRunner, channel: Channel, job: str) -> None:
    """Decode the batch again for its dead letters, and publish them with its offsets."""
    context = {"connector": job, "batch": batch.id}
    _log.info("publishing what batch %s still owes Kafka", batch.id, extra=context)
    tasks = [TableTask(table.plan({}), NOTHING) for table in tables]
    taken = runner.run(batch, tasks, evolves=False, stages=False)
    if taken.overflow and batch.span > 1:
        middle = planning.cut(batch.start, batch.end, max(1, batch.span // 2))
        pay(Batch(batch.id, batch.start, middle), tables, runner, channel, job)
        pay(Batch(batch.id, middle, batch.end), tables, runner, channel, job)
        return
    channel.publish(batch.id, taken.rejected, [CommitComplete(uuid.UUID(batch.id), None)], batch.end)
