"""ValueToKey, HeaderFrom, InsertHeader, DropHeaders, RegexRouter and Filter."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.plain import plain
from icestream.records.records import Applied
from icestream.records.schema import STRING, ConnectSchema, Kind, decimal, struct
from icestream.records.schema import date as date_schema
from icestream.transforms.drop_headers import DropHeaders
from icestream.transforms.filter import Filter
from icestream.transforms.groups import Side
from icestream.transforms.header_from import HeaderFrom
from icestream.transforms.insert_header import InsertHeader
from icestream.transforms.regex_router import RegexRouter
from icestream.transforms.value_to_key import ValueToKey
from tests.unit.transforms.groups import maps, structs, values

REQUIRED_DEFAULT = struct(("a", ConnectSchema(Kind.INT32, default=7)), ("b", STRING))


def _keys(applied: Applied) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for records in applied.records:
        found.update(zip(records.rows.tolist(), plain(records.key, len(records)), strict=True))
    return found


def _headers(applied: Applied) -> dict[int, list[tuple[str, Any]]]:
    found: dict[int, list[tuple[str, Any]]] = {}
    for records in applied.records:
        columns = [(header.name, plain(header.values, len(records))) for header in records.headers]
        for at, row in enumerate(records.rows.tolist()):
            found[row] = [(name, column[at]) for name, column in columns]
    return found


def test_a_key_has_null_for_a_field_that_is_absent() -> None:
    applied = ValueToKey(("a", "b")).apply(maps({"a": 1}, {"a": "x", "b": {"c": [1]}}, {"b": None}))
    assert _keys(applied) == {
        0: {"a": 1, "b": None},
        1: {"a": "x", "b": {"c": [1]}},
        2: {"a": None, "b": None},
    }


@pytest.mark.parametrize("replaced", [True, False])
def test_a_required_field_of_a_key_takes_its_default_or_fails(replaced: bool) -> None:
    records = structs(REQUIRED_DEFAULT, [{"a": None, "b": "x"}, {"a": 1, "b": "y"}])
    applied = ValueToKey(("a",), replaced).apply(records)
    assert _keys(applied) == ({0: {"a": 7}, 1: {"a": 1}} if replaced else {1: {"a": 1}})
    reasons = [why.reason for why in applied.failed.values()]
    wrong = 'Invalid value: null used for required field: "a", schema type: INT32'
    assert reasons == ([] if replaced else [wrong])


def test_headers_may_be_maps_and_lists() -> None:
    smt = HeaderFrom(Side.VALUE, ("a",), ("h",), "move")
    applied = smt.apply(maps({"a": {"x": [1]}, "b": 1}, {"a": [1, "2"]}, {"a": 5}, {}))
    assert _headers(applied) == {
        0: [("h", {"x": [1]})],
        1: [("h", [1, "2"])],
        2: [("h", 5)],
        3: [("h", None)],
    }
    assert values(applied) == {0: {"b": 1}, 1: {}, 2: {}, 3: {}}


def test_a_header_cannot_be_null_where_its_schema_is_required() -> None:
    smt = HeaderFrom(Side.VALUE, ("a",), ("h",), "copy", False)
    applied = smt.apply(structs(REQUIRED_DEFAULT, [{"a": None, "b": "x"}, {"a": 1, "b": "y"}]))
    assert applied.failed[0].reason == "A null value requires an optional schema but was Schema{INT32}"
    assert _headers(applied) == {1: [("h", 1)]}


def test_as_many_headers_as_fields() -> None:
    settings = {
        "fields": ["a", "b"],
        "headers": ["h"],
        "operation": "copy",
        "replace.null.with.default": True,
    }
    with pytest.raises(
        ConfigError, match="'fields' config must have the same number of elements as 'headers'"
    ):
        HeaderFrom.configured(settings, Side.VALUE)


def _inserted(literal: str) -> Column:
    smt = InsertHeader.configured({"header": "h", "value.literal": literal}, Side.VALUE)
    (records,) = smt.apply(maps({}, {})).records
    (header,) = records.headers
    assert header.name == "h" and isinstance(header.values, Column)
    return header.values


@pytest.mark.parametrize(
    ("literal", "schema", "value"),
    [
        ("5", ConnectSchema(Kind.INT8), 5),
        ("text", STRING, "text"),
        ("1.5", ConnectSchema(Kind.FLOAT32), 1.5),
        ("true", ConnectSchema(Kind.BOOLEAN), True),
        ("2026-11-15", date_schema(), date(2026, 11, 15)),
        ("12345678901234567890", decimal(0), 12345678901234567890),
        ("null", None, None),
    ],
)
def test_the_same_header_for_all(literal: str, schema: ConnectSchema | None, value: Any) -> None:
    column = _inserted(literal)
    assert (column.schema, column.values.to_pylist()) == (schema, [value, value])


@pytest.mark.parametrize(
    ("literal", "reason"),
    [
        ("[1, 2]", "Lists and maps cannot be headers"),
        (' {"a": 1}', "Lists and maps cannot be headers"),
        ("12:30", "read only the number or date"),
        ("9" * 80, "at most 76 digits"),
        ("1e400", "at most 76 digits"),
    ],
)
def test_literals_that_are_refused(literal: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        _inserted(literal)


def test_headers_go_by_name() -> None:
    records = maps({})
    for name in ("a", "b", "a"):
        literal = InsertHeader.configured({"header": name, "value.literal": "1"}, Side.VALUE)
        (records,) = literal.apply(records).records
    assert _headers(DropHeaders(frozenset({"a"})).apply(records)) == {0: [("b", 1)]}


def _router(regex: str, replacement: str) -> RegexRouter:
    return RegexRouter.configured({"regex": regex, "replacement": replacement}, Side.VALUE)


def test_only_whole_names_are_routed() -> None:
    records = replace(maps({}), topic="eu.orders")
    topics = [
        _router(regex, "$1-x").apply(records).records[0].topic for regex in ("eu\\.(.*)", "(eu)", "(e)u.+|eu")
    ]
    assert topics == ["orders-x", "eu.orders", "e-x"]


def test_a_pattern_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(ConfigError, match="for configuration regex: Invalid regex: the pattern '\\(' has"):
        _router("(", "x")


@pytest.mark.parametrize(
    ("replacement", "topic"),
    [("$1$2", "ab"), ("${first}", "a"), ("\\$1", "$1"), ("$0$10", "abca0"), ("$3", ""), ("", "")],
)
def test_replacements(replacement: str, topic: str) -> None:
    records = replace(maps({}), topic="abc")
    (routed,) = _router("(?<first>a)(b)(x)?c", replacement).apply(records).records
    assert routed.topic == topic


@pytest.mark.parametrize(
    ("replacement", "reason"),
    [
        ("$", "'\\$' must be followed"),
        ("$x", "'\\$' must be followed"),
        ("$2", "The regex has no group 2"),
        ("${x}", "The regex has no group x"),
        ("${1}", "'\\$' must be followed"),
        ("a\\", "must be followed"),
    ],
)
def test_replacements_that_java_would_fail_at_are_refused(replacement: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"for configuration replacement: .*{reason}"):
        _router("(a)", replacement)


def test_everything_is_dropped() -> None:
    applied = Filter.configured({}, Side.VALUE).apply(maps({}, {}))
    assert (applied.records, applied.dropped) == ([], [0, 1])
