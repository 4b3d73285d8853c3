"""What Java's workers write, without Java: real data files, and their events and source offsets in one Kafka
transaction. For tests that need a certain moment, or something that a worker does once in a blue moon."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from icestream.api.offsets import Offsets, Partition
from icestream.connectors.iceberg.coordinator.event_schemas import PartitionColumn
from icestream.connectors.iceberg.coordinator.events import (
    DataComplete,
    DataWritten,
    Event,
    Payload,
    SourcePosition,
    TableReference,
    WrittenFile,
    encoded,
)
from icestream.kafka.transactions import Outgoing, Transactions
from tests.java_workers.running import CATALOG, Job

KIND = PartitionColumn("kind", 1000, "string")


def reference(table: Table) -> TableReference:
    *namespace, name = table.name()
    return TableReference(CATALOG, tuple(namespace), name, table.metadata.table_uuid)


def files_of(table: Table, ids: Sequence[int]) -> tuple[WrittenFile, ...]:
    """Data files with these rows, as a worker would have written them."""
    rows = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "kind": [f"k{number % 3}" for number in ids],
            "text": [f"text {number}" for number in ids],
        },
        schema=schema_to_pyarrow(table.schema(), include_field_ids=False),
    )
    return tuple(map(_written, _dataframe_to_data_files(table.metadata, rows, table.io)))


def _written(file: DataFile) -> WrittenFile:
    return WrittenFile(
        file.file_path.replace("file:///", "file:/"),
        file.file_format.value,
        file.record_count,
        file.file_size_in_bytes,
        partition=tuple(file.partition[at] for at in range(len(file.partition))),
        spec_id=0,
        column_sizes=file.column_sizes,
        value_counts=file.value_counts,
        null_value_counts=file.null_value_counts,
        nan_value_counts=file.nan_value_counts,
        lower_bounds=file.lower_bounds,
        upper_bounds=file.upper_bounds,
        split_offsets=file.split_offsets,
        sort_order_id=file.sort_order_id,
    )


def data_written(table: Table, ids: Sequence[int], **more: Any) -> DataWritten:
    made = DataWritten(uuid.uuid4(), reference(table), files_of(table, ids), (), (KIND,))
    return replace(made, **more)


def complete(commit: uuid.UUID, job: Job, offsets: Sequence[int | None]) -> DataComplete:
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    positions = [
        SourcePosition(job.name, number, at, None if at is None else now) for number, at in enumerate(offsets)
    ]
    return DataComplete(commit, tuple(positions))


def send(
    job: Job,
    *payloads: Payload,
    source: Sequence[int] = (),
    group: str | None = None,
    partition: int | None = None,
) -> None:
    """A worker's transaction: events, and the source offsets of its group."""
    now = dt.datetime.now(dt.UTC)
    settings = {"bootstrap.servers": job.bootstrap}
    writer = Transactions(settings, f"worker-{uuid.uuid4()}", job.group)
    messages = [
        Outgoing(
            job.control,
            b"some-worker",
            encoded(Event(uuid.uuid4(), now, group or job.group, payload)),
            partition=partition,
        )
        for payload in payloads
    ]
    offsets = Offsets({Partition(job.name, number): at for number, at in enumerate(source)})
    writer.write(messages, offsets, "")
    writer.close()


def ids_in(table: Table) -> list[int]:
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def until(tick: Callable[[], Any], done: Callable[[], bool], most: int = 60) -> None:
    for _ in range(most):
        if done():
            return
        tick()
    raise AssertionError("not done")
