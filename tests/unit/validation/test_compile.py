"""What is checked while decoding, and what is left open as a column: speed depends on it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from icestream.validation.compile import compiled
from icestream.validation.schema import Document


def _open(schema: Any) -> list[str]:
    return [one.pointer for one in compiled(Document(schema)).open]


def _refuses(schema: Any, text: bytes) -> bool:
    """By the type alone."""
    try:
        msgspec.json.decode(text, type=compiled(Document(schema)).type)
    except msgspec.ValidationError:
        return True
    return False


def _field(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, b"1", b'"1"'),
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 5}, b"4", b"5"),
        ({"type": "integer", "exclusiveMinimum": 0.5}, b"1", b"0"),
        ({"type": "number", "maximum": 1.5}, b"1.5", b"1.6"),
        ({"type": "string", "minLength": 2, "maxLength": 2}, '"é😀"'.encode(), b'"a"'),
        ({"type": ["string", "null"]}, b"null", b"1"),
        ({"type": ["integer", "number"], "minimum": 0}, b"0.5", b"-1"),
        ({"type": "boolean"}, b"true", b"1"),
        ({"enum": ["a", "b", None]}, b'"b"', b'"c"'),
        ({"const": 7}, b"7", b"8"),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, b"[1,2]", b'[1,"2"]'),
        ({"type": "object", "additionalProperties": {"type": "string"}}, b'{"k":"v"}', b'{"k":1}'),
        ({"type": "object", "required": ["k"]}, b'{"k":null}', b"{}"),
        ({"properties": {"k": {}}, "additionalProperties": False}, b'{"k":[]}', b'{"l":1}'),
        ({"type": ["object", "null"], "properties": {"k": {"type": "string"}}}, b"null", b'{"k":1}'),
        ({"$ref": "#/$defs/count"}, b"1", b"-1"),
    ],
)
def test_the_type_says_it_all(schema: dict[str, Any], good: bytes, bad: bytes) -> None:
    whole = {**_field(schema), "$defs": {"count": {"type": "integer", "minimum": 0}}}
    assert _open(whole) == []
    assert not _refuses(whole, b'{"x":%s}' % good)
    assert _refuses(whole, b'{"x":%s}' % bad)
    assert not _refuses(whole, b'{"y":1}')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^a"},
        {"type": "string", "format": "uuid"},
        {"type": "number", "multipleOf": 0.01},
        {"type": "array", "uniqueItems": True},
        {"anyOf": [{"type": "string"}, {"minimum": 3}]},
        {"enum": [1.5, "a"]},
        {"type": "integer", "minimum": 2**70},
        {"type": ["number", "integer"], "minimum": 2**53 + 1},
        {"type": "object", "patternProperties": {"^a": {"type": "string"}}},
        {"type": "array", "items": {"type": "string", "format": "date"}},
        {"$ref": "#"},
        False,
    ],
)
def test_one_column_is_left_open(schema: Any) -> None:
    assert _open(_field(schema)) == ["/properties/x"]


def test_open_columns_of_nested_objects_are_found_by_their_path() -> None:
    inner = {"type": "object", "required": ["t"], "properties": {"t": {"type": "string", "format": "date"}}}
    (found,) = compiled(Document(_field(inner))).open
    assert found.pointer == "/properties/x/properties/t"
    assert [step.certain for step in found.path] == [True, False]
    assert not found.optional


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"},
        {"type": "object", "properties": {"x": {"$id": "http://elsewhere/"}}},
        {"type": "object", "properties": {"x": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
        {"type": "object", "minProperties": 1},
    ],
)
def test_left_open_as_a_whole(schema: dict[str, Any]) -> None:
    assert compiled(Document(schema)).type is Any
    assert _open(schema) == [""]


def test_references_that_unfold_without_end_are_left_open() -> None:
    """Thirty definitions, each with the next one twice: a billion fields."""
    definitions = {
        f"d{depth}": _field({"$ref": f"#/$defs/d{depth + 1}"})
        | {"properties": {name: {"$ref": f"#/$defs/d{depth + 1}"} for name in "ab"}}
        for depth in range(30)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": {**definitions, "d30": {"type": "string"}}}
    assert compiled(Document(schema)).type is Any


def test_deep_schemas_are_left_open() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = _field(schema)
    assert _open(schema) == [""]
