"""Our events and those of the real `iceberg-kafka-connect-events` classes, in both directions."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icestream.connectors.iceberg.coordinator.events import (
    CommitComplete,
    CommitToTable,
    DataComplete,
    DataWritten,
    Event,
    Payload,
    SourcePosition,
    StartCommit,
    TableReference,
    decoded,
    encoded,
)
from tests.integration.jvm import java_gateway
from tests.java_workers.running import jars

pytestmark = [pytest.mark.slow, pytest.mark.network]

COLUMNS: Sequence[tuple[PrimitiveType, Any, Any]] = (
    (BooleanType(), True, True),
    (IntegerType(), -5, -5),
    (LongType(), 2**40, 2**40),
    (FloatType(), 1.5, 1.5),
    (DoubleType(), -2.25, -2.25),
    (DateType(), 20666, "2026-08-01"),
    (TimeType(), 36_930_123_456, "10:15:30.123456"),
    (TimestampType(), 1_785_579_330_123_456, "2026-08-01T10:15:30.123456"),
    (TimestamptzType(), 1_785_579_330_123_456, "2026-08-01T10:15:30.123456+00:00"),
    (StringType(), "größe \N{ROCKET}", "größe \N{ROCKET}"),
    (UUIDType(), uuid.UUID(int=7), str(uuid.UUID(int=7))),
    (FixedType(5), b"abcde", b"abcde".hex().upper()),
    (BinaryType(), b"\x00\xff", "00FF"),
    (DecimalType(9, 2), decimal.Decimal("-123.45"), "-123.45"),
    (
        DecimalType(38, 10),
        decimal.Decimal("12345678901234567890.0123456789"),
        "12345678901234567890.0123456789",
    ),
)
"""Each type with a value, as PyIceberg has it and as Iceberg's JSON has it."""
SCHEMA = Schema(*(NestedField(at, f"c{at}", kind) for at, (kind, _, _) in enumerate(COLUMNS, 1)))
BY_EVERYTHING = PartitionSpec(
    *(
        PartitionField(at, 999 + at, IdentityTransform(), f"c{at}")
        for at, (kind, _, _) in enumerate(COLUMNS, 1)
        # Java's own classes fail on a partition value of this type.
        if not isinstance(kind, FixedType)
    ),
    PartitionField(8, 2000, DayTransform(), "day"),
    PartitionField(10, 2001, BucketTransform(16), "bucket"),
    spec_id=3,
)
NOTHING = PartitionSpec(spec_id=0)


@dataclass
class Java:
    """The classes, and what py4j needs to talk to them."""

    gateway: JavaGateway

    def __post_init__(self) -> None:
        self.jvm = self.gateway.jvm
        self.events = self.jvm.org.apache.iceberg.connect.events
        self.iceberg = self.jvm.org.apache.iceberg
        self.mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self.schema = self.iceberg.SchemaParser.fromJson(SCHEMA.model_dump_json())

    def spec(self, spec: PartitionSpec) -> Any:
        return self.iceberg.PartitionSpecParser.fromJson(self.schema, spec.model_dump_json())

    def file(self, spec: Any, text: str) -> Any:
        return self.iceberg.ContentFileParser.fromJson(self.mapper.readTree(text), spec)

    def file_text(self, file: Any, spec: Any) -> str:
        return str(self.iceberg.ContentFileParser.toJson(file, spec))

    def uuid(self, id_: uuid.UUID) -> Any:
        return self.jvm.java.util.UUID.fromString(str(id_))

    def moment(self, moment: dt.datetime | None) -> Any:
        return self.jvm.java.time.OffsetDateTime.parse(moment.isoformat()) if moment else None

    def reference(self, table: TableReference) -> Any:
        identifier = self.iceberg.catalog.TableIdentifier.parse(str(table))
        return self.events.TableReference.of(
            table.catalog, identifier, self.uuid(table.uuid) if table.uuid else None
        )

    def event(self, group: str, payload: Any) -> Any:
        return self.events.Event(group, payload)

    def encoded(self, event: Any) -> bytes:
        return bytes(self.events.AvroUtil.encode(event))

    def decoded(self, data: bytes) -> Any:
        return self.events.AvroUtil.decode(data)

    def payload(self, payload: Payload) -> Any:
        commit = self.uuid(payload.commit_id)
        if isinstance(payload, StartCommit):
            return self.events.StartCommit(commit)
        if isinstance(payload, CommitComplete):
            return self.events.CommitComplete(commit, self.moment(payload.valid_through))
        if isinstance(payload, CommitToTable):
            snapshot = None if payload.snapshot_id is None else self.long(payload.snapshot_id)
            through = self.moment(payload.valid_through)
            return self.events.CommitToTable(commit, self.reference(payload.table), snapshot, through)
        assert isinstance(payload, DataComplete)
        positions = [
            self.events.TopicPartitionOffset(
                one.topic,
                one.partition,
                None if one.offset is None else self.long(one.offset),
                self.moment(one.timestamp),
            )
            for one in payload.assignments or ()
        ]
        return self.events.DataComplete(commit, positions)

    def long(self, number: int) -> Any:
        # py4j makes an Integer of a small one.
        return self.jvm.java.lang.Long.valueOf(str(number))


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    with java_gateway(jars(), heap="256m") as gateway:
        yield Java(gateway)


