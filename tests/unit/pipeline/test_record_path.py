"""Whatever a chunk mixes, a record keeps its own offset, timestamp and value on its way to a row."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Message
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.kafka.chunk import Chunk
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.plain import plain
from tests.unit.pipeline.batches import CONFIG, SOURCE, Sent, World, chunk, reasons, rows_of

ENVELOPES = {"value.converter.schemas.enable": "true"}
TABLE = Schema(it.NestedField(1, "a", it.LongType()))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(tmp_path, monkeypatch)


def _envelope(payload: Any, *, payload_first: bool = False) -> bytes:
    schema = {"type": "struct", "optional": True, "fields": [{"field": "a", "type": "int64"}]}
    parts = {"schema": schema, "payload": payload}
    return json.dumps(dict(reversed(parts.items())) if payload_first else parts).encode()


def test_records_whose_envelopes_are_spelled_differently_keep_their_places() -> None:
    path = record_path_from(RecordSettings({**CONFIG, **ENVELOPES}))
    values = [_envelope({"a": at}, payload_first=at % 3 == 0) for at in range(10)]
    for _ in range(2):
        found = {
            int(row): (value["a"], int(moment))
            for records in path.prepare(chunk(values)).records
            for row, value, moment in zip(
                records.rows, plain(records.value, len(records)), records.timestamps.to_pylist(), strict=True
            )
        }
        assert found == {at: (at, 1000 + at) for at in range(10)}


def test_records_without_a_timestamp_have_none_to_insert() -> None:
    insert = {
        "transforms": "when",
        "transforms.when.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.when.timestamp.field": "at",
    }
    path = record_path_from(RecordSettings({**CONFIG, **insert}))
    (records,) = path.prepare(chunk([b'{"a":1}'], moment=-1)).records
    assert plain(records.value, 1) == [{"a": 1}]


def test_nulls_with_a_schema_make_no_rows(world: World) -> None:
    values = [_envelope({"a": 0}), _envelope(None), _envelope({"a": 2}), None]
    staged = world.staged(values, world.table(TABLE), config=ENVELOPES)
    assert rows_of(staged) == [{"a": 0}, {"a": 2}]
    ((counts,),) = (part.counts.values() for part in staged.result.staged.values())
    assert (counts.read, counts.written, counts.rejected, counts.filtered) == (4, 2, 0, 2)


def test_nulls_that_a_transform_leaves_make_no_rows_and_are_not_rejected(world: World) -> None:
    extract = {
        "transforms": "inner",
        "transforms.inner.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.inner.field": "inner",
    }
    values = [b'{"inner":{"a":0}}', b'{"inner":null}', b'{"inner":"text"}', b"{}", b'{"inner":{"a":4}}']
    staged = world.staged(values, world.table(TABLE), config=extract)
    assert rows_of(staged) == [{"a": 0}, {"a": 4}]
    assert list(reasons(staged)) == [2]


def test_headers_are_fetched_once_however_many_records_have_them() -> None:
    drop = {
        "transforms": "t",
        "transforms.t.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "transforms.t.headers": "a",
    }
    path = record_path_from(RecordSettings({**CONFIG, **drop}))
    sent = [Sent(at, b"{}", named=[(str(at % 7), b"x")]) for at in range(100)]
    found = path.prepare(Chunk.of(SOURCE, cast("list[Message]", sent))).records
    assert {int(row): records.headers[0].name for records in found for row in records.rows} == {
        at: str(at % 7) for at in range(100)
    }
    assert max(message.asked for message in sent) <= 2
