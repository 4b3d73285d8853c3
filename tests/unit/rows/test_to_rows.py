"""Records to rows of a table: text, edited text and schema-carrying columns give the same rows."""

import datetime as dt
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.records import schema as schemas
from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Listing, Text, object_fields
from icestream.rows.new_columns import NO_LONGER_REQUIRED
from icestream.rows.schema_drift import SchemaDrift
from icestream.rows.to_rows import RowConverter, Rows

TABLE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("inner", pa.struct([("n", pa.int32()), ("deep", pa.struct([("s", pa.string())]))])),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("props", pa.map_(pa.string(), pa.string())),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
RECORD = {
    "id": 1,
    "name": "a",
    "inner": {"n": 5, "deep": {"s": "x"}},
    "tags": ["t", "u"],
    "props": {"k": "v"},
    "at": "2026-11-15T10:00:00Z",
}
ROW = {
    **RECORD,
    "props": [("k", "v")],
    "at": dt.datetime(2026, 11, 15, 10, tzinfo=dt.UTC),
}


def _fields(*records: Any) -> Fields:
    return object_fields(JsonSource([json.dumps(record).encode() for record in records]))


def _rows(value: Any, length: int, drift: SchemaDrift | None = None) -> Rows:
    return RowConverter(TABLE, drift).to_rows(value, length)


def _reasons(made: Rows) -> dict[int, str]:
    return {at: why.reason for at, why in made.failed.items()}


def test_untouched_text_is_decoded_as_it_is() -> None:
    assert _rows(_fields(RECORD), 1).rows.to_pylist() == [ROW]


def test_renamed_inserted_and_removed_fields_land_where_their_names_say() -> None:
    fields = _fields({**RECORD, "id": None, "label": "b", "key": 9})
    edited = fields.put(
        {"id": fields.get("key"), "key": None, "name": Column(pa.array(["new"])), "tags": None}
    )
    (row,) = _rows(edited, 1).rows.to_pylist()
    assert row == {**ROW, "id": 9, "name": "new", "tags": None}


def test_one_text_serves_several_columns_and_paths_inside_each_other() -> None:
    fields = _fields(RECORD)
    rest = fields.rest
    assert rest is not None
    inner = rest.child("inner")
    edited = fields.put({"name": inner.child("deep").child("s"), "props": inner, "inner": inner})
    (row,) = _rows(edited, 1).rows.to_pylist()
    assert row["name"] == "x"
    assert row["inner"] == ROW["inner"]
    assert row["props"] == [("n", "5"), ("deep", '{"s":"x"}')]


def test_a_whole_value_becomes_one_column() -> None:
    fields = _fields({"n": 3, "deep": {"s": "y"}}, {"n": 4})
    hoisted = Fields({"id": Column(pa.array([1, 2])), "inner": fields, "name": fields.rest}, None, 2)
    rows = _rows(hoisted, 2).rows.to_pylist()
    assert [row["inner"] for row in rows] == [{"n": 3, "deep": {"s": "y"}}, {"n": 4, "deep": None}]
    assert [json.loads(row["name"]) for row in rows] == [{"n": 3, "deep": {"s": "y"}}, {"n": 4}]


def test_an_object_that_was_changed_inside_fits_a_struct_a_map_and_text() -> None:
    inside = _fields({"n": 3, "x": 1}).put({"x": None, "deep": _fields({"s": "z"})})
    changed = Fields({"id": Column(pa.array([1])), "inner": inside, "props": inside, "name": inside}, None, 1)
    (row,) = _rows(changed, 1).rows.to_pylist()
    assert row["inner"] == {"n": 3, "deep": {"s": "z"}}
    assert row["props"] == [("n", "3"), ("deep", '{"s":"z"}')]
    assert json.loads(row["name"]) == {"n": 3, "deep": {"s": "z"}}


def test_rows_that_do_not_fit_are_named_and_the_others_land() -> None:
    fields = _fields(*({**RECORD, "id": number} for number in range(100)))
    edited = fields.put({"at": Column(pa.array(["2026-11-15"] * 50 + ["never"] + ["2026-11-16"] * 49))})
    made = _rows(edited, 100)
    assert _reasons(made) == {
        50: "field 'at' is \"never\", which does not fit a column of type timestamp[us, tz=UTC]"
    }
    assert made.index.tolist() == [*range(50), *range(51, 100)]
    assert made.rows["id"].to_pylist() == made.index.tolist()