TABLE = TableReference("lake", ("a", "b"), "t", uuid.UUID(int=5))
MOMENT = dt.datetime(2026, 8, 1, 10, 15, 30, 123456, tzinfo=dt.UTC)
COMMIT = uuid.UUID(int=9)
SMALL: Sequence[Payload] = (
    StartCommit(COMMIT),
    CommitComplete(COMMIT, MOMENT),
    CommitComplete(COMMIT, None),
    CommitToTable(COMMIT, TABLE, 2**60, MOMENT),
    CommitToTable(COMMIT, TableReference("lake", ("a",), "t", None), 1, None),
    CommitToTable(COMMIT, TABLE, None, None),
    DataComplete(COMMIT, (SourcePosition("x", 0, 2**40, MOMENT), SourcePosition("x", 1, None, None))),
    DataComplete(COMMIT, ()),
)


@pytest.mark.parametrize("payload", SMALL, ids=lambda payload: type(payload).__name__)
def test_java_and_we_write_the_same_bytes(java: Java, payload: Payload) -> None:
    theirs = java.encoded(java.event("connect-x", java.payload(payload)))
    event = decoded(theirs)
    assert event is not None
    assert (event.group, event.payload) == ("connect-x", payload)
    assert encoded(event) == theirs
    # And what we say from scratch is what Java hears.
    ours = Event(uuid.uuid4(), MOMENT, "connect-y", payload)
    heard = java.decoded(encoded(ours))
    assert (str(heard.id()), heard.groupId()) == (str(ours.id), "connect-y")
    assert heard.type().id() == event_number(payload)
    assert str(heard.payload().commitId()) == str(COMMIT)
    again = decoded(java.encoded(java.event("connect-y", heard.payload())))
    assert again is not None and again.payload == payload


def event_number(payload: Payload) -> int:
    kinds = (StartCommit, DataWritten, DataComplete, CommitToTable, CommitComplete)
    return kinds.index(type(payload))


def file_text(number: int, spec: PartitionSpec) -> str:
    """A data file with statistics of every column type, in Iceberg's JSON."""
    keys = list(range(1, len(COLUMNS) + 1))
    bounds = [to_bytes(kind, value).hex().upper() for kind, value, _ in COLUMNS]
    counts = {"keys": keys, "values": [number + key for key in keys]}
    values = [shown for _, _, shown in COLUMNS]
    if number % 3 == 1:
        values = [None] * len(values)
    partition = dict(zip((str(999 + key) for key in keys), values, strict=True))
    partition |= {"2000": "2026-08-01", "2001": 7}
    partition = {str(it.field_id): partition[str(it.field_id)] for it in spec.fields}
    return json.dumps(
        {
            "spec-id": spec.spec_id,
            "content": "data",
            "file-path": f"s3://lake/a/b/t/data/{number:05d}.parquet",
            "file-format": "parquet",
            **({"partition": {k: v for k, v in partition.items() if v is not None}} if spec.fields else {}),
            "file-size-in-bytes": 1000 + number,
            "record-count": number + 1,
            "column-sizes": counts,
            "value-counts": counts,
            "null-value-counts": counts,
            "nan-value-counts": {"keys": [4, 5], "values": [1, 2]},
            "lower-bounds": {"keys": keys, "values": bounds},
            "upper-bounds": {"keys": keys, "values": bounds},
            "split-offsets": [4, 128 * 2**20],
            "sort-order-id": 1,
        }
    )


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param(BY_EVERYTHING, 1000, id="partitioned"),
        pytest.param(NOTHING, 10, id="unpartitioned"),
        pytest.param(NOTHING, 1000, id="unpartitioned-long", marks=pytest.mark.long),
    ],
)
def test_a_thousand_files_with_all_statistics_go_both_ways(
    java: Java, spec: PartitionSpec, count: int
) -> None:
    javas_spec = java.spec(spec)
    files = [java.file(javas_spec, file_text(number, spec)) for number in range(count)]
    payload = java.events.DataWritten(
        javas_spec.partitionType(), java.uuid(COMMIT), java.reference(TABLE), files, []
    )
    theirs = java.encoded(java.event("connect-x", payload))
    event = decoded(theirs)
    assert event is not None and isinstance(event.payload, DataWritten)
    written = event.payload.data_files or ()
    assert len(written) == count
    for at, (kind, value, _) in enumerate(COLUMNS, 1):
        bound = to_bytes(kind, value)
        assert all(file.lower_bounds and file.lower_bounds[at] == bound for file in written)
    assert (written[-1].record_count, written[-1].spec_id) == (count, spec.spec_id)
    assert encoded(event) == theirs
    heard = java.decoded(encoded(event)).payload()
    assert heard.tableReference().equals(java.reference(TABLE))
    step = max(1, count // 20)
    for mine, original in list(zip(heard.dataFiles(), files, strict=True))[::step]:
        assert java.file_text(mine, javas_spec) == java.file_text(original, javas_spec)
