"""What the job manager needs of others, as Protocols: Kafka's facts, the data plane, a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from icestream.api.batch import Batch, BatchResult, StagedFile, TableReference
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.topics import GroupOffset, TopicFacts
from icestream.kafka.watch import Seen

if TYPE_CHECKING:
    # For their names alone: jobs without tables start sooner.
    from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
    from icestream.connectors.iceberg.stage import TablePlan
    from icestream.connectors.iceberg.table import NewFields, Receipt
    from icestream.pipeline.plan import TableTask


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
    """`icestream.pipeline.run.SparkRunner` is the real one."""

    def run(
        self, batch: Batch, tables: Sequence[TableTask], *, evolves: bool, stages: bool = True
    ) -> BatchResult: ...


class CancellableRunner(BatchRunner, Protocol):
    """`icestream.pipeline.run.SparkRunner` is the real one."""

    def cancel(self) -> None:
        """Give up the batch under way, and every later one until `allow`. Called from another thread."""

    def allow(self) -> None: ...


class SinkTable(Protocol):
    """`icestream.connectors.iceberg.table.IcebergTable` is the real one."""

    @property
    def name(self) -> str: ...

    def reference(self, catalog: str) -> TableReference: ...

    def found(self) -> FoundCheckpoint: ...

    def plan(self, new_fields: NewFields) -> TablePlan: ...

    def commit(
        self,
        files: Sequence[StagedFile],
        checkpoint: Checkpoint,
        *,
        expect: Offsets,
        new_fields: NewFields,
        written_with: TablePlan,
        summary: Mapping[str, str],
    ) -> Receipt: ...

    def discard(self, files: Sequence[StagedFile]) -> None: ...

    def sweep(self, landed: str, now: dt.datetime) -> int: ...
