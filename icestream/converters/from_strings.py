"""Strings to the bytes of a record, as Kafka Connect's converters write them. Called by source jobs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.api.jackson import jackson_bytes

Encoder = Callable[[pa.Array], pa.Array]
"""A column of strings to a column of binaries of the same length; null where a string cannot be converted."""

_ENVELOPE: Final = '{"schema":{"type":"string","optional":false},"payload":"'
_SHORT_ESCAPES: Final[Mapping[int, str]] = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_CONTROLS: Final = bytes(range(32))
_BEYOND_BMP: Final = re.compile(rb"[\xf0-\xf4]")
_TWO_UNITS: Final = re.compile("[\U00010000-\U0010ffff]")


def string_encoder(config: Config, kind: str = "value") -> Encoder:
    """The encoder of `<kind>.converter`."""
    named = config.get(f"{kind}.converter", "").strip().rpartition(".")[2]
    settings = subset(config, f"{kind}.converter.")
    if named == "StringConverter":
        return _in_encoding(settings.get("converter.encoding", "UTF-8").strip(), f"{kind}.converter")
    if named == "ByteArrayConverter":
        return lambda column: pa.nulls(len(column), pa.binary())
    has_schema = settings.get("schemas.enable", "true").strip().lower() != "false"
    return _json_envelopes if has_schema else _json_strings


def refusal(config: Config, kind: str = "value") -> str:
    """Why a string could not be converted."""
    named = config.get(f"{kind}.converter", "").strip().rpartition(".")[2]
    return f"Invalid schema type for {named}: STRING"


def _in_encoding(encoding: str, key: str) -> Encoder:
    try:
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        raise ConfigError(
            [Problem(f"{key}.converter.encoding", f"'{encoding}' is no encoding; use UTF-8")]
        ) from None
    if is_utf8:
        return lambda column: column.cast(pa.binary())
    # Java writes a question mark for what an encoding lacks, as Python's `replace` does.
    return lambda column: pa.array(
        [text.encode(encoding, "replace") for text in column.to_pylist()], pa.binary()
    )


def _json_envelopes(column: pa.Array) -> pa.Array:
    joined = pc.binary_join_element_wise(_ENVELOPE, json_escaped(column), '"}', "")
    return joined.cast(pa.binary())


def _json_strings(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', json_escaped(column), '"', "").cast(pa.binary())


def json_escaped(column: pa.Array) -> pa.Array:
    """Escaped as Jackson does by default: quotation marks, backslashes and control characters."""
    text = b"" if column.buffers()[2] is None else column.buffers()[2].to_pybytes()
    for letter in ("\\", '"'):
        if letter.encode() in text:
            column = pc.replace_substring(column, letter, "\\" + letter)
    if len(text.translate(None, _CONTROLS)) != len(text):
        for code in sorted(set(text) & set(_CONTROLS)):
            column = pc.replace_substring(column, chr(code), _SHORT_ESCAPES.get(code, f"\\u{code:04X}"))
    if _BEYOND_BMP.search(text):
        # What Java keeps as two characters, such as emoji, is escaped too, and nothing else beyond ASCII.
        column = pa.array([_TWO_UNITS.sub(_escaped, line) for line in column.to_pylist()], pa.string())
    return column


def _escaped(found: re.Match[str]) -> str:
    return jackson_bytes(found[0]).decode()[1:-1]
