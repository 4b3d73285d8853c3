"""Kafka Connect's StringConverter: any value as the text that Java prints, in a chosen encoding."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.types as pt

from icestream.api.errors import ConfigError, Problem
from icestream.converters.value_text import value_texts
from icestream.records.column import Column
from icestream.records.records import Converted
from icestream.records.schema import OPTIONAL_STRING
from icestream.records.values import Value


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
        if self._is_utf8 and isinstance(value, Column) and pt.is_string(value.values.type):
            found: Sequence[bytes | None] = value.values.cast(pa.binary()).to_pylist()
            return found
        texts = value_texts(value, length)
        # Java writes a question mark for what an encoding lacks, as Python's `replace` does.
        return [None if text is None else text.encode(self.encoding, "replace") for text in texts]

    @property
    def _is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name == "utf-8"

    def _decoded(self, values: Sequence[bytes | None]) -> pa.Array:
        if self._is_utf8:
            try:
                return pa.array(values, pa.binary()).cast(pa.string())
            except pa.ArrowInvalid:  # some is no UTF-8: Java puts a mark in its place
                pass
        return pa.array(
            [None if value is None else value.decode(self.encoding, "replace") for value in values],
            pa.string(),
        )
