"""JSON Lines, as Confluent's JsonFormat writes them: a Struct as JsonConverter does without schemas, all else
as Jackson does. Each line ends with a line feed, the last one too.

JSON that came without a schema and that nobody changed is written as it came: its keys have no order in Java.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.connectors.s3.formats.format import Encoder, Rows
from icestream.connectors.s3.formats.gzip import Compression, Gzipped
from icestream.connectors.s3.formats.required import missing_values
from icestream.jsontext.encode import JsonWriter
from icestream.records.column import Column
from icestream.records.plain import plain
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Text, Typed

_LINE_END: Final = b"\n"
_DIGITS: Final = bytes(48 if chr(code).isdigit() and code < 128 else 46 for code in range(256))
"""Translates every digit to 0, and all else to a full stop."""
_BEYOND_LONG: Final = b"0" * 19


@dataclass(frozen=True)
class JsonLines:
    """`format.class=io.confluent.connect.s3.format.json.JsonFormat`."""

    numeric_decimals: bool = False
    """`json.decimal.format`: decimals within a Struct as numbers, else base64."""
    compression: Compression | None = None

    @property
    def extension(self) -> str:
        return ".json" if self.compression is None else ".json.gz"

    def unfit(self, value: Typed) -> Mapping[int, Failure]:
        return missing_values(value) if isinstance(value, Column) else {}

    def encoder(self, schema: ConnectSchema | None) -> Encoder:
        lines = _Lines(self._writer())
        return lines if self.compression is None else Gzipped(lines, self.compression)

    def _writer(self) -> JsonWriter:
        return JsonWriter(has_schemas=False, numeric=self.numeric_decimals)


@dataclass(frozen=True)
class _Lines:
    writer: JsonWriter

    def write(self, rows: Rows) -> bytes:
        lines: Sequence[bytes]
        if len(rows.values) == 1:
            lines = json_texts(rows.values[0], self.writer)
        else:
            lines = list(chain.from_iterable(json_texts(one, self.writer) for one in rows.values))
        if rows.order is not None:
            lines = [lines[at] for at in rows.order.tolist()]
        return _LINE_END.join((*lines, b""))

    def close(self) -> bytes:
        return b""


def json_texts(value: Typed, writer: JsonWriter) -> Sequence[bytes]:
    """The JSON of each value, without line feeds."""
    if isinstance(value, Fields) and not value.named and value.rest is not None and not value.rest.path:
        return _as_they_came(value.rest)
    if not isinstance(value, Column):
        return _with_longs(_encoded(plain(value, len(value), _raw_leaves)))
    if value.schema is not None and value.schema.kind is Kind.STRUCT:
        return _present(writer.written(value, len(value)))
    return _by_jackson(value)


def _present(texts: Sequence[bytes | None]) -> Sequence[bytes]:
    return [b"null" if text is None else text for text in texts]


def _as_they_came(text: Text) -> Sequence[bytes]:
    """Texts of JSON objects: known to be valid, so a line feed in them is between two values."""
    values = text.source.values
    if text.rows is not None:
        values = [values[row] for row in text.rows.tolist()]
    if any(b"\n" in value or b"\r" in value for value in values):
        values = [value.replace(b"\n", b" ").replace(b"\r", b" ") for value in values]
    return _with_longs(values)


def _encoded(rows: Sequence[Any]) -> list[bytes]:
    try:
        return list(map(msgspec.json.encode, rows))
    except UnicodeEncodeError:
        return [msgspec.json.encode(_without_halves(row)) for row in rows]


def _without_halves(value: Any) -> Any:
    """Halves of surrogate pairs, which JSON can name and UTF-8 cannot write, are question marks."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    return [_without_halves(item) for item in value] if isinstance(value, list) else value


def _with_longs(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Texts without whole numbers of more than 64 bits."""
    if _BEYOND_LONG not in b"\0".join(texts).translate(_DIGITS):
        return texts
    return [_in_java(text) for text in texts]


def _in_java(value: bytes) -> bytes:
    """With whole numbers of more than 64 bits as Java's converter keeps them: the low 64."""
    if _BEYOND_LONG not in value.translate(_DIGITS):
        return value
    return msgspec.json.encode(_longs(msgspec.json.decode(value)))


def _longs(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _longs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_longs(item) for item in value]
    is_long = isinstance(value, int) and not isinstance(value, bool)
    return (value + 2**63) % 2**64 - 2**63 if is_long else value


def _raw_leaves(column: Column) -> list[Any]:
    texts = _by_jackson(column) if column.schema is None else JsonWriter(False).written(column, len(column))
    return [None if text is None else msgspec.Raw(text) for text in texts]


def _by_jackson(column: Column) -> Sequence[bytes]:
    """Values that are no Struct. A date is its moment in milliseconds, a decimal always a number."""
    values = column.values
    if pt.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    bare = Column(values) if not pt.is_nested(values.type) else column
    return _present(JsonWriter(has_schemas=False, numeric=True).written(bare, len(column)))
