"""A table grows with the records of a batch: new columns, wider ones, optional ones, in any mixture."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from tests.unit.pipeline.batches import World, reasons, rows_of

ENVELOPES = {"value.converter.schemas.enable": "true"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _struct(*fields: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), **facts}


def _envelope(schema: dict[str, Any], payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def test_a_required_column_becomes_wider_and_optional_at_once(world: World) -> None:
    table = world.table(Schema(it.NestedField(1, "id", it.IntegerType(), required=True)))
    schema = _struct({"field": "id", "type": "int64", "optional": True})
    staged = world.staged(
        [_envelope(schema, {"id": 2**40}), _envelope(schema, {"id": None})], table, config=ENVELOPES
    )
    assert rows_of(staged) == [{"id": 2**40}, {"id": None}]
    assert not reasons(staged)


def test_a_required_struct_becomes_optional_and_gets_a_field(world: World) -> None:
    inner = it.StructType(it.NestedField(2, "n", it.IntegerType(), required=True))
    table = world.table(Schema(it.NestedField(1, "inner", inner, required=True)))
    fields = [{"field": "n", "type": "int64", "optional": True}, {"field": "new", "type": "string"}]
    schema = _struct(_struct(*fields, field="inner", optional=True))
    staged = world.staged(
        [_envelope(schema, {"inner": {"n": None, "new": "a"}}), _envelope(schema, {"inner": None})],
        table,
        config=ENVELOPES,
    )
    assert rows_of(staged) == [{"inner": {"n": None, "new": "a"}}, {"inner": None}]


def test_versions_of_a_map_in_one_batch_make_one_map(world: World) -> None:
    table = world.table(Schema(it.NestedField(1, "id", it.LongType())))

    def version(*names: str) -> dict[str, Any]:
        values = _struct(*({"field": name, "type": "int64"} for name in names))
        kind = {"field": "m", "type": "map", "keys": {"type": "string"}, "values": values}
        return _struct({"field": "id", "type": "int64"}, kind)

    staged = world.staged(
        [
            _envelope(version("a"), {"id": 1, "m": {"k": {"a": 1}}}),
            _envelope(version("a", "b"), {"id": 2, "m": {"k": {"a": 2, "b": 3}}}),
        ],
        table,
        config=ENVELOPES,
    )
    assert rows_of(staged) == [
        {"id": 1, "m": {"k": {"a": 1, "b": None}}},
        {"id": 2, "m": {"k": {"a": 2, "b": 3}}},
    ]


F = it.NestedField
NARROW = Schema(
    F(1, "n", it.IntegerType(), required=True),
    F(2, "price", it.DecimalType(5, 2)),
    F(3, "ratio", it.FloatType()),
    F(4, "inner", it.StructType(F(10, "n", it.IntegerType()), F(11, "k", it.StringType(), required=True))),
    F(5, "items", it.ListType(12, it.StructType(F(13, "n", it.IntegerType())), element_required=True)),
    F(6, "props", it.MapType(14, it.StringType(), 15, it.DecimalType(4, 1), value_required=True)),
    F(7, "grid", it.ListType(16, it.ListType(17, it.IntegerType(), False), False)),
)


def _types(staged: Any) -> dict[str, str]:
    schema = next(iter(staged.plans.values())).schema
    return {
        name: f"{'required ' if schema.find_field(name).required else ''}{schema.find_type(name)}"
        for name in schema.column_names
        if schema.find_type(name).is_primitive
    }


@pytest.mark.parametrize("edited", [False, True], ids=["untouched", "edited"])
def test_columns_widen_for_records_without_a_schema_on_every_level(world: World, edited: bool) -> None:
    wide = {
        "n": 2**40,
        "price": 123456.78,
        "ratio": 1e300,
        "inner": {"n": 2**33, "k": "k"},
        "items": [{"n": 1}, {"n": 2**34}],
        "props": {"a": 12345.6},
        "grid": [[1], [2**35]],
        "more": 1,
    }
    small = {"n": 1, "price": 1.5, "inner": {"k": "x"}}
    edits = {"transforms": "t", "transforms.t.type": "org.apache.kafka.connect.transforms.InsertField$Value"}
    config = (
        {**edits, "transforms.t.static.field": "note", "transforms.t.static.value": "x"} if edited else {}
    )
    staged = world.staged(
        [json.dumps(one).encode() for one in (small, wide, small)], world.table(NARROW), config=config
    )
    assert not reasons(staged)
    types = _types(staged)
    assert types["n"] == "required long"
    assert (types["price"], types["ratio"]) == ("decimal(8, 2)", "double")
    assert (types["inner.n"], types["items.element.n"], types["grid.element.element"]) == ("long",) * 3
    assert types["props.value"] == "required decimal(6, 1)"
    row = next(row for row in rows_of(staged) if row["n"] == 2**40)
    assert (str(row["price"]), row["ratio"], row["inner"]["n"]) == ("123456.78", 1e300, 2**33)
    assert (row["items"], row["grid"], row["more"]) == ([{"n": 1}, {"n": 2**34}], [[1], [2**35]], 1)


def test_what_a_record_says_to_be_null_is_no_longer_required_and_what_it_lacks_is(world: World) -> None:
    nulls = {"n": None, "inner": {"n": 1, "k": None}, "items": [None], "props": {"a": None}}
    staged = world.staged([json.dumps(one).encode() for one in (nulls, {"price": 1})], world.table(NARROW))
    types = _types(staged)
    assert [types[name] for name in ("n", "inner.k", "props.value")] == ["int", "string", "decimal(4, 1)"]
    schema = next(iter(staged.plans.values())).schema
    assert not schema.find_field("items.element").required
    assert list(reasons(staged)) == []
    staged = world.staged([b'{"n":1}', b'{"price":1}'], world.table(NARROW, name="other"))
    assert reasons(staged) == {1: "TASK_PUT: field 'n' is required by the table and has no value"}


def test_a_column_that_identifies_rows_stays_required(world: World) -> None:
    schema = Schema(F(1, "id", it.LongType(), required=True), identifier_field_ids=[1])
    staged = world.staged([b'{"id":1}', b'{"id":null}'], world.table(schema))
    assert rows_of(staged) == [{"id": 1}]
    assert reasons(staged) == {1: "TASK_PUT: field 'id' is required by the table and has no value"}


def test_a_record_that_no_wider_column_would_hold_changes_nothing(world: World) -> None:
    staged = world.staged([b'{"n":1}', b'{"n":4294967296,"price":"abc"}'], world.table(NARROW))
    assert _types(staged)["n"] == "required int"
    assert len(reasons(staged)) == 1


def test_a_schema_widens_and_frees_what_is_inside_of_lists_and_maps(world: World) -> None:
    narrow = it.StructType(F(7, "n", it.IntegerType()))
    table = world.table(
        Schema(
            F(1, "items", it.ListType(2, it.IntegerType(), element_required=True)),
            F(3, "deep", it.MapType(4, it.StringType(), 5, it.ListType(6, narrow, False), True)),
        )
    )
    inner = _struct({"field": "n", "type": "int64"}, {"field": "new", "type": "string", "optional": True})
    deep = {
        "field": "deep",
        "type": "map",
        "keys": {"type": "string"},
        "values": {"type": "array", "items": inner},
    }
    items = {"field": "items", "type": "array", "items": {"type": "int64", "optional": True}}
    payload = {"items": [1, None, 2**40], "deep": {"k": [{"n": 2**41, "new": "x"}]}}
    staged = world.staged([_envelope(_struct(items, deep), payload)], table, config=ENVELOPES)
    assert rows_of(staged) == [payload]
    assert _types(staged) == {
        "items.element": "long",
        "deep.key": "required string",
        "deep.value.element.n": "long",
        "deep.value.element.new": "string",
    }


def test_a_null_struct_with_required_fields_and_a_uuid_inside_of_one_are_written(world: World) -> None:
    inner = it.StructType(F(3, "k", it.StringType(), required=True), F(4, "u", it.UUIDType(), required=True))
    table = world.table(Schema(F(1, "n", it.LongType()), F(2, "inner", inner)))
    uuid = "12345678-1234-5678-1234-567812345678"
    odd = b'{"n":"7","inner":{"k":5,"u":"%s"}}' % uuid.encode()
    plain = b'{"n":1,"inner":{"k":"a","u":"%s"}}' % uuid.encode()
    staged = world.staged([b'{"n":1}', plain, odd], table)
    assert not reasons(staged)
    found = [
        (row["n"], row["inner"] and (row["inner"]["k"], str(row["inner"]["u"]))) for row in rows_of(staged)
    ]
    assert found == [(1, None), (1, ("a", uuid)), (7, ("5", uuid))]


def test_a_field_of_no_fixed_shape_becomes_json_text_however_many_keys_it_has(world: World) -> None:
    """icestream.iceberg.json-columns"""
    table = world.table(Schema(F(1, "id", it.LongType())))
    table._texts = frozenset({("free",), ("event", "attributes")})
    keys = {f"k{number}": number for number in range(2000)}
    event = {"n": 1, "attributes": {"a": [1, {"b": None}]}}
    values = [
        {"id": 1, "free": keys},
        {"id": 2, "free": [1.5, "x"], "event": event},
        {"id": 3, "free": "plain"},
    ]
    staged = world.staged([json.dumps(one).encode() for one in values], table)
    assert not reasons(staged)
    found = sorted(rows_of(staged), key=lambda row: row["id"])
    assert json.loads(found[0]["free"]) == keys
    assert [row["free"] for row in found[1:]] == ['[1.5,"x"]', "plain"]
    assert found[1]["event"] == {"n": 1, "attributes": '{"a":[1,{"b":null}]}'}
    inner = _struct({"field": "x", "type": "int64"}, field="free")
    schema = _struct({"field": "id", "type": "int64"}, inner)
    other = world.table(Schema(F(1, "id", it.LongType())), name="other")
    other._texts = frozenset({("free",)})
    staged = world.staged([_envelope(schema, {"id": 1, "free": {"x": 5}})], other, config=ENVELOPES)
    assert rows_of(staged) == [{"id": 1, "free": '{"x":5}'}]
