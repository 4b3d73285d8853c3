"""Our bytes against those that the Java classes wrote for the same events."""

import contextlib
import datetime as dt
import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestream.api.errors import FatalError
from icestream.connectors.iceberg.coordinator.avro_datum import BadDatum
from icestream.connectors.iceberg.coordinator.event_schemas import PartitionColumn
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
    WrittenFile,
    decoded,
    encoded,
)

GOLDEN = json.loads((Path(__file__).parent / "golden_events.json").read_text())
NOW = dt.datetime(2026, 11, 16, 9, 0, tzinfo=dt.UTC)
DAY = PartitionColumn("time_day", 1000, {"type": "int", "logicalType": "date"})
BUCKET = PartitionColumn("bucket", 1001, "string")


def moment(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None


def reference(table: dict[str, Any]) -> TableReference:
    id_ = uuid.UUID(table["table_uuid"])
    return TableReference(table["catalog"], tuple(table["namespace"]), table["name"], id_)


def numbers(entries: dict[str, int]) -> dict[int, int]:
    return {int(key): value for key, value in entries.items()}


def file_of(told: dict[str, Any]) -> WrittenFile:
    bounds = {
        name: {int(key): value.encode() for key, value in told[name].items()}
        for name in ("lower_bounds", "upper_bounds")
    }
    return WrittenFile(
        told["file_path"],
        told["format"],
        told["record_count"],
        told["file_size_in_bytes"],
        partition=tuple(told["partition"].values()),
        column_sizes=numbers(told["column_sizes"]),
        value_counts=numbers(told["value_counts"]),
        null_value_counts=numbers(told["null_value_counts"]),
        nan_value_counts=numbers(told["nan_value_counts"]),
        split_offsets=told["split_offsets"],
        sort_order_id=told["sort_order_id"],
        **bounds,
    )


def payload_of(event: dict[str, Any]) -> Payload:
    body = event["payload"]
    commit = uuid.UUID(body["commit_id"])
    if event["type"] == "START_COMMIT":
        return StartCommit(commit)
    if event["type"] == "COMMIT_COMPLETE":
        return CommitComplete(commit, moment(body["valid_through_ts"]))
    if event["type"] == "DATA_COMPLETE":
        positions = [
            SourcePosition(one["topic"], one["partition"], one["offset"], moment(one["timestamp"]))
            for one in body["assignments"]
        ]
        return DataComplete(commit, tuple(positions))
    if event["type"] == "DATA_WRITTEN":
        files = tuple(file_of(one) for one in body["data_files"])
        columns = (DAY, BUCKET) if files[0].partition else ()
        return DataWritten(commit, reference(body["table_reference"]), files, (), columns)
    return CommitToTable(
        commit, reference(body["table_reference"]), body["snapshot_id"], moment(body["valid_through_ts"])
    )


def event_of(told: dict[str, Any]) -> Event:
    timestamp = moment(told["timestamp"])
    assert timestamp is not None
    return Event(uuid.UUID(told["id"]), timestamp, told["group_id"], payload_of(told))


@pytest.mark.parametrize("name", sorted(GOLDEN.keys() - {"DataWritten_delete"}))
def test_an_event_has_the_bytes_that_java_writes(name: str) -> None:
    event = event_of(GOLDEN[name]["event"])
    assert encoded(event).hex() == GOLDEN[name]["bytes"]
    assert decoded(bytes.fromhex(GOLDEN[name]["bytes"])) == event


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_what_java_wrote_is_the_same_after_decoding_and_encoding(name: str) -> None:
    data = bytes.fromhex(GOLDEN[name]["bytes"])
    event = decoded(data)
    assert event is not None and encoded(event) == data


def test_delete_files_are_told_apart() -> None:
    event = decoded(bytes.fromhex(GOLDEN["DataWritten_delete"]["bytes"]))
    assert event is not None and isinstance(event.payload, DataWritten)
    (deletes,) = event.payload.delete_files or ()
    assert (deletes.content, deletes.equality_ids, event.payload.table.uuid) == (2, [2], None)


def written() -> Event:
    file = WrittenFile(
        "s3://lake/db/t/data/00000.parquet",
        "PARQUET",
        1000,
        4096,
        partition=(20666, "bucket-0"),
        column_sizes={column: column * 10 for column in range(1, 21)},
        lower_bounds=dict.fromkeys(range(1, 21), b"\x00" * 16),
        upper_bounds=dict.fromkeys(range(1, 21), b"\xff" * 16),
    )
    table = TableReference("iceberg", ("db",), "t", uuid.uuid4())
    payload = DataWritten(uuid.uuid4(), table, (file,), (), (DAY, BUCKET))
    return Event(uuid.uuid4(), NOW, "connect-x", payload)


def test_a_schema_that_the_format_has_no_room_for_is_refused() -> None:
    event = written()
    assert isinstance(event.payload, DataWritten) and event.payload.data_files
    columns = tuple(PartitionColumn(f"column_number_{at}", 1000 + at, "string") for at in range(700))
    file = replace(event.payload.data_files[0], partition=("x",) * 700)
    wide = replace(event, payload=replace(event.payload, data_files=(file,), partition_columns=columns))
    with pytest.raises(FatalError, match="too many partition columns"):
        encoded(wide)


def test_names_beyond_ascii_survive() -> None:
    event = written()
    assert isinstance(event.payload, DataWritten) and event.payload.data_files
    columns = (PartitionColumn("größe\N{ROCKET}", 1000, "string"), BUCKET)
    file = replace(event.payload.data_files[0], partition=("\N{ROCKET}", None))
    odd = replace(event, payload=replace(event.payload, data_files=(file,), partition_columns=columns))
    data = encoded(odd)
    assert decoded(data) == odd
    # As Java writes them: in two halves of three bytes each.
    assert b"\xed\xa0\xbd\xed\xba\x80" in data[: data.index(b"}]}") + 20_000]


def test_an_event_of_a_kind_that_nobody_knows_yet_is_passed_over() -> None:
    data = bytearray(encoded(Event(uuid.uuid4(), NOW, "g", StartCommit(uuid.uuid4()))))
    length = int.from_bytes(data[2:4], "big")
    data[4 + length + 16] = 18
    assert decoded(bytes(data)) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xc2", b"\xc2\x01", b"{}", b"\xc2\x01\x00\x02{}", b"\xc2\x01\x00\x01["]
)
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(BadDatum):
        decoded(data)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_events_are_refused_or_read_and_nothing_else(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(GOLDEN)))
    whole = bytearray.fromhex(GOLDEN[name]["bytes"])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with contextlib.suppress(BadDatum):
        decoded(bytes(whole[:cut] if data.draw(st.booleans()) else whole))


