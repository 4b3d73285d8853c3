"""MaskField beside the real class."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import (
    ConnectSchema,
    Kind,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from icestream.transforms.cast import Cast
from icestream.transforms.groups import Side
from icestream.transforms.mask_field import MaskField
from icestream.transforms.timestamp_converter import TimestampConverter
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

REPLACEMENTS = [
    None,
    "***",
    "0",
    "-7",
    "300",
    "1.5",
    "1e3",
    "9223372036854775808",
    "1e40",
    " 5",
    "٣",
    "+5.",
    "NaN",
]
VALUES: list[Any] = ["text", "", 5, -(2**63), 1.5, True, False, None, [], [1], {}, {"x": 1}]
SCALARS: list[tuple[ConnectSchema, Any]] = [
    (ConnectSchema(Kind.INT8), 5),
    (ConnectSchema(Kind.INT16), 5),
    (ConnectSchema(Kind.INT32), 5),
    (ConnectSchema(Kind.INT64), 5),
    (ConnectSchema(Kind.FLOAT32), 0.5),
    (ConnectSchema(Kind.FLOAT64), 0.5),
    (ConnectSchema(Kind.BOOLEAN), True),
    (ConnectSchema(Kind.STRING), "text"),
    (ConnectSchema(Kind.BYTES), b"x"),
    (decimal(0), Decimal(7)),
    (date(), 19_000),
    (time(), 1_000),
    (timestamp(), 1_763_222_400_123),
    (array(ConnectSchema(Kind.INT32)), [1]),
    (map_of(ConnectSchema(Kind.STRING), ConnectSchema(Kind.INT32)), [("k", 1)]),
    (struct(("x", ConnectSchema(Kind.INT32))), {"x": 1}),
]


def config(replacement: str | None, fields: str = "a", defaults: str = "true") -> dict[str, str]:
    found = {"fields": fields, "replace.null.with.default": defaults}
    return found if replacement is None else {**found, "replacement": replacement}


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_maps(parity: Parity, replacement: str | None) -> None:
    values = [*({"a": value, "b": 1} for value in VALUES), {}, {"b": 1}, "no map", [1], 5, None]
    parity.check([Smt(MaskField, config(replacement))], Given(Json(values)))
    parity.check([Smt(MaskField, config(replacement, "a,b,c"))], Given(Json(values)))
    keys = Given(Json([1] * len(values)), key=Json(values))
    parity.check([Smt(MaskField, config(replacement), Side.KEY)], keys)


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "float32", "boolean"])
def test_types_that_json_lacks(parity: Parity, replacement: str | None, kind: str) -> None:
    rows = Given(Json([{"a": 5}, {"a": 0}, {"a": None}]))
    parity.check([Smt(Cast, {"spec": f"a:{kind}"}), Smt(MaskField, config(replacement))], rows)
    moments = Smt(TimestampConverter, {"field": "a", "target.type": "Timestamp"})
    parity.check([moments, Smt(MaskField, config(replacement))], rows)


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_structs(parity: Parity, replacement: str | None) -> None:
    for schema, value in SCALARS:
        if schema.name == decimal(0).name and replacement in ("1.5", "1e3", "1e40"):
            continue  # Java puts a decimal of another scale into the struct, and fails when it is written
        for optional in (True, False):
            one = ConnectSchema(
                schema.kind,
                optional,
                schema.name,
                schema.version,
                parameters=schema.parameters,
                fields=schema.fields,
                key=schema.key,
                value=schema.value,
            )
            whole = struct(("a", one), ("b", ConnectSchema(Kind.STRING)), name="n", optional=True, doc="d")
            more: list[Any] = [{"a": None, "b": "kept"}] if optional else []
            parity.check(
                [Smt(MaskField, config(replacement))],
                Given(Of(whole, [{"a": value, "b": "kept"}, *more, None])),
            )


@pytest.mark.parametrize("defaults", ["true", "false"])
def test_defaults(parity: Parity, defaults: str) -> None:
    schema = struct(
        ("a", ConnectSchema(Kind.INT32, optional=True, default=7)),
        ("b", ConnectSchema(Kind.STRING, optional=True, default="x")),
    )
    rows = [{"a": None, "b": None}, {"a": 1, "b": "y"}]
    parity.check([Smt(MaskField, config(None, "a", defaults))], Given(Of(schema, rows)))
    parity.check([Smt(MaskField, config("5", "a,b", defaults))], Given(Of(schema, rows)))


@generated(examples=60)
@given(
    replacement=st.sampled_from([None, "0", "x"]),
    fields=st.sampled_from(["a", "b", "a,ü", "c.d,b"]),
    side=st.sampled_from(Side),
    records=givens(Shape()),
)
def test_anything(parity: Parity, replacement: str | None, fields: str, side: Side, records: Given) -> None:
    parity.check([Smt(MaskField, config(replacement, fields), side)], records)
