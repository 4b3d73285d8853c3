"""Batches of given records, staged for a real table: without Kafka and without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema

from icestream.api.batch import Batch, BatchResult, Slice
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import OpenWriter, Sink, SinkPlan
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.table import IcebergTable
from icestream.connectors.iceberg.writer import IcebergWriter
from icestream.jobs.sinks.batches.staging import StagedBatch, stage
from icestream.kafka.chunk import Chunk
from icestream.kafka.reader import SliceReader
from icestream.pipeline.plan import BatchPlan
from icestream.pipeline.record_path import RecordSettings, process_record_path
from icestream.pipeline.task import task_result
from icestream.rows.new_columns import GrowthLimit

SOURCE = Partition("events", 0)
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFIG = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
}


@dataclass
class Sent:
    """A message of Kafka, as far as the pipeline asks."""

    at: int
    content: bytes | None
    moment: int | None = None
    named: list[tuple[str, bytes]] | None = None
    asked: int = 0
    """How often for its headers."""

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> None:
        return None

    def headers(self) -> list[tuple[str, bytes]] | None:
        self.asked += 1
        return self.named

    def timestamp(self) -> tuple[int, int]:
        return 1, self.moment or 1000 + self.at

    def __len__(self) -> int:
        return len(self.content or b"")


def chunk(values: Sequence[bytes | None], start: int = 0, moment: int | None = None) -> Chunk:
    """Each message a millisecond after the other, or all of them of one moment."""
    sent = [Sent(start + at, value, moment) for at, value in enumerate(values)]
    return Chunk.of(SOURCE, cast("list[Message]", sent))


@dataclass(frozen=True)
class Topic:
    """Stands for the reader of a process."""

    values: Sequence[bytes | None]

    def read_all(self, slices: Sequence[Slice], most: int) -> Iterator[Chunk]:
        for piece in slices:
            for low in range(piece.start, piece.until, most):
                yield chunk(self.values[low : min(low + most, piece.until)], low)


@dataclass
class OneTask:
    """A BatchRunner that is one task."""

    records: RecordSettings
    reader: Topic
    runs: int = field(default=0)
    most_bytes: int | None = None

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult:
        self.runs += 1
        plan = BatchPlan({}, self.records, sink, [batch.slices()], stages, batch.id, self.most_bytes)
        return task_result(plan, 0, cast(SliceReader, self.reader), process_record_path(self.records))

    def refuse_cancelled(self) -> None: ...

    def cancel(self) -> None: ...

    def allow(self) -> None: ...

    def close(self) -> None: ...


class Tables(Sink):
    """Iceberg tables as a sink."""

    def __init__(self, tables: Sequence[IcebergTable]) -> None:
        self._tables = tables
        self.writer: OpenWriter = IcebergWriter

    def targets(self) -> Sequence[IcebergTable]:
        return self._tables


@dataclass(frozen=True)
class World:
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def table(
        self, schema: Schema, spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC, name: str = "events"
    ) -> IcebergTable:
        catalog = open_catalog(
            {
                "iceberg.catalog.type": "jdbc",
                "iceberg.catalog.uri": f"jdbc:sqlite:{self.folder}/catalog.db",
                "iceberg.catalog.warehouse": f"file://{self.folder}",
            }
        )
        catalog.create_namespace_if_not_exists("ns")
        catalog.create_table(f"ns.{name}", schema, partition_spec=spec)
        return IcebergTable(catalog, f"ns.{name}", "job", write_props={})

    def staged(
        self,
        values: Sequence[bytes | None],
        *tables: IcebergTable,
        config: Mapping[str, str] | None = None,
        starts: Sequence[Offsets] | None = None,
        evolves: bool = True,
        most_bytes: int | None = None,
    ) -> StagedBatch:
        """All values as one batch."""
        batch = Batch(str(uuid.uuid4()), Offsets({SOURCE: 0}), Offsets({SOURCE: len(values)}))
        records = RecordSettings.of({**CONFIG, **(config or {})})
        runner = OneTask(records, Topic(values), most_bytes=most_bytes)
        for table in tables:
            table._growth = GrowthLimit.from_config(config or {}) if evolves else None
        return stage(batch, Tables(tables), tables, starts or [NOTHING] * len(tables), runner)


def rows_of(staged: StagedBatch, table: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in staged.staged(staged.targets[table].name).payload:
        found += pq.ParquetFile(file.path.removeprefix("file://")).read().to_pylist(maps_as_pydicts="strict")
    return found


def reasons(staged: StagedBatch) -> dict[int, str]:
    """Offset → stage and reason."""
    return {record.offset: f"{record.stage}: {record.reason}" for record in staged.result.rejected}
