"""MaskField: empty values and replacements, type by type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from icestream.records.schema import ConnectSchema, Kind, array, decimal, struct
from icestream.transforms.groups import Side
from icestream.transforms.mask_field import MaskField
from tests.unit.transforms.groups import maps, structs, values


def mask(*fields: str, replacement: str | None = None) -> MaskField:
    settings = {"fields": list(fields), "replacement": replacement, "replace.null.with.default": True}
    return MaskField.configured(settings, Side.VALUE)


@pytest.mark.parametrize(
    ("given", "replacement", "wanted"),
    [
        ("secret", None, ""),
        (5, None, 0),
        (1.5, None, 0.0),
        (True, None, False),
        ([1, 2], None, []),
        ({"x": 1}, None, {}),
        (None, None, None),
        ("secret", "***", "***"),
        (5, "1e3", 1000),
        (5, "9223372036854775808", -(2**63)),
        (1.5, "-7", -7.0),
        (None, "***", None),
    ],
)
def test_maps(given: Any, replacement: str | None, wanted: Any) -> None:
    applied = mask("a", replacement=replacement).apply(maps({"a": given, "b": "kept"}, {"b": "kept"}))
    assert values(applied) == {0: {"a": wanted, "b": "kept"}, 1: {"a": None, "b": "kept"}}


def test_only_the_records_that_cannot_be_masked_fail() -> None:
    applied = mask("a", replacement="***").apply(maps({"a": "x"}, {"a": 5}, {"a": True}, {"a": None}))
    assert values(applied) == {0: {"a": "***"}, 3: {"a": None}}
    assert {row: failure.reason for row, failure in applied.failed.items()} == {
        1: "Unable to convert *** (class java.lang.String) to a number",
        2: "Cannot mask value of type class java.lang.Boolean with custom replacement.",
    }


def test_structs() -> None:
    schema = struct(
        ("a", decimal(2, optional=True)),
        ("b", array(ConnectSchema(Kind.INT32), optional=True)),
        ("c", ConnectSchema(Kind.BYTES, optional=True)),
    )
    rows = [{"a": Decimal("1.50"), "b": [1], "c": None}, {"a": None, "b": None, "c": b"x"}]
    applied = mask("a", "b", "c").apply(structs(schema, rows))
    assert values(applied) == {0: {"a": Decimal("0.00"), "b": [], "c": None}}
    assert applied.failed[1].reason == "Cannot mask value of type: class [B"


def test_a_decimal_that_the_schema_has_no_digits_for_is_refused() -> None:
    schema = struct(("a", decimal(2)))
    applied = mask("a", replacement="1.234").apply(structs(schema, [{"a": Decimal("1.50")}]))
    assert applied.failed[0].reason == (
        "Decimal value has mismatching scale for given Decimal schema. Schema has scale 2, value has scale 3."
    )
