"""Which fields a schema is about, and when that cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.validation.schema import Document
from icestream.validation.used_fields import used_fields

_REST = {"type": "object", "required": ["id"], "$defs": {"paid": {"required": ["amount"]}, "self": {}}}


def test_fields_of_all_rules_count() -> None:
    conditions = {
        "if": {"properties": {"kind": {"const": "sale"}}},
        "then": {"$ref": "#/$defs/paid"},
        "dependentRequired": {"from": ["to"]},
        "dependentSchemas": {"a": {"required": ["b"]}},
        "anyOf": [{"not": {"required": ["c"]}}, True],
    }
    found = used_fields(Document({**_REST, **conditions}))
    assert found is not None
    assert set(found) == {"id", "kind", "amount", "from", "to", "a", "b", "c"}


def test_fields_of_fields_count_and_what_is_about_an_object_as_a_whole_uses_all_of_it() -> None:
    schema = {"properties": {"who": {"required": ["name"]}, "tags": {"minProperties": 1}, "note": {}}}
    assert used_fields(Document(schema)) == {"who": {"name": {}}, "tags": None, "note": {}}


@pytest.mark.parametrize(
    "rules",
    [
        {"anyOf": [{"minProperties": 1}]},
        {"anyOf": [{"additionalProperties": False}]},
        {"not": {"const": {}}},
        {"allOf": [{"properties": {"x": {}}}], "unevaluatedProperties": False},
        {"allOf": [{"$id": "http://elsewhere/"}]},
        {"not": {"$ref": "http://elsewhere/#/x"}},
        {"properties": {"next": {"$ref": "#"}}},
        {"$schema": "http://json-schema.org/draft-06/schema#", "not": {}},
    ],
)
def test_all_fields_are_used_where_it_cannot_be_told(rules: dict[str, Any]) -> None:
    assert used_fields(Document({**_REST, **rules})) is None


def test_references_may_be_escaped() -> None:
    schema = {"$defs": {"a~/ %": {"required": ["x"]}}, "not": {"$ref": "#/$defs/a~0~1%20%25"}}
    assert used_fields(Document(schema)) == {"x": {}}


def test_references_that_unfold_without_end_are_followed_once() -> None:
    definitions = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(40)}
    schema = {"$defs": {**definitions, "d40": {"required": ["x"]}}, "allOf": [{"$ref": "#/$defs/d0"}]}
    assert used_fields(Document(schema)) == {"x": {}}
