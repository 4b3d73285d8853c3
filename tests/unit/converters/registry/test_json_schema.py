"""JSON Schemas become the schemas that Confluent's converter makes of them, and values follow."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from icestream.converters.registry.client import Reference, UnusableSchema
from icestream.converters.registry.converter import Read
from icestream.converters.registry.json_schema import JsonSchemaReader
from icestream.converters.registry.json_schema_connect import (
    ENUM,
    ONE_OF,
    JsonSchemaOptions,
    connect_schema,
    json_schema,
)
from icestream.converters.registry.wire import Bodies
from icestream.records.payloads import Payloads
from icestream.records.schema import DATE, DECIMAL, ConnectSchema, Field, Kind, struct


def schema_of(node: Any, **others: Any) -> ConnectSchema:
    references = [Reference(name, json.dumps(other)) for name, other in others.items()]
    return connect_schema(json.dumps(node), references, JsonSchemaOptions())


def read(schema: ConnectSchema, *values: Any) -> Read:
    payloads = Payloads.of([one if isinstance(one, bytes) else json.dumps(one).encode() for one in values])
    bodies = Bodies(payloads.text, payloads.offsets[:-1], payloads.offsets[1:])
    return JsonSchemaReader(7, schema).read(bodies)


def rows(found: Read) -> list[Any]:
    ((index, column),) = found.columns
    values = column.values.to_pylist()
    good = np.arange(len(values)) if index is None else index
    return [value for row, value in zip(good.tolist(), values, strict=True) if row not in found.failed]


SCALARS: Mapping[str, tuple[dict[str, Any], ConnectSchema]] = {
    "integer": ({"type": "integer"}, ConnectSchema(Kind.INT64)),
    "number": ({"type": "number"}, ConnectSchema(Kind.FLOAT64)),
    "a hint": ({"type": "integer", "connect.type": "int16"}, ConnectSchema(Kind.INT16)),
    "string": ({"type": "string", "format": "date-time"}, ConnectSchema(Kind.STRING)),
    "bytes": ({"type": "string", "connect.type": "bytes"}, ConnectSchema(Kind.BYTES)),
    "boolean": ({"type": "boolean"}, ConnectSchema(Kind.BOOLEAN)),
    "nullable": ({"type": ["string", "null"]}, ConnectSchema(Kind.STRING, optional=True)),
    "oneOf null": (
        {"oneOf": [{"type": "null"}, {"type": "integer", "title": "n"}]},
        ConnectSchema(Kind.INT64, optional=True, name="n"),
    ),
    "enum": (
        {"type": "string", "enum": ["a", "b"]},
        ConnectSchema(Kind.STRING, parameters=((ENUM, ""), (f"{ENUM}.a", "a"), (f"{ENUM}.b", "b"))),
    ),
    "logical": (
        {"type": "integer", "connect.type": "int32", "title": DATE, "connect.version": 1},
        ConnectSchema(Kind.INT32, name=DATE, version=1),
    ),
    "decimal": (
        {"type": "number", "connect.type": "bytes", "title": DECIMAL, "connect.parameters": {"scale": "2"}},
        ConnectSchema(Kind.BYTES, name=DECIMAL, parameters=(("scale", "2"),)),
    ),
    "default and doc": (
        {"type": "number", "default": 1.5, "description": "a number"},
        ConnectSchema(Kind.FLOAT64, default=1.5, doc="a number"),
    ),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name: str) -> None:
    node, expected = SCALARS[name]
    assert schema_of(node) == expected


def test_objects_arrays_and_maps() -> None:
    node = {
        "title": "Order",
        "type": "object",
        "properties": {
            "second": {"type": "string", "connect.index": 1},
            "first": {"type": "array", "items": {"type": "integer"}, "connect.index": 0},
            "third": {
                "type": "object",
                "connect.type": "map",
                "additionalProperties": {"type": "boolean"},
                "connect.index": 2,
            },
        },
    }
    schema = schema_of(node)
    assert schema.name == "Order"
    assert [field.name for field in schema.fields] == ["first", "second", "third"]
    assert schema["first"] == ConnectSchema(Kind.ARRAY, value=ConnectSchema(Kind.INT64))
    assert schema["third"].kind is Kind.MAP
    found = read(schema, {"first": [1, 2], "second": "x", "third": {"k": True}, "more": 1})
    assert rows(found) == [{"first": [1, 2], "second": "x", "third": [("k", True)]}]


def test_references_within_and_to_other_documents() -> None:
    node = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/id"}, "b": {"$ref": "other#/$defs/name"}},
        "definitions": {"id": {"type": "integer"}},
    }
    schema = schema_of(node, other={"$defs": {"name": {"type": "string"}}})
    assert (schema["a"].kind, schema["b"].kind) == (Kind.INT64, Kind.STRING)


def test_all_of_joins_properties() -> None:
    node = {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}},
        ]
    }
    schema = connect_schema(json.dumps(node), [], JsonSchemaOptions(optional_if_not_required=True))
    assert [(one.name, one.schema.optional) for one in schema.fields] == [("a", False), ("b", True)]


@pytest.mark.parametrize(
    "node",
    [
        {"type": "array"},
        {"type": "object", "properties": {"x": {}}},
        {"$ref": "#"},
        {"$ref": "elsewhere.json"},
        {"$ref": "#/nowhere"},
        {"type": 5},
        {"type": "object", "properties": 5},
        {"enum": 5},
        {"type": "string", "connect.parameters": 5},
        functools.reduce(lambda inner, _: {"type": "array", "items": inner}, range(150), {"type": "string"}),
    ],
)
def test_schemas_that_no_column_holds_say_so(node: Any) -> None:
    with pytest.raises(UnusableSchema):
        schema_of(node)


@pytest.mark.parametrize(
    "other", [{"type": "integer"}, {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}]
)
def test_half_of_a_surrogate_pair_is_a_question_mark_as_in_java(other: Any) -> None:
    schema = schema_of({"type": "object", "properties": {"a": {"type": "string"}, "b": other}})
    found = read(schema, b'{"a":"x\\uD800"}', {"a": "good"}, b'{"a":"\\ud83d\\ude00"}')
    assert not found.failed
    assert [row["a"] for row in rows(found)] == ["x?", "good", "\U0001f600"]


def test_a_property_may_be_missing_but_not_null() -> None:
    schema = schema_of({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}})
    found = read(schema, {"a": 1}, {"a": None, "b": "x"}, {"a": 2, "b": "y"}, b"{broken")
    assert rows(found) == [{"a": 1, "b": None}, {"a": 2, "b": "y"}]
    assert sorted(found.failed) == [1, 3]
    assert found.failed[1].endswith("Invalid null value for required INT64 field")


def test_a_one_of_takes_the_branch_that_fits() -> None:
    node = {
        "type": "object",
        "properties": {
            "x": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "integer"},
                    {"type": "object", "properties": {"k": {"type": "boolean"}}},
                ]
            }
        },
    }
    schema = schema_of(node)
    assert schema["x"].name == ONE_OF
    names = [f"{ONE_OF}.field.{index}" for index in range(3)]
    found = read(schema, {"x": "s"}, {"x": 3}, {"x": {"k": True}}, {"x": [1]})
    expected: list[Any] = ["s", 3, {"k": True}]
    assert rows(found) == [
        {"x": dict.fromkeys(names) | {names[position]: value}} for position, value in enumerate(expected)
    ]
    assert found.failed[3].endswith("Did not find matching oneof field for data")


def test_what_is_written_is_read_as_the_same_schema() -> None:
    schema = struct(
        ("id", ConnectSchema(Kind.INT32)),
        ("name", ConnectSchema(Kind.STRING, optional=True, doc="who")),
        ("sizes", ConnectSchema(Kind.ARRAY, value=ConnectSchema(Kind.FLOAT32))),
        ("tags", ConnectSchema(Kind.MAP, key=ConnectSchema(Kind.STRING), value=ConnectSchema(Kind.STRING))),
        ("inner", ConnectSchema(Kind.STRUCT, optional=True, fields=(Field("b", ConnectSchema(Kind.BYTES)),))),
        name="shop.Item",
        version=2,
    )
    assert schema_of(json_schema(schema, False, True)) == schema