def with_schema(schema: Any, body: bytes) -> bytes:
    text = json.dumps(schema).encode()
    return b"\xc2\x01" + len(text).to_bytes(2, "big") + text + body


def test_a_schema_whose_values_have_no_bytes_does_not_keep_a_coordinator_busy() -> None:
    doubled: Any = "null"
    for level in range(30):
        again = f"r{level - 1}" if level else "null"
        fields = [{"name": "a", "type": doubled}, {"name": "b", "type": again}]
        doubled = {"type": "record", "name": f"r{level}", "fields": fields}
    with pytest.raises(BadDatum, match="more values than any event"):
        decoded(with_schema(doubled, b""))
    nulls = {"type": "array", "items": "null"}
    listed = {"type": "record", "name": "e", "fields": [{"name": "x", "type": nulls}]}
    many_blocks = b"\xfe\x3f" * 20_000  # 4,095 items each
    with pytest.raises(BadDatum, match="more values than any event"):
        decoded(with_schema(listed, many_blocks))


def test_records_in_each_other_have_a_limit_of_levels() -> None:
    chain = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}
    for levels in (100, 10_000):
        with pytest.raises(BadDatum, match="nested deeper than 64 levels"):
            decoded(with_schema(chain, b"\x02" * levels + b"\x00"))
    with pytest.raises(BadDatum, match="not that of an event"):
        decoded(with_schema(chain, b"\x02" * 60 + b"\x00"))
