"""StringConverter and Java's text of values; the parity tests compare both with the real classes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.converters.catalog import converter_from
from icestream.converters.json_converter import JsonConverter
from icestream.converters.value_text import value_texts
from icestream.records.column import Column
from icestream.records.java_text import java_double, java_float, java_text
from icestream.records.json_source import JsonSource
from icestream.records.records import Converter
from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    array,
    date,
    decimal,
    map_of,
    struct,
    timestamp,
)
from icestream.records.values import object_fields


def converter(encoding: str = "UTF-8") -> Converter:
    return converter_from(
        {"value.converter": "StringConverter", "value.converter.converter.encoding": encoding}, "value"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (1e300, "1.0E300"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert java_double(value) == text


def test_other_values() -> None:
    assert java_float(1.1) == "1.1"
    assert java_text([1, "a", None, True, {}]) == "[1, a, null, true, {}]"
    assert java_text(2**63) == "-9223372036854775808"


def test_maps_keep_the_order_of_their_keys() -> None:
    assert java_text({"b": 1, "a": {"d": 2, "c": None}}) == "{b=1, a={d=2, c=null}}"


def test_values_with_a_schema_are_shown_as_java_shows_them() -> None:
    schema = struct(
        ("a", ConnectSchema(Kind.INT32)),
        ("b", OPTIONAL_STRING),
        ("c", array(ConnectSchema(Kind.FLOAT64))),
        ("d", map_of(STRING, ConnectSchema(Kind.BOOLEAN))),
        ("e", decimal(2)),
        ("f", date()),
    )
    day = dt.date(2020, 2, 29)
    row = {"a": 1, "b": None, "c": [1.0], "d": [("x", True)], "e": Decimal("1.50"), "f": day}
    (text,) = value_texts(Column(pa.array([row], schema.arrow_type), schema), 1)
    assert text is not None
    assert text.startswith("Struct{a=1,c=[1.0],d={x=true},e=1.50,f=Sat Feb 29 ")


def test_schemaless_values_are_shown_with_what_transforms_changed() -> None:
    fields = object_fields(JsonSource([b'{"a":{"b":[1,null]},"c":1.5}', b"{}"]))
    changed = fields.put({"c": None, "d": Column(pa.array([1, None], pa.int8()))})
    assert value_texts(changed, 2) == ["{a={b=[1, null]}, d=1}", "{d=null}"]
    assert value_texts(None, 2) == [None, None]


def test_strings_in_their_encoding() -> None:
    ((rows, found),) = converter().to_connect("t", [b"\xff", "ü".encode(), None]).groups
    assert rows is None
    assert isinstance(found, Column)
    assert found.values.to_pylist() == ["\ufffd", "ü", None]
    assert found.schema == OPTIONAL_STRING
    ((_, latin),) = converter("ISO-8859-1").to_connect("t", [b"\xfc"]).groups
    assert isinstance(latin, Column)
    assert latin.values.to_pylist() == ["ü"]


def test_strings_are_written_in_their_encoding() -> None:
    text = Column(pa.array(["ü漢", None]), OPTIONAL_STRING)
    assert converter().from_connect("t", text, 2) == ["ü漢".encode(), None]
    assert converter("ISO-8859-1").from_connect("t", text, 2) == [b"\xfc?", None]
    assert converter("UTF-16").from_connect("t", text, 2) == [b"\xfe\xff\x00\xfc\x6f\x22", None]
    numbers = Column(pa.array([1, 2], pa.int16()), ConnectSchema(Kind.INT16))
    assert converter().from_connect("t", numbers, 2) == [b"1", b"2"]


def test_utf_16_is_big_endian_as_in_java_unless_it_says_so() -> None:
    ((_, found),) = converter("UTF-16").to_connect("t", [b"\x00a", b"\xff\xfea\x00", b"\xfe\xff\x00a"]).groups
    assert isinstance(found, Column)
    assert found.values.to_pylist() == ["a", "a", "a"]


def test_an_unknown_encoding_is_named() -> None:
    with pytest.raises(ConfigError, match="'klingon' is no encoding") as raised:
        converter("klingon")
    assert raised.value.problems[0].key == "value.converter.converter.encoding"


def test_json_that_is_nested_more_deeply_than_calls_of_python() -> None:
    lists, maps = b"[" * 900 + b"1, null" + b"]" * 900, b'{"b":1,"a":' * 900 + b'"x"' + b"}" * 900
    json = JsonConverter.configured({"schemas.enable": "false"}, False)
    ((_, shown),) = json.to_connect("t", [maps]).groups
    assert value_texts(shown, 1) == ["{b=1, a=" * 900 + "x" + "}" * 900]
    ((_, shown),) = json.to_connect("t", [lists]).groups
    assert value_texts(shown, 1) == ["[" * 900 + "1, null" + "]" * 900]


def test_moments_that_python_has_no_dates_for() -> None:
    schema = struct(("d", date()), ("a", array(timestamp())), ("m", map_of(STRING, timestamp())))
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    moments = pa.array([[2**60]], pa.list_(pa.int64())).cast(schema.arrow_type.field("a").type)
    named = pa.array([[("k", 2**60)]], pa.map_(pa.string(), pa.int64())).cast(
        schema.arrow_type.field("m").type
    )
    values = pa.StructArray.from_arrays([far, moments, named], fields=list(schema.arrow_type))
    (text,) = value_texts(Column(values, schema), 1)
    assert text is not None
    assert "5881580" in text and text.count(" 36536598") == 2