def test_text_that_does_not_fit_is_refused_beside_edits() -> None:
    fields = _fields({**RECORD, "id": 1}, {**RECORD, "id": "x"}, {**RECORD, "id": 3})
    made = _rows(fields.put({"name": None}), 3)
    assert _reasons(made) == {1: "field 'id' is \"x\", which does not fit a column of type int64"}
    assert made.rows["id"].to_pylist() == [1, 3]


def test_only_some_rows_of_a_chunk_are_decoded() -> None:
    fields = _fields(*({**RECORD, "id": number} for number in range(6)))
    some = fields.take(np.array([1, 4]))
    assert _rows(some, 2).rows["id"].to_pylist() == [1, 4]
    assert _rows(some.put({"name": None}), 2).rows["id"].to_pylist() == [1, 4]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (Column(pa.array([1])), "int64"),
        (Column(pa.array(["x"]), schemas.STRING), "STRING"),
        (Listing(Text(JsonSource([b"[1]"]))), "a list"),
    ],
)
def test_what_has_no_fields_is_no_row(value: Any, what: str) -> None:
    assert _reasons(_rows(value, 1)) == {0: f"the value is {what}, and a row needs an object with fields"}


SCHEMA = schemas.struct(
    ("id", ConnectSchema(Kind.INT32)),
    ("name", ConnectSchema(Kind.STRING, optional=True, default="nobody")),
    ("inner", schemas.struct(("n", ConnectSchema(Kind.INT64)), optional=True)),
    ("props", schemas.map_of(schemas.STRING, ConnectSchema(Kind.FLOAT64))),
    ("at", schemas.timestamp()),
    ("more", schemas.decimal(2)),
)


def _struct(*rows: dict[str, Any]) -> Column:
    return Column(pa.array(rows, SCHEMA.arrow_type), SCHEMA)


def test_a_struct_fits_by_name_with_its_defaults() -> None:
    at = dt.datetime(2026, 11, 15, tzinfo=dt.UTC)
    column = _struct(
        {"id": 1, "inner": {"n": 2}, "props": {"k": 1.0}, "at": at},
        {"id": 2, "name": "b", "inner": {"n": 2**40}, "at": at},
    )
    made = _rows(column, 2)
    assert made.rows.to_pylist() == [
        {
            "id": 1,
            "name": "nobody",
            "inner": {"n": 2, "deep": None},
            "tags": None,
            "props": [("k", "1.0")],
            "at": at,
        }
    ]
    assert "1099511627776" in _reasons(made)[1]


def test_a_schema_tells_of_new_wider_and_optional_fields_once() -> None:
    table = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("name", pa.string(), nullable=False),
            pa.field("inner", pa.struct([pa.field("n", pa.int32())])),
        ]
    )
    drift = SchemaDrift(table)
    RowConverter(table, drift).to_rows(_struct({"id": 1}), 1)
    expected = {
        ("name", NO_LONGER_REQUIRED): pa.null(),
        ("inner", "n"): pa.int64(),
        ("props",): pa.map_(pa.string(), pa.field("value", pa.float64(), nullable=False)),
        ("at",): pa.timestamp("us", "UTC"),
        ("more",): pa.decimal128(38, 2),
    }
    assert drift.found == expected
    # iceberg.tables.schema-force-optional
    forced = SchemaDrift(table, force_optional=True)
    RowConverter(table, forced).to_rows(_struct({"id": 1}), 1)
    assert forced.found == {**expected, ("props",): pa.map_(pa.string(), pa.float64())}


def test_new_keys_are_found_under_edits_and_removed_ones_are_not_new() -> None:
    drift = SchemaDrift(TABLE)
    fields = _fields(
        {**RECORD, "secret": 1, "inner": {"n": 1, "extra": True}}, {**RECORD, "secret": 2, "fresh": 1.5}
    )
    edited = fields.put(
        {
            "secret": None,
            "static": Column(pa.array([1, 2], pa.int8())),
            "renamed": fields.get("inner"),
            "empty": Column(pa.nulls(2)),
        }
    )
    _rows(edited, 2, drift)
    assert drift.found == {
        ("inner", "extra"): pa.bool_(),
        ("fresh",): pa.float64(),
        ("static",): pa.int64(),
        ("renamed",): pa.struct(
            [("n", pa.int64()), ("extra", pa.bool_()), ("deep", pa.struct([("s", pa.string())]))]
        ),
    }
