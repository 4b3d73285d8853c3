"""What has no place in the parity tests: records of sources, and what Java could hold but a column cannot."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.plain import plain
from icestream.records.records import Records, Transform
from icestream.records.schema import OPTIONAL_STRING, STRING, ConnectSchema, Kind, struct
from icestream.records.values import Value, object_fields
from icestream.transforms.cdc.debezium import DebeziumTransform
from icestream.transforms.cdc.mongo_debezium import MongoDebeziumTransform
from icestream.transforms.chain import chain_from
from icestream.transforms.groups import Side
from icestream.transforms.json_to_map import JsonToMapTransform
from icestream.transforms.kafka_metadata import KafkaMetadataTransform

DEEP = 10_000


def records(value: Value, key: Value = None, *, length: int = 1, source: bool = False) -> Records:
    offsets = None if source else np.arange(length)
    numbers = np.zeros(length, np.int64)
    return Records(np.arange(length), "t", numbers, pa.array([5] * length), key, value, (), offsets)


def strings(*texts: str) -> Column:
    return Column(pa.array(texts, pa.string()), STRING)


def reasons(transform: Transform, given: Records) -> list[str]:
    applied = transform.apply(given)
    assert not applied.records
    return [failure.reason for failure in applied.failed.values()]


def test_records_of_a_source_have_no_offset() -> None:
    event = {"op": "c", "after": {"a": 1}, "source": {"db": "d", "table": "t"}}
    given = records(object_fields(JsonSource([json.dumps(event).encode()])), source=True)
    (made,) = DebeziumTransform(None).apply(given).records
    (row,) = plain(made.value, 1)
    assert row == {"a": 1, "_cdc": {"op": "I", "ts": None, "source": "d.t", "target": "d.t"}}
    (reason,) = reasons(KafkaMetadataTransform("m", False, None), given)
    assert "is for sinks" in reason


def test_a_truncate_is_told_without_a_row() -> None:
    """Java drops it, or fails: rows that are gone would stay."""
    event = {"op": "t", "before": None, "after": None, "source": {"db": "d", "table": "t"}, "ts_ms": 7}
    given = records(object_fields(JsonSource([json.dumps(event).encode()])))
    (made,) = DebeziumTransform(None).apply(given).records
    (row,) = plain(made.value, 1)
    assert row == {"_cdc": {"op": "T", "ts": 7, "offset": 0, "source": "d.t", "target": "d.t"}}
    of_row = struct(("a", OPTIONAL_STRING))
    schema = struct(
        ("op", STRING),
        ("ts_ms", ConnectSchema(Kind.INT64)),
        ("source", struct(("db", STRING), ("table", STRING))),
        ("after", replace(of_row, optional=True)),
    )
    values = pa.array(
        [{"op": "t", "ts_ms": 7, "source": {"db": "d", "table": "t"}, "after": None}], schema.arrow_type
    )
    applied = DebeziumTransform(None).apply(records(Column(values, schema)))
    (made,) = applied.records
    assert isinstance(made.value, Column) and not applied.failed
    (row,) = made.value.values.to_pylist()
    assert list(row) == ["_cdc"] and row["_cdc"]["op"] == "T"


def test_the_place_of_bad_json_in_a_source() -> None:
    (reason,) = reasons(JsonToMapTransform(False), records(strings("{"), source=True))
    assert reason == "record.value is not valid json for record.value: topic t partition 0"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{{"a": {"9" * 77}}}', "A number has more than 76 digits"),
        (f'{{"a": {"[" * DEEP}{"]" * DEEP}}}', "is not valid json"),
        (f'{{"a": {"[" * 400}1{"]" * 400}}}', "nested"),
        (f'{{"a": {{"b": {"[" * 1200}1{"]" * 1200}}}}}', "is not valid json"),
        (f'{{"a": {"9" * 10_000}}}', "is not valid json"),
    ],
    ids=["digits", "deep", "arrays", "text", "number"],
)
def test_json_that_no_column_can_hold_fails_alone(text: str, reason: str) -> None:
    applied = JsonToMapTransform(False).apply(records(strings(text, '{"a": 1}'), length=2))
    assert [list(group.rows) for group in applied.records] == [[1]]
    assert reason in applied.failed[0].reason


@pytest.mark.parametrize("from_root", [False, True])
def test_half_a_surrogate_pair_is_a_question_mark(from_root: bool) -> None:
    text = r'{"a\ud800": "x\ud800", "b": {"\ud800": ["\ud800"]}}'
    (made,) = JsonToMapTransform(from_root).apply(records(strings(text))).records
    (row,) = plain(made.value, 1)
    found = row["payload"] if from_root else row
    assert found["a?"] == "x?"
    assert found["b"] == ('{"?":["?"]}' if from_root else {"?": '["?"]'})


def test_documents_of_mongodb_that_are_too_deep_fail_alone() -> None:
    schema = struct(
        ("before", OPTIONAL_STRING),
        ("after", OPTIONAL_STRING),
        ("updateDescription", OPTIONAL_STRING),
        name="a.Envelope",
    )
    texts = ['{"a":' * deep + "1" + "}" * deep for deep in (DEEP, 101, 99)]
    value = Column(
        pa.array([{"after": text} for text in [*texts, '{"a": "\\ud800"}']], schema.arrow_type), schema
    )
    key_schema = struct(("id", STRING), name="a.Key")
    key = Column(pa.array([{"id": "1"}] * 4, key_schema.arrow_type), key_schema)
    applied = MongoDebeziumTransform.configured({"array_handling_mode": None}, Side.VALUE).apply(
        records(value, key, length=4)
    )
    assert sorted(row for group in applied.records for row in group.rows.tolist()) == [2, 3]
    assert "Extended JSON" in applied.failed[0].reason
    assert "more than 100 levels" in applied.failed[1].reason


@pytest.mark.parametrize("package", ["org.apache.iceberg", "io.tabular.iceberg"])
@pytest.mark.parametrize(
    "name",
    [
        *("CopyValue", "DebeziumTransform", "DmsTransform"),
        *("JsonToMapTransform", "KafkaMetadataTransform", "MongoDebeziumTransform"),
    ],
)
def test_configs_name_them_as_iceberg_and_tabular_do(package: str, name: str) -> None:
    copied = (
        {"transforms.a.source.field": "x", "transforms.a.target.field": "y"} if name == "CopyValue" else {}
    )
    config = {"transforms": "a", "transforms.a.type": f"{package}.connect.transforms.{name}", **copied}
    (step,) = chain_from(config).steps
    assert type(step.transform).__name__ == name
