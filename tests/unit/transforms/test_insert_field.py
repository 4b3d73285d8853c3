"""InsertField: what is known of a record, as fields."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.schema import STRING, ConnectSchema, Kind, struct, timestamp
from icestream.transforms.groups import Side
from icestream.transforms.insert_field import InsertField
from tests.unit.transforms.groups import maps, structs, values

KEYS = ("topic.field", "partition.field", "offset.field", "timestamp.field", "static.field", "static.value")
EVERYTHING = {
    "topic.field": "t!",
    "partition.field": "p",
    "offset.field": "o?",
    "timestamp.field": "ts",
    "static.field": "s",
    "static.value": "fixed",
}


def insert(settings: dict[str, str]) -> InsertField:
    given: dict[str, Any] = {**dict.fromkeys(KEYS), **settings, "replace.null.with.default": True}
    return InsertField.configured(given, Side.VALUE)


def from_kafka(records: Records, *timestamps: int | None) -> Records:
    return replace(
        records,
        partitions=np.full(len(records), 3),
        offsets=np.arange(len(records)) + 50,
        timestamps=pa.array(timestamps, pa.int64()),
    )


def test_maps() -> None:
    applied = insert(EVERYTHING).apply(from_kafka(maps({"a": 1}, {"ts": "old"}), 7, None))
    everything = {"t": "orders", "p": 3, "s": "fixed"}
    assert values(applied) == {
        0: {"a": 1, **everything, "o": 50, "ts": 7},
        1: {"ts": "old", **everything, "o": 51},
    }


def test_structs() -> None:
    schema = struct(("a", ConnectSchema(Kind.INT32)), name="n", optional=True)
    applied = insert(EVERYTHING).apply(from_kafka(structs(schema, [{"a": 1}]), 1_000))
    (records,) = applied.records
    assert isinstance(records.value, Column)
    assert records.value.schema == struct(
        ("a", ConnectSchema(Kind.INT32)),
        ("t", STRING),
        ("p", ConnectSchema(Kind.INT32, optional=True)),
        ("o", ConnectSchema(Kind.INT64, optional=True)),
        ("ts", timestamp(optional=True)),
        ("s", ConnectSchema(Kind.STRING, optional=True)),
        name="n",
    )
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert records.value.values.to_pylist() == [
        {"a": 1, "t": "orders", "p": 3, "o": 50, "ts": moment, "s": "fixed"}
    ]


def test_records_of_a_source_have_no_offset() -> None:
    applied = insert({"offset.field": "o"}).apply(maps({"a": 1}))
    assert applied.failed[0].reason == (
        "Only SinkRecord supported for [field insertion], found: org.apache.kafka.connect.source.SourceRecord"
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "No field insertion configured"),
        ({"static.field": "s"}, "No value specified for static field: s"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        insert(settings)
