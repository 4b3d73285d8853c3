"""Strings as Kafka Connect's converters write them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.converters.from_strings import refusal, string_encoder

JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
EVERY_CHARACTER = "".join(map(chr, [*range(0x180), 0x2028, 0xFFFD, 0x10000, 0x1F642]))


def encoded(config: dict[str, str], *texts: str) -> list[bytes | None]:
    return list(string_encoder(config)(pa.array(texts, pa.string())).to_pylist())


def test_json_carries_its_schema_unless_told_otherwise() -> None:
    assert encoded(JSON, "a", "") == [
        b'{"schema":{"type":"string","optional":false},"payload":"a"}',
        b'{"schema":{"type":"string","optional":false},"payload":""}',
    ]
    assert encoded({**JSON, "value.converter.schemas.enable": "false"}, "a") == [b'"a"']


def test_every_character_survives_json_and_is_escaped_as_jackson_does() -> None:
    (written,) = encoded({**JSON, "value.converter.schemas.enable": "false"}, EVERY_CHARACTER)
    assert written is not None
    assert json.loads(written) == EVERY_CHARACTER
    assert written.startswith(b'"\\u0000\\u0001')
    for escape in (b"\\b", b"\\t", b"\\n", b"\\f", b"\\r", b'\\"', b"\\\\", b"\\u001F", b"\\uD83D\\uDE42"):
        assert escape in written
    for plain in (b"/", b"\x7f", "é".encode(), "\u2028".encode()):
        assert plain in written


def test_strings_are_written_in_their_encoding() -> None:
    string = {"value.converter": "StringConverter"}
    assert encoded(string, "ü") == ["ü".encode()]
    assert encoded({**string, "value.converter.converter.encoding": "ISO-8859-1"}, "ü漢") == [b"\xfc?"]
    with pytest.raises(ConfigError, match="'klingon' is no encoding"):
        string_encoder({**string, "value.converter.converter.encoding": "klingon"})


def test_bytes_are_no_strings() -> None:
    config = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
    assert encoded(config, "a", "b") == [None, None]
    assert refusal(config) == "Invalid schema type for ByteArrayConverter: STRING"
