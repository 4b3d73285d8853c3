"""What the sink manager needs of others besides its sink: facts and news of Kafka, and who runs a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from icestream.api.batch import Batch, BatchResult
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import SinkPlan
from icestream.kafka.topics import GroupOffset, TopicFacts
from icestream.kafka.watch import Seen


class SourceFacts(Protocol):
    """`icestream.kafka.topics.Topics` is the real one."""

    def cluster_id(self) -> str: ...

    def matching(self, pattern: str) -> list[str]: ...

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]: ...

    def ends(self, partitions: Iterable[Partition]) -> Offsets: ...

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets: ...

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]: ...


class News(Protocol):
    """Tells a job that waits when its topics have changed. `icestream.kafka.watch.Watch` is the real one."""

    def when_changed(self, waiter: str, seen: Seen, tell: Callable[[], None]) -> None: ...

    def forget(self, waiter: str) -> None: ...


class BatchRunner(Protocol):
    """`pipeline.spark_runner.SparkRunner`, or `pipeline.in_worker.InWorkerRunner`."""

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult: ...

    def refuse_cancelled(self) -> None:
        """Cancelled, after `cancel`."""

    def cancel(self) -> None:
        """Give up the batch under way, and every later one until `allow`."""

    def allow(self) -> None: ...

    def close(self) -> None: ...
