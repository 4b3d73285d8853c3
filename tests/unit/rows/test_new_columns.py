"""A batch adds no more columns than allowed; records that need more are rejected, and only those."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    TIME,
    ConnectSchema,
    Kind,
    array,
    decimal,
    map_of,
    struct,
)
from icestream.records.values import Fields, object_fields
from icestream.rows.new_columns import NO_LONGER_REQUIRED, GrowthLimit, column_count, trimmed
from icestream.rows.record_shape import RecordShape, one_table
from icestream.rows.schema_drift import SchemaDrift, column_type, limited_to
from icestream.rows.to_rows import RowConverter, Rows

TABLE = pa.schema([("id", pa.int64()), ("inner", pa.struct([("n", pa.int32())]))])
LIMIT = GrowthLimit(3, 20, 3, frozenset(["_pos", "_file"]))
MANY = {f"k{number}": number for number in range(20_000)}


def test_the_settings_have_defaults() -> None:
    values = SINK_CONNECTOR.parse({"name": "x", "connector.class": "y"})
    limit = GrowthLimit.from_config({})
    assert limit == GrowthLimit(values["icestream.new.columns.max"], 255, 1_000)
    assert GrowthLimit.from_config({"icestream.new.columns.max": "7"}).less(5).columns == 2
    assert GrowthLimit.from_config({"icestream.new.columns.name.length.max": "9"}) == GrowthLimit(
        1_000, 9, 1_000
    )


def test_of_one_field_that_is_too_large_a_part_is_taken() -> None:
    """Tasks that found parts of it have left out rows: with no field at all they would be lost."""
    wide = pa.struct([(f"k{number}", pa.int64()) for number in range(8)])
    part = pa.struct([("k0", pa.int64()), ("k1", pa.int64())])
    assert limited_to(TABLE, {("x",): wide}, GrowthLimit(2, 20, 2)) == {("x",): part}
    assert limited_to(TABLE, {("x",): pa.list_(wide)}, GrowthLimit(2, 20, 2)) == {("x",): pa.list_(part)}
    deep = {("x",): pa.struct([("y", wide)])}
    assert limited_to(TABLE, deep, GrowthLimit(2, 20, 2)) == {("x",): pa.struct([("y", part)])}
    whole = {("x",): pa.map_(pa.string(), wide)}
    assert limited_to(TABLE, whole, GrowthLimit(2, 20, 2)) == whole


def test_columns_are_counted_where_values_are() -> None:
    nested = pa.struct(
        [("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.string())])))]
    )
    assert column_count({("x",): nested, ("y",): pa.map_(pa.string(), pa.int64())}) == 5
    fields = {("b",): pa.int64(), ("a",): nested, ("c",): pa.int64()}
    assert list(trimmed(fields, 2)) == [("b",), ("c",)]
    assert trimmed(fields, 5) == fields


def test_tasks_together_keep_to_the_limit_and_changes_of_what_is_there_stay() -> None:
    fields = {("a",): pa.int64(), ("b",): pa.int64(), ("inner", "n"): pa.int64(), ("inner", "x"): pa.int64()}
    assert limited_to(TABLE, fields, GrowthLimit(2, 20, 2)).keys() == {("a",), ("b",), ("inner", "n")}
    assert limited_to(TABLE, fields, GrowthLimit(3, 20, 3)) == fields


def _fields(*records: Any) -> Fields:
    return object_fields(JsonSource([json.dumps(record).encode() for record in records]))


def _rows(value: Any, length: int, drift: SchemaDrift) -> Rows:
    return RowConverter(TABLE, drift).to_rows(value, length)


def _told(made: Rows) -> dict[int, str]:
    return {at: why.reason for at, why in made.failed.items()}


def test_a_record_with_countless_keys_is_rejected_and_its_neighbours_are_not() -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    records = [{"id": 1}, {"id": 2, **MANY}, {"id": 3, "new": 1}, {"id": 4, "inner": {"n": 1, "y": {"z": 1}}}]
    made = _rows(_fields(*records), 4, drift)
    assert drift.found == {("new",): pa.int64(), ("inner", "y"): pa.struct([("z", pa.int64())])}
    reason = "the record has 20000 fields that the table lacks, and a batch may add 3 columns"
    assert _told(made) == {1: f"{reason} (icestream.new.columns.max)"}
    assert made.index.tolist() == [0, 2, 3]
    assert made.rows["id"].to_pylist() == [1, 3, 4]


def test_records_share_the_limit_in_their_order() -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    made = _rows(_fields(*({"id": at, f"k{at}": at} for at in range(6))), 6, drift)
    assert drift.found.keys() == {("k0",), ("k1",), ("k2",)}
    assert list(_told(made)) == [3, 4, 5]
    again = _rows(_fields({"id": 9, "k9": 1}, {"id": 1, "k1": 1}), 2, drift)
    assert list(_told(again)) == [0]


def test_a_name_that_is_too_long_is_rejected() -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    made = _rows(_fields({"id": 1, "x" * 21: 1}, {"id": 2, "in": {"y" * 30: 1}}, {"id": 3}), 3, drift)
    assert drift.found == {}
    assert [told.partition(" characters")[0][-2:] for told in _told(made).values()] == ["21", "30"]


def test_edited_records_are_judged_row_by_row() -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    value = _fields({"id": 1, **MANY}, {"id": 2, "inner": {"n": 1}}, {"id": 3}).put(
        {"added": Column(pa.array([1, 2, 3])), "long" * 9: Column(pa.array([None, 1, None]))}
    )
    made = _rows(value, 3, drift)
    assert list(_told(made)) == [0, 1]
    assert drift.found == {("added",): pa.int64()}
    assert made.index.tolist() == [2]


def test_a_schema_with_too_many_fields_rejects_its_records() -> None:
    wide = struct(*((f"f{number}", OPTIONAL_STRING) for number in range(4)))
    arrays = [pa.array(["a", "b"]) for _ in wide.fields]
    column = Column(pa.StructArray.from_arrays(arrays, [one.name for one in wide.fields]), wide)
    drift = SchemaDrift(TABLE, LIMIT)
    made = _rows(column, 2, drift)
    assert list(_told(made)) == [0, 1]
    assert drift.found == {}
    assert made.rows.num_rows == 0


def test_nothing_is_added_when_nothing_may_be() -> None:
    """As when a batch that is in the table is decoded again for its dead letters."""
    drift = SchemaDrift(TABLE, LIMIT.less(3))
    made = _rows(_fields({"id": 1}, {"id": 2, "k": 1}), 2, drift)
    assert (list(_told(made)), drift.found) == ([1], {})


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"": 1}, "a field named ''"),
        ({"a": {"b\0": 1}}, "a field named 'b\\x00'"),
        ({"x": [{"\n": 1}]}, "a field named '\\n'"),
        ({"_pos": 1}, "'_pos', which engines of the table reserve"),
        ({"_file": {"a": 1}}, "'_file', which engines of the table reserve"),
    ],
)
def test_a_name_that_would_spoil_the_table_for_its_readers_is_refused(
    record: dict[str, Any], words: str
) -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    made = _rows(_fields({"id": 1, "b": {"_pos": 1}}, {"id": 2, **record}), 2, drift)
    assert drift.found.keys() == {("b",)}
    assert list(_told(made)) == [1] and words in _told(made)[1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"inner.n": 1}),
        ({"a": {"b": 1}}, {"a.b": 1}),
        ({"a.b": 1}, {"a": {"b": 1}}),
        ({"l": [{"x": 1}]}, {"l.x": 1}),
        ({"l": [{"x": 1}]}, {"l.element": 1}),
        ({"a": {"b": 1}}, {"A.b": 1}),
        ({}, {"s": {"a.b": 1, "a": {"b": 2}}}),
    ],
)
def test_a_field_that_is_another_one_by_its_dots_is_refused(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    made = _rows(_fields({"id": 1, **first}, {"id": 2, **second}), 2, drift)
    assert drift.found.keys() == {(name,) for name in first}
    assert list(_told(made)) == [1] and "by its dots the same column" in _told(made)[1]


def test_fields_with_dots_are_columns_where_nothing_else_is_named_so() -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    made = _rows(_fields({"id": 1, "a.b": 1, "a": 2}, {"id": 2, "l": [{"element": 1}]}), 2, drift)
    assert (drift.found.keys(), list(_told(made))) == ({("a.b",), ("a",), ("l",)}, [])


def test_of_fields_that_tasks_found_apart_one_becomes_a_column() -> None:
    inside = pa.struct([("b", pa.int64())])
    both = {("a",): inside, ("a.b",): pa.int64()}
    assert limited_to(TABLE, both, LIMIT) == {("a",): inside}
    assert one_table(pa.struct([("a.b", pa.int64()), ("a", inside)])) == pa.struct([("a", inside)])


def test_a_new_table_gets_no_fields_that_are_one_by_their_dots() -> None:
    shape = RecordShape(LIMIT)
    shape.look(_fields({"a": {"b": 1}}))
    shape.look(_fields({"a.b": 1}))
    assert shape.kind == pa.struct([("a", pa.struct([("b", pa.int64())]))])
    assert shape.refused is not None and "by its dots" in shape.refused


def test_a_schema_with_nothing_in_it_makes_no_column() -> None:
    """Parquet has no empty structs: a table with one could not be written to any more."""
    nothing = struct()
    schema = struct(
        ("e", nothing),
        ("l", array(nothing)),
        ("m", map_of(STRING, nothing)),
        ("s", struct(("e", nothing), ("n", STRING))),
        ("deep", struct(("e", struct(("e", nothing))))),
    )
    drift = SchemaDrift(TABLE, LIMIT)
    assert drift.in_schema(schema) is None
    assert drift.found == {("s",): pa.struct([pa.field("n", pa.string(), False)])}
    assert column_type(schema) == pa.struct(
        [pa.field("s", pa.struct([pa.field("n", pa.string(), False)]), False)]
    )


def test_a_decimal_of_a_negative_scale_has_a_column_of_none() -> None:
    drift = SchemaDrift(TABLE, LIMIT)
    assert drift.in_schema(struct(("d", decimal(-5)))) is None
    assert drift.found == {("d",): pa.decimal128(38, 0)}


def test_columns_that_identify_rows_stay_required_whatever_a_schema_says() -> None:
    table = pa.schema([pa.field("id", pa.string(), False), pa.field("other", pa.string(), False)])
    drift = SchemaDrift(table, LIMIT, always_required=frozenset(["id"]))
    assert drift.in_schema(struct(("id", OPTIONAL_STRING), ("other", OPTIONAL_STRING))) is None
    assert drift.found == {("other", NO_LONGER_REQUIRED): pa.null()}


def test_a_type_that_the_table_cannot_get_is_refused() -> None:
    drift = SchemaDrift(TABLE, replace(LIMIT, unfit=(pa.time64("us"),)))
    time = ConnectSchema(Kind.INT32, name=TIME)
    for schema in (struct(("t", time)), struct(("l", array(struct(("t", time)))))):
        assert "of type time64[us], which this table cannot get" in str(drift.in_schema(schema))
    assert drift.found == {}


def test_maps_as_keys_of_maps_are_refused() -> None:
    inner = map_of(STRING, STRING)
    drift = SchemaDrift(TABLE, LIMIT)
    for key in (inner, struct(("m", inner)), array(inner)):
        assert "maps as the keys of a map" in str(drift.in_schema(struct(("x", map_of(key, STRING)))))
    assert drift.in_schema(struct(("x", map_of(STRING, inner)))) is None
