"""Records of every shape by the schema of their topic: who is kept, who fails, and in which words."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.api.batch import DATA_EXCEPTION
from icestream.records import schema as connect
from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.records import Applied, Records
from icestream.records.values import Fields, Listing, Text, Value, object_fields
from icestream.validation.as_json import as_json
from icestream.validation.schema import Document, SchemaText
from icestream.validation.used_fields import used_fields
from icestream.validation.validator import SchemaValidator, TopicSchemas

_STATUS = {
    "type": "object",
    "required": ["time"],
    "properties": {
        "time": {"type": "string", "format": "date-time"},
        "call": {"type": "object", "properties": {"status": {"type": "integer", "minimum": 100}}},
    },
}
_GOOD = {"time": "2026-01-01T00:00:00Z", "call": {"status": 200}}


def _records(value: Value, length: int, topic: str = "calls") -> Records:
    rows = np.arange(length) * 10  # every tenth row of a chunk
    return Records(rows, topic, np.zeros(length, np.int64), pa.array(np.zeros(length, np.int64)), None, value)


def _text(*values: Any) -> Records:
    texts = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return _records(object_fields(JsonSource(texts)), len(texts))


def _checked(schema: Any, records: Records) -> Applied:
    return SchemaValidator(TopicSchemas(SchemaText(json.dumps(schema)))).check(records)


def _reasons(schema: Any, records: Records) -> dict[int, str]:
    return {row: failure.reason for row, failure in _checked(schema, records).failed.items()}


def test_valid_records_are_passed_on_as_they_are() -> None:
    records = _text(_GOOD, _GOOD)
    assert _checked(_STATUS, records).records == [records]


def test_a_failure_names_the_place_and_the_rule_and_the_others_are_kept() -> None:
    bad = {**_GOOD, "call": {"status": "no"}}
    applied = _checked(_STATUS, _text(_GOOD, bad, _GOOD))
    (kept,) = applied.records
    assert kept.rows.tolist() == [0, 20]
    (failure,) = applied.failed.values()
    assert applied.failed.keys() == {10}
    assert failure.exception == DATA_EXCEPTION
    assert failure.reason == (
        '/call/status: "no" is not of type "integer" (rule /properties/call/properties/status/type)'
    )


def test_what_is_missing_is_missing_at_the_root() -> None:
    assert _reasons(_STATUS, _text({})) == {0: '(root): "time" is a required property (rule /required)'}


def test_what_is_required_and_not_allowed_is_not_allowed() -> None:
    schema = {"type": "object", "required": ["time"], "additionalProperties": False}
    (reason,) = _reasons(schema, _text({"time": 1})).values()
    assert reason.endswith("(rule /additionalProperties)")


def test_all_bad_records_leave_no_group() -> None:
    applied = _checked(_STATUS, _text({}, {"time": 1}))
    assert applied.records == []
    assert applied.failed.keys() == {0, 10}


def test_the_first_errors_are_told_and_long_values_are_cut() -> None:
    fields = {f"f{number}": {"type": "integer"} for number in range(6)}
    (reason,) = _reasons({"properties": fields}, _text(dict.fromkeys(fields, "x" * 10_000))).values()
    assert reason.count("(rule ") == 3
    assert reason.endswith("; …")
    assert 'is not of type "integer"' in reason
    assert len(reason) < 1_500


def test_of_a_large_value_the_first_error_is_told() -> None:
    """All of them would be a million."""
    schema = {"additionalProperties": {"items": {"type": "string"}}}
    (reason,) = _reasons(schema, _text({"a": list(range(1_000_000))})).values()
    assert reason == '/a/0: 0 is not of type "string" (rule /additionalProperties/items/type)'


def test_whole_floats_are_integers_and_the_last_of_equal_keys_counts() -> None:
    schema = {"properties": {"n": {"type": "integer", "maximum": 5}}}
    assert _reasons(schema, _text(b'{"n":1.0}', b'{"n":"x","n":2}', b'{"n":9e0,"n":5e0}')) == {}
    assert _reasons(schema, _text(b'{"n":2,"n":1.5}', b'{"n":1,"n":6}')).keys() == {0, 10}


def test_numbers_that_no_float_holds_have_a_size() -> None:
    schema = {"properties": {"n": {"maximum": 5}}}
    assert _reasons(schema, _text(b'{"n":1e400}', b'{"n":-1e400}')).keys() == {0}


def test_a_value_that_is_too_deep_to_be_looked_at_fails() -> None:
    deep = b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert _reasons(_STATUS, _text(deep)) == {0: "(root): the value is nested too deeply"}


def test_many_records_with_bad_ones_among_them() -> None:
    values = [{"time": "never" if at % 700 == 3 else _GOOD["time"]} for at in range(2_500)]
    values[1_999] = {"call": 1}
    assert _reasons(_STATUS, _text(*values)).keys() == {30, 7030, 14030, 21030, 19990}


def test_each_topic_has_its_schema() -> None:
    strict, open_ = SchemaText('{"maxProperties":0}'), SchemaText("true")
    validator = SchemaValidator(TopicSchemas(strict, {"free": open_}))
    value = object_fields(JsonSource([b'{"a":1}']))
    assert validator.check(_records(value, 1)).failed.keys() == {0}
    assert not validator.check(_records(value, 1, "free")).failed
    assert not SchemaValidator(TopicSchemas(None, {"other": strict})).check(_records(value, 1)).failed


def test_tombstones_pass() -> None:
    assert not _checked(False, _records(None, 3)).failed
    nulls = Column(pa.array([None, "a"]), connect.OPTIONAL_STRING)
    assert _checked({"type": "integer"}, _records(nulls, 2)).failed.keys() == {10}


def test_some_rows_of_a_text() -> None:
    whole = Text(JsonSource([b'{"n":1}', b'{"n":"x"}', b'{"n":3}']))
    part = Fields({}, whole.take(np.array([2, 1])), 2)
    assert _checked({"properties": {"n": {"type": "integer"}}}, _records(part, 2)).failed.keys() == {10}


def test_fields_that_a_transform_changed() -> None:
    value = object_fields(JsonSource([b'{"a":1,"b":"x"}', b'{"a":2,"b":"y"}'])).put(
        {
            "a": Column(pa.array([5, None]), None, np.array([False, True])),
            "b": None,
            "c": Column(pa.array([1, 2])),
        }
    )
    schema = {"required": ["a"], "properties": {"a": {"const": 5}, "b": False, "c": {"maximum": 2}}}
    assert _reasons(schema, _records(value, 2)) == {10: '(root): "a" is a required property (rule /required)'}


def test_lists() -> None:
    listing = Listing(Text(JsonSource([b"[1,2]", b'["a"]'])))
    assert _checked({"items": {"type": "integer"}}, _records(listing, 2)).failed.keys() == {10}


def test_structs_are_judged_in_the_form_of_their_json() -> None:
    order = connect.struct(
        ("id", connect.ConnectSchema(connect.Kind.INT32)),
        ("price", connect.decimal(2)),
        ("on", connect.date()),
        ("at", connect.timestamp()),
        ("blob", connect.BYTES),
        ("tags", connect.array(connect.STRING)),
        ("counts", connect.map_of(connect.STRING, connect.ConnectSchema(connect.Kind.INT64))),
        ("note", connect.OPTIONAL_STRING),
    )
    row: dict[str, Any] = {
        "id": 1,
        "price": Decimal("1.50"),
        "on": 20_000,
        "at": 1_700_000_000_000,
        "blob": b"\x00",
        "tags": ["a", "b"],
        "counts": [("x", 1)],
        "note": None,
    }
    values = pa.array([row, {**row, "price": Decimal("-1.00"), "counts": [("x", -1)]}], order.arrow_type)
    schema = {
        "properties": {
            "id": {"const": 1},
            "price": {"type": "number", "minimum": 0},
            "on": {"const": 20_000},
            "at": {"const": 1_700_000_000_000},
            "blob": {"const": "AA=="},
            "tags": {"const": ["a", "b"]},
            "counts": {"type": "object", "additionalProperties": {"minimum": 0}},
            "note": {"type": "null"},
        },
        "additionalProperties": False,
    }
    reasons = _reasons(schema, _records(Column(values, order), 2))
    assert reasons.keys() == {10}
    assert reasons[10].startswith("/price: ") and "/counts/x: -1 is less than" in reasons[10]


def test_only_the_fields_of_structs_that_a_schema_is_about_are_read() -> None:
    text = connect.OPTIONAL_STRING
    order = connect.struct(("id", text), ("who", connect.struct(("name", text), ("note", text))), ("x", text))
    rows = [{"id": "1", "who": {"name": "a", "note": "n"}, "x": None}, {"id": None, "who": {"name": None}}]
    value = Column(pa.array(rows, order.arrow_type), order)
    schema = {"properties": {"who": {"properties": {"name": {"type": "string"}}}}, "required": ["id"]}
    assert as_json(value, used_fields(Document(schema))) == [
        {"id": "1", "who": {"name": "a"}},
        {"id": None, "who": {"name": None}},
    ]
    assert _reasons(schema, _records(value, 2)) == {
        10: '/who/name: null is not of type "string" (rule /properties/who/properties/name/type)'
    }


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_floats_that_json_does_not_have_are_no_numbers(number: float) -> None:
    column = Column(pa.array([1.0, number]))
    assert _checked({"type": "number"}, _records(column, 2)).failed.keys() == {10}
