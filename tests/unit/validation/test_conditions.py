"""Which fields the combining rules at a root look at, and when nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.validation.conditions import parted
from icestream.validation.schema import Document

_REST = {"type": "object", "required": ["id"], "$defs": {"paid": {"required": ["amount"]}, "self": {}}}


def test_conditions_are_parted_from_the_rest_with_the_names_that_they_look_at() -> None:
    conditions = {
        "if": {"properties": {"kind": {"const": "sale"}}},
        "then": {"$ref": "#/$defs/paid"},
        "dependentRequired": {"from": ["to"]},
        "dependentSchemas": {"a": {"required": ["b"]}},
        "anyOf": [{"not": {"required": ["c"]}}, True],
    }
    found = parted(Document({**_REST, **conditions}))
    assert found is not None
    assert set(found.names) == {"kind", "amount", "from", "to", "a", "b", "c"}
    assert found.rest.schema == _REST
    assert found.conditions.schema == {**conditions, "$defs": _REST["$defs"]}


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"anyOf": [{"minProperties": 1}]},
        {"anyOf": [{"additionalProperties": False}]},
        {"not": {"const": {}}},
        {"not": {"$ref": "#/properties/x"}, "properties": {"x": {}}},
        {"not": {"required": ["x"]}, "properties": {"x": {"$ref": "#/not"}}},
        {"allOf": [{"properties": {"x": {}}}], "unevaluatedProperties": False},
        {"allOf": [{"$id": "http://elsewhere/"}]},
        {"$schema": "http://json-schema.org/draft-06/schema#", "not": {}},
    ],
)
def test_rules_that_cannot_be_parted(rules: dict[str, Any]) -> None:
    assert parted(Document({**_REST, **rules})) is None


def test_references_may_be_escaped() -> None:
    schema = {"$defs": {"a~/ %": {"required": ["x"]}}, "not": {"$ref": "#/$defs/a~0~1%20%25"}}
    found = parted(Document(schema))
    assert found is not None
    assert found.names == ("x",)


def test_references_that_unfold_without_end_are_followed_once() -> None:
    definitions = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(40)}
    schema = {"$defs": {**definitions, "d40": {"required": ["x"]}}, "allOf": [{"$ref": "#/$defs/d0"}]}
    found = parted(Document(schema))
    assert found is not None
    assert found.names == ("x",)
