"""Values as Java prints them; the integration tests compare them with the real FileStreamSink."""

from __future__ import annotations

import pytest

from icestream.converters.to_text import text_decoder
from icestream.records.java_text import hash_order, java_double, java_float, java_text

JSON = {"value.converter": "JsonConverter"}


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


def test_maps_are_walked_as_javas_are() -> None:
    assert hash_order(["b", "a", "longer"]) == ["a", "b", "longer"]
    assert hash_order(["BBBB", "AaAa", "AaBB"]) == ["BBBB", "AaAa", "AaBB"], "one bucket: as they came"


def test_bad_records_are_set_aside_with_their_reason() -> None:
    found = text_decoder(JSON)([b"{", b'{"payload":1}', None, b'{"schema":{"type":"int8"},"payload":null}'])
    assert found.texts == [b"null"]
    assert "serialization error" in found.bad[0]
    assert 'requires "schema" and "payload" fields' in found.bad[1]
    assert "Invalid null value for required INT8 field" in found.bad[3]
    bad_type = text_decoder(JSON)([b'{"schema":{"type":"int8"},"payload":[]}'])
    assert "does not fit its schema type int8" in bad_type.bad[0]


def test_strings_in_their_encoding() -> None:
    string = {"value.converter": "StringConverter"}
    assert text_decoder(string)([b"\xff", "ü".encode(), None]).texts == [
        "\ufffd".encode(),
        "ü".encode(),
        b"null",
    ]
    latin = {**string, "value.converter.converter.encoding": "ISO-8859-1"}
    assert text_decoder(latin)([b"\xfc"]).texts == ["ü".encode()]
