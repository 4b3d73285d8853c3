"""Our check of JSON text against jsonschema-rs itself: the same records are refused."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, Final

import hypothesis.strategies as st
import jsonschema_rs
from hypothesis import HealthCheck, given, settings

from icestream.validation.schema import Document
from icestream.validation.used_fields import UsedFields, used_fields
from icestream.validation.validator import Rules

_DRAFTS: Final = ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema")
_NAMES: Final = ("a", "b", "~c/d", "", "é %", '"q"')
_STRINGS: Final = (
    "",
    "a",
    "ab",
    "ab\n",
    "😀",
    "2026-01-01T00:00:00Z",
    "2026-02-30",
    "10.0.0.1",
    "١",
    "x@y.z",
)
_NUMBERS: Final = (0, 1, -1, 2, 3, 10, 0.5, 1.0, 2.5, -0.0, 1e300, 2**53, 2**53 + 1, 2**63, 2**64, -(2**70))
_NOTATIONS: Final = ("1.0", "2e0", "0.1e1", "3e400", "-3e400", "1E2", "12345678901234567890123", "0.1")

names = st.sampled_from(_NAMES)
numbers = st.one_of(st.sampled_from(_NUMBERS), st.integers(-5, 5), st.floats(-3, 3))
scalars = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(_STRINGS), st.text(max_size=3))
noted = st.sampled_from([f"number {notation}" for notation in _NOTATIONS])
values = st.recursive(
    scalars | noted,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
    max_leaves=8,
)
types = st.sampled_from(["null", "boolean", "object", "array", "number", "integer", "string"])
small = st.integers(0, 3)

_KEYWORDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "type": st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)),
    "enum": st.lists(scalars, min_size=1, max_size=4, unique_by=repr),
    "const": scalars,
    "minimum": numbers,
    "maximum": numbers,
    "exclusiveMinimum": numbers,
    "exclusiveMaximum": numbers,
    "multipleOf": st.sampled_from([1, 2, 0.5, 0.1, 3]),
    "minLength": small,
    "maxLength": small,
    "pattern": st.sampled_from(["^a", "b$", r"^\d+$", r"\w", "^.{2}$", "(?=a)a"]),
    "format": st.sampled_from(["date-time", "date", "uuid", "email", "ipv4", "uri", "no-such-format"]),
    "required": st.lists(names, max_size=2, unique=True),
    "additionalProperties": st.booleans(),
    "minItems": small,
    "maxItems": small,
    "uniqueItems": st.booleans(),
    "minProperties": small,
    "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
    "title": st.just("t"),
    "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#"]),
}


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    nesting: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(names, inner, min_size=1, max_size=4),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "if": inner,
        "then": inner,
        "dependentSchemas": st.dictionaries(names, inner, max_size=2),
        "dependencies": st.dictionaries(names, inner, max_size=2),
        "not": inner,
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b"]), inner, max_size=1),
    }
    return st.one_of(
        st.booleans(),
        _some({**_KEYWORDS, **nesting}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": nesting["properties"]},
            optional={name: _KEYWORDS[name] for name in ("required", "additionalProperties")},
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": small}),
    )


def _some(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    chosen = st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: keywords[key] for key in keys}))


schemas = st.recursive(_some(_KEYWORDS), _schema, max_leaves=6)
conditional = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(names, schemas, max_size=3),
        "required": _KEYWORDS["required"],
        "anyOf": st.lists(schemas, min_size=1, max_size=2),
        "not": schemas,
        "if": schemas,
        "then": schemas,
        "else": schemas,
        "dependentRequired": _KEYWORDS["dependentRequired"],
    },
)


def _documents(roots: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda root, x, y, draft: {**root, "$schema": draft, "$defs": {"x": x, "y": y}},
        roots.filter(lambda one: isinstance(one, dict)),
        schemas,
        schemas,
        st.sampled_from(_DRAFTS),
    )


documents = _documents(schemas | conditional)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """JSON texts, some with keys that come twice, escapes, and numbers in strange notations."""
    value = draw(values | st.dictionaries(names, values, max_size=4))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if isinstance(value, dict) and value and draw(st.booleans()):
        again = json.dumps({draw(st.sampled_from(sorted(value))): draw(scalars)})
        text = f"{text[:-1]},{again[1:]}"
    for notation in _NOTATIONS:
        text = text.replace(f'"number {notation}"', notation)
    return text.replace('"a"', draw(st.sampled_from(['"a"', '"\\u0061"']))).encode("utf-8", "surrogatepass")


def _exact(text: bytes) -> Any:
    def number(digits: str) -> float | Decimal:
        return float(digits) if math.isfinite(float(digits)) else Decimal(digits)

    return json.loads(text, parse_float=number)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents, st.lists(texts(), min_size=1, max_size=12))
def test_agrees_with_jsonschema_rs(schema: dict[str, Any], records: list[bytes]) -> None:
    _agree(schema, records)


_LIMITS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
limits = st.one_of(
    st.integers(-3, 3), st.sampled_from([-0.5, 0.5, 1.5, 2**53, 2**53 + 1, 2**63, -(2**63), 1e30])
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number", ["number", "null"]])},
        optional=dict.fromkeys(_LIMITS, limits),
    ),
    st.lists(st.one_of(st.integers(-4, 4), st.floats(-3, 3), limits), min_size=8, max_size=12),
)
def test_agrees_on_numbers_at_their_limits(schema: dict[str, Any], numbers: list[float]) -> None:
    _agree(schema, [json.dumps(number).encode() for number in numbers])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    _documents(conditional), st.lists(st.dictionaries(names, scalars, max_size=4), min_size=8, max_size=12)
)
def test_fields_that_are_not_used_do_not_matter(schema: dict[str, Any], records: list[Any]) -> None:
    oracle = jsonschema_rs.validator_for(schema, validate_formats=True)
    seen = used_fields(Document(schema))
    for record in records:
        assert oracle.is_valid(_seen(record, seen)) == oracle.is_valid(record)


def _seen(value: Any, seen: UsedFields | None) -> Any:
    if seen is None or not isinstance(value, dict):
        return value
    return {name: _seen(inner, seen[name]) for name, inner in value.items() if name in seen}


def _agree(schema: dict[str, Any], records: list[bytes]) -> None:
    oracle = jsonschema_rs.validator_for(schema, validate_formats=True)
    expected = {at for at, text in enumerate(records) if not oracle.is_valid(_exact(text))}
    assert Rules(Document(schema)).broken_by_text(records).keys() == expected
