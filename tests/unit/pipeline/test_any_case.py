"""`iceberg.tables.schema-case-insensitive`: fields match columns whatever their case, on every level."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.table import IcebergTable
from icestream.rows.any_case import folded
from tests.unit.pipeline.batches import World, reasons, rows_of

F = it.NestedField
TABLE = Schema(
    F(1, "Id", it.LongType(), required=True),
    F(2, "price", it.DecimalType(20, 10)),
    F(3, "inner", it.StructType(F(10, "userName", it.StringType()), F(11, "n", it.LongType()))),
    F(4, "ITEMS", it.ListType(12, it.StructType(F(13, "Key", it.StringType())), False)),
    F(5, "props", it.MapType(14, it.StringType(), 15, it.StructType(F(16, "V", it.LongType())), False)),
)
RECORD = b"""{"iD":1,"PRICE":1234567890.0123456789,"Inner":{"USERNAME":"u","N":5},
 "items":[{"KEY":"a"},null,{"key":"b"}],"Props":{"Keys":{"v":1},"keys":{"V":2}}}""".replace(b"\n", b"")
ROW = {
    "Id": 1,
    "price": "1234567890.0123456789",
    "inner": {"userName": "u", "n": 5},
    "ITEMS": [{"Key": "a"}, None, {"Key": "b"}],
    # The keys of maps are values.
    "props": {"Keys": {"V": 1}, "keys": {"V": 2}},
}
INSERT = {
    "transforms": "i",
    "transforms.i.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.i.static.field": "NOTE",
    "transforms.i.static.value": "x",
}
ENVELOPES = {"value.converter.schemas.enable": "true"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def table(world: World, schema: Schema = TABLE, name: str = "events") -> IcebergTable:
    made = world.table(schema, name=name)
    made._any_case = True
    return made


def rows(staged: Any) -> list[dict[str, Any]]:
    return [{**row, "price": row["price"] and str(row["price"])} for row in rows_of(staged)]


@pytest.mark.parametrize("evolves", [False, True])
def test_names_match_on_every_level_and_numbers_keep_their_digits(world: World, evolves: bool) -> None:
    exact = json.dumps({"Id": 2, "inner": {"n": 1}}).encode()
    staged = world.staged([RECORD, exact], table(world), evolves=evolves)
    assert not reasons(staged)
    other = {**dict.fromkeys(ROW), "Id": 2, "inner": {"userName": None, "n": 1}}
    assert rows(staged) == [ROW, other]
    assert len(next(iter(staged.plans.values())).schema.fields) == 5


def test_names_match_beside_fields_that_transforms_have_edited(world: World) -> None:
    schema = Schema(*TABLE.fields, F(6, "note", it.StringType()))
    (row,) = rows(world.staged([RECORD], table(world, schema), config=INSERT))
    assert row == {**ROW, "note": "x"}


def test_names_of_a_field_that_a_transform_has_taken_out_match_too(world: World) -> None:
    extract = {
        "transforms": "e",
        "transforms.e.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.e.field": "after",
    }
    staged = world.staged([b'{"after":{"ID":7,"INNER":{"n":3}}}'], table(world), config=extract)
    assert [(row["Id"], row["inner"]["n"]) for row in rows_of(staged)] == [(7, 3)]


def test_names_of_a_schema_match(world: World) -> None:
    inner = {
        "type": "struct",
        "field": "INNER",
        "fields": [{"field": "UserName", "type": "string", "default": "d"}],
    }
    items = {
        "type": "struct",
        "fields": [{"field": "key", "type": "string"}, {"field": "more", "type": "int32"}],
    }
    fields = [
        {"field": "ID", "type": "int64"},
        inner,
        {"field": "Items", "type": "array", "items": items},
    ]
    payload = {"ID": 1, "INNER": {}, "Items": [{"key": "a", "more": 5}]}
    value = json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()
    staged = world.staged([value], table(world), config=ENVELOPES)
    assert not reasons(staged)
    (row,) = rows_of(staged)
    assert (row["Id"], row["inner"]["userName"], row["ITEMS"]) == (1, "d", [{"Key": "a", "more": 5}])


def test_a_record_with_two_spellings_of_one_column_is_rejected_alone(world: World) -> None:
    staged = world.staged([b'{"id":1,"ID":2}', b'{"Id":3}', b'{"Id":4,"inner":{"n":1,"N":2}}'], table(world))
    assert [row["Id"] for row in rows_of(staged)] == [3]
    assert reasons(staged) == {
        0: "TASK_PUT: the fields 'ID' and 'id' are both the column 'Id' whatever their case; rename one",
        2: "TASK_PUT: the fields 'N' and 'n' are both the column 'n' whatever their case; rename one",
    }


def test_spellings_of_a_new_column_make_one_column(world: World) -> None:
    values = [
        b'{"Id":1,"New":{"A":1}}',
        b'{"Id":2,"new":{"a":2}}',
        b'{"Id":3,"NEW":{"A":3},"inner":{"Extra":1}}',
        b'{"Id":4,"INNER":{"extra":2}}',
    ]
    staged = world.staged(values, table(world))
    assert not reasons(staged)
    found = sorted(rows_of(staged), key=lambda row: row["Id"])
    assert [row["NEW"] for row in found] == [{"A": 1}, {"A": 2}, {"A": 3}, None]
    assert [row["inner"] and row["inner"]["Extra"] for row in found] == [None, None, 1, 2]


def test_a_table_whose_own_columns_differ_in_case_alone_is_an_error(world: World) -> None:
    twins = Schema(F(1, "a", it.StructType(F(2, "x", it.LongType()), F(3, "X", it.LongType()))))
    with pytest.raises(ConfigError, match=r"has the columns 'a\.x' and 'a\.X', which differ in their case"):
        table(world, twins).plan({})


def test_without_the_setting_other_spellings_are_other_columns(world: World) -> None:
    staged = world.staged([b'{"Id":1,"id":2}'], world.table(TABLE))
    assert [(row["Id"], row["id"]) for row in rows_of(staged)] == [(1, 2)]


def test_a_new_table_has_each_name_once() -> None:
    kind = pa.struct(
        [
            ("b", pa.int64()),
            ("B", pa.float64()),
            ("a", pa.list_(pa.struct([("X", pa.int64()), ("x", pa.int64())]))),
        ]
    )
    assert folded(kind) == pa.struct([("B", pa.float64()), ("a", pa.list_(pa.struct([("X", pa.int64())])))])
