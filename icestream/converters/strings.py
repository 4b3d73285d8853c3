"""Kafka Connect's StringConverter: any value as the text that Java prints, in a chosen encoding."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
import pyarrow.types as pt

from icestream.api.config import ConfigDef, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.converters.value_text import value_texts
from icestream.records.column import Column
from icestream.records.records import Converted
from icestream.records.schema import OPTIONAL_STRING
from icestream.records.values import Value

SETTINGS: Final = ConfigDef(
    (
        Setting(
            "converter.encoding",
            Type.STRING,
            "UTF-8",
            "The character set of the string converter.",
            importance="HIGH",
            width="MEDIUM",
            display_name="Encoding",
        ),
    )
)
_UTF_8: Final = "utf-8"
_UTF_16: Final = "utf-16"
"""Java writes it with the high byte first, and reads it so unless a mark says otherwise."""
_LIKE_JAVA: Final = "icestream-like-java"


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """One mark for half a surrogate pair, whose bytes Python marks one by one."""
    assert isinstance(error, UnicodeDecodeError)
    broken = error.object[error.start : error.start + 3]
    if half := _HALF_PAIR.match(broken):
        return "\ufffd", error.start + len(half[0])
    return "\ufffd", error.end


_HALF_PAIR: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
codecs.register_error(_LIKE_JAVA, _replaced)


@dataclass(frozen=True)
class StringConverter:
    encoding: str = "UTF-8"

    @classmethod
    def configured(cls, settings: Mapping[str, str], is_key: bool) -> Self:
        encoding = settings.get("converter.encoding", "UTF-8").strip()
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ConfigError(
                [Problem("converter.encoding", f"'{encoding}' is no encoding; use UTF-8")]
            ) from None
        return cls(encoding)

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        return Converted([(None, Column(self._decoded(values), OPTIONAL_STRING))])

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        if self._name == _UTF_8 and isinstance(value, Column) and pt.is_string(value.values.type):
            found: Sequence[bytes | None] = value.values.cast(pa.binary()).to_pylist()
            return found
        texts = value_texts(value, length)
        return [None if text is None else self._encode(text) for text in texts]

    def _encode(self, text: str) -> bytes:
        # Java writes a question mark for what an encoding lacks, as Python's `replace` does.
        if self._name != _UTF_16:
            return text.encode(self.encoding, "replace")
        return codecs.BOM_UTF16_BE + text.encode("utf-16-be", "replace") if text else b""

    def _decode(self, value: bytes) -> str:
        if self._name != _UTF_16 or value.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
            return value.decode(self.encoding, _LIKE_JAVA if self._name == _UTF_8 else "replace")
        return value.decode("utf-16-be", "replace")

    @functools.cached_property
    def _name(self) -> str:
        return codecs.lookup(self.encoding).name

    def _decoded(self, values: Sequence[bytes | None]) -> pa.Array:
        if self._name == _UTF_8:
            try:
                return pa.array(values, pa.binary()).cast(pa.string())
            except pa.ArrowInvalid:  # some is no UTF-8: Java puts a mark in its place
                pass
        return pa.array([None if value is None else self._decode(value) for value in values], pa.string())
