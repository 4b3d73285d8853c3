"""Cast beside the real class."""

from __future__ import annotations

import re
from dataclasses import replace
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
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

TYPES = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"]
TEXTS = [
    *("", " ", "0", "-0", "+0", "007", "127", "128", "-128", "-129", "32767", "32768", "65536", "2147483647"),
    *("2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("99999999999999999999999", "1.0", "1.", ".5", "1e3", "1E-3", "1e400", "-1e400", "1e-400", "0x10"),
    *("NaN", "nan", "Infinity", "-Infinity", "inf", "+5", "--5", "5-", "1_000", " 5"),
    *(
        "5 ",
        "\t5\n",
        "NaNf",
        "true",
        "TRUE",
        "True ",
        "false",
        "yes",
        "1,000",
    ),
    *(
        "3.4028236e38",
        "1.17549435e-38",
        "16777217",
        "1e-46",
        "7e-46",
        "0.1",
        "123456789.123456789",
        "e5",
        ".",
    ),
]
NUMBERS = [
    *(0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1),
    *(2**53, 2**53 + 1, 2**63 - 1, -(2**63), 16777217, 33554435),
]
REALS = [
    *(0.0, 0.5, -0.5, 0.9999, 1.0, -1.0, 1.5, 127.9, 128.5, -129.9, 32768.0, 2147483647.0, 2147483648.0),
    *(-2147483649.0, 4294967296.0, 9.3e18, -9.3e18, 1e19, 1e300, -1e300, 0.001, 0.0009999, 0.0001, 1e-7),
    *(9999999.0, 9999999.5, 1e7, 12345678.9, 1.5e7, 1e21, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 100.0),
]
EVERYTHING = [*TEXTS, *NUMBERS, *REALS, True, False, None, [], [1], {}, {"x": 1}]


@pytest.mark.parametrize("kind", TYPES)
def test_a_field_of_any_json_type(parity: Parity, kind: str) -> None:
    parity.check([Smt(Cast, {"spec": f"a:{kind}"})], Given(Json([{"a": one} for one in EVERYTHING] + [{}])))


@pytest.mark.parametrize("kind", TYPES)
def test_a_whole_value_of_any_json_type(parity: Parity, kind: str) -> None:
    parity.check([Smt(Cast, {"spec": kind})], Given(Json(EVERYTHING)))
    keys = Given(Json([None] * len(EVERYTHING)), key=Json(EVERYTHING))
    parity.check([Smt(Cast, {"spec": kind}, Side.KEY)], keys)


@pytest.mark.parametrize("first", TYPES)
@pytest.mark.parametrize("second", TYPES)
def test_all_pairs_of_types_without_a_schema(parity: Parity, first: str, second: str) -> None:
    # Until Java 19, Float.toString and Double.toString write more digits than are needed, now and then.
    long_ones = second == "string" and first.startswith("float")
    some = [one for one in EVERYTHING if not long_ones or len(re.findall(r"\d", str(one))) < 8]
    rows = Given(Json([{"a": one} for one in some]))
    parity.check([Smt(Cast, {"spec": f"a:{first}"}), Smt(Cast, {"spec": f"a:{second}"})], rows)


def whole(bits: int) -> list[int]:
    return [one for one in NUMBERS if -(2 ** (bits - 1)) <= one < 2 ** (bits - 1)]


SINGLES = [0.0, 0.5, 1.0, 128.0, 3e9, 0.1, 1e-10, 3.4e38, 9999999.0, 1e7, 16777216.0]
DECIMALS = ["0.00", "1.50", "-1.99", "99999999999999999999.25"]
SMALL_DECIMALS = ["0.000000001", "0E-9", "1.000000000", "-7.250000000"]
DAYS = [0, 1, -1, 19_000, -141_427, -141_428, 2_932_896, -719_162]
MOMENTS = [0, 1, -1, 86_399_999, 86_400_000, 1_763_222_400_123, -12_219_292_800_001, 253_402_300_799_999]
COLUMNS: list[tuple[ConnectSchema, list[Any]]] = [
    (ConnectSchema(Kind.INT8), whole(8)),
    (ConnectSchema(Kind.INT16), whole(16)),
    (ConnectSchema(Kind.INT32), whole(32)),
    (ConnectSchema(Kind.INT64), whole(64)),
    (ConnectSchema(Kind.FLOAT64), REALS),
    (ConnectSchema(Kind.FLOAT32), SINGLES),
    (ConnectSchema(Kind.BOOLEAN), [True, False]),
    (ConnectSchema(Kind.STRING), TEXTS),
    (ConnectSchema(Kind.BYTES), [b"", b"\x00", b"ab\xff", b"some longer text"]),
    (decimal(2), [*map(Decimal, DECIMALS)]),
    (decimal(0), [*map(Decimal, (2**63, -(2**63) - 1, 128, 0))]),
    (decimal(9), [*map(Decimal, SMALL_DECIMALS)]),
    (date(), DAYS),
    (time(), [0, 1, 86_399_999, 43_200_000]),
    (timestamp(), MOMENTS),
    (array(ConnectSchema(Kind.INT32)), [[], [1]]),
    (map_of(ConnectSchema(Kind.STRING), ConnectSchema(Kind.INT32)), [[], [("k", 1)]]),
    (struct(("x", ConnectSchema(Kind.INT32))), [{"x": 1}]),
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("optional", [True, False])
def test_fields_with_schemas(parity: Parity, kind: str, optional: bool) -> None:
    for schema, values in COLUMNS:
        one = replace(schema, optional=optional, doc="d", version=schema.version or 3)
        rows = [{"a": value, "b": "kept"} for value in values]
        record = struct(("a", one), ("b", ConnectSchema(Kind.STRING)), name="n", version=4, doc="whole")
        more = [{"a": None, "b": "kept"}] if optional else []
        parity.check([Smt(Cast, {"spec": f"a:{kind}"})], Given(Of(record, rows + more)))


@pytest.mark.parametrize("kind", TYPES)
def test_whole_values_with_schemas(parity: Parity, kind: str) -> None:
    for schema, values in COLUMNS:
        if schema.name is None:  # of logical types Java keeps the name, though the value is none any more
            one = replace(schema, optional=True, doc="d", parameters=(("p", "q"),))
            parity.check([Smt(Cast, {"spec": kind})], Given(Of(one, [*values, None])))


@pytest.mark.parametrize("defaults", ["true", "false"])
def test_defaults_are_cast_too(parity: Parity, defaults: str) -> None:
    record = struct(
        ("a", ConnectSchema(Kind.STRING, optional=True, default="12")),
        ("b", ConnectSchema(Kind.INT32, optional=True, default=300)),
        ("c", ConnectSchema(Kind.FLOAT64, optional=True, default=0.5)),
    )
    rows = [{"a": None, "b": None, "c": None}, {"a": "x", "b": 1, "c": 2.5}, {"a": "7", "b": 1, "c": 2.5}]
    config = {"spec": "a:int32,b:int8", "replace.null.with.default": defaults}
    parity.check([Smt(Cast, config)], Given(Of(record, rows)))
    bad = struct(("a", ConnectSchema(Kind.STRING, optional=True, default="no number")))
    parity.check([Smt(Cast, config)], Given(Of(bad, [{"a": "1"}])))
    number = ConnectSchema(Kind.INT64, optional=True, default=7)
    parity.check([Smt(Cast, {"spec": "string"})], Given(Of(number, [1, None])))


@pytest.mark.parametrize(
    "spec",
    ["a: int8 , b:STRING", ":int8", "a:int8,a:string", " String ", "a:int8:", "string::"],
)
def test_specs_that_are_odd(parity: Parity, spec: str) -> None:
    parity.check([Smt(Cast, {"spec": spec})], Given(Json([{"a": 5, "b": 6, "": 7}])))


SPECS = ["a:int8", "a:string,b:boolean", "ü:float32,c.d:int64", "a:int32,b:int32,c.d:int32,ü:int32", "string"]


@generated(examples=60)
@given(
    spec=st.sampled_from(SPECS),
    defaults=st.sampled_from(["true", "false"]),
    side=st.sampled_from(Side),
    records=givens(Shape()),
)
def test_anything(parity: Parity, spec: str, defaults: str, side: Side, records: Given) -> None:
    parity.check([Smt(Cast, {"spec": spec, "replace.null.with.default": defaults}, side)], records)
