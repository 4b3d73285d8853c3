"""Runs the batches of a sink without Spark, in the worker itself; also decodes a batch once more for offsets
that are moved by hand. The counterpart of `spark_runner`."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from icestream.api.batch import Batch, BatchResult, PartlyStaged
from icestream.api.errors import Cancelled
from icestream.api.sink import SinkPlan
from icestream.kafka.reader import SliceReader
from icestream.pipeline.plan import BatchPlan
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.pipeline.task import task_result


class InWorkerRunner:
    """Runs the batches of one job, each as one task; `cancel` may be called from another thread."""

    queries = None

    def __init__(
        self,
        kafka: Mapping[str, str],
        records: RecordSettings,
        most_bytes: int | None = None,
    ) -> None:
        self._kafka = kafka
        self._records = records
        self._most_bytes = most_bytes
        self._path = record_path_from(records)
        self._cancelled = threading.Event()
        self._reader = SliceReader(kafka, refuse=self.refuse_cancelled)

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult:
        self.refuse_cancelled()
        tasks = [batch.slices()]
        plan = BatchPlan(self._kafka, self._records, sink, tasks, stages, batch.id, self._most_bytes)
        result = task_result(plan, 0, self._reader, self._path)
        if self._cancelled.is_set():
            raise PartlyStaged(Cancelled("the batch was given up"), [result])
        return result

    def refuse_cancelled(self) -> None:
        """Cancelled, after `cancel`."""
        if self._cancelled.is_set():
            raise Cancelled("the batch was given up")

    def cancel(self) -> None:
        """Give up the batch under way once Kafka is silent or all is read, and every later one until
        `allow`."""
        self._cancelled.set()

    def allow(self) -> None:
        self._cancelled.clear()

    def close(self) -> None:
        self._reader.close()
