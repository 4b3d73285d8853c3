"""Values to the JSON that Java's JsonConverter writes, column by column; and Python's own values to the text
that Jackson writes, for transforms and for the keys of stored offsets."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.nesting import MOST_LEVELS, NestedTooDeeply
from icestream.jsontext.bulk_numbers import base64_decimals, float_texts
from icestream.jsontext.schemas import schema_node
from icestream.records.column import Column, children
from icestream.records.java_text import Verbatim, java_double, java_float, java_long
from icestream.records.json_source import ABSENT
from icestream.records.plain import plain
from icestream.records.records import ConversionError, Failure
from icestream.records.rows import Flags
from icestream.records.schema import DECIMAL, SCALE, ConnectSchema, Kind
from icestream.records.values import Typed, Value

_SHORT_ESCAPES: Final[Mapping[int, str]] = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_CONTROLS: Final = bytes(range(32))
_BEYOND_BMP: Final = re.compile(rb"[\xf0-\xf4]")
_TWO_UNITS: Final = re.compile("[\U00010000-\U0010ffff]")
_ESCAPES: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
_COMPACT: Final[Mapping[str, Any]] = {"separators": (",", ":"), "ensure_ascii": False}
_TOO_DEEP: Final = Failure("Conversion error: the value is nested too deeply to be written as JSON")
_REQUIRED: Final = Failure("Conversion error: null value for field that is required and has no default value")


@dataclass
class JsonWriter:
    """Writes the values of one converter."""

    has_schemas: bool = True
    numeric: bool = False
    """Whether decimals are numbers; else base64."""
    fills: bool = True
    _schemas: dict[ConnectSchema, str] = field(default_factory=dict)

    def written(self, value: Value, length: int) -> Sequence[bytes | None]:
        """The bytes of each value; raises ConversionError if there are some that Java would not write."""
        if value is None:
            return [None] * length
        before, after = "", ""
        if self.has_schemas:
            schema = value.schema if isinstance(value, Column) else None
            before, after = '{"schema":' + self._schema_text(schema) + ',"payload":', "}"
        found: Sequence[bytes | None] = self._payloads(value, before, after).cast(pa.binary()).to_pylist()
        return found

    def _payloads(self, value: Typed, before: str, after: str) -> pa.Array:
        """JSON of each value, between these two."""
        if isinstance(value, Column) and value.schema is not None:
            failed = np.zeros(len(value), np.bool_)
            if value.schema.kind is Kind.STRUCT and not value.values.null_count:
                # All in one go: a schema may be much longer than the values after it.
                texts = self._structs(value.values, value.schema, failed, before, after)
            else:
                texts = _between(before, self._texts(value.values, value.schema, failed), after)
            if failed.any():
                raise ConversionError(dict.fromkeys(np.flatnonzero(failed).tolist(), _REQUIRED))
            return texts
        texts = pa.array(plain_texts(plain(value, len(value), self._leaves)), pa.string())
        return _between(before, texts, after)

    def _schema_text(self, schema: ConnectSchema | None) -> str:
        if schema is None:
            return "null"
        if schema not in self._schemas:
            self._schemas[schema] = object_text(schema_node(schema, self._default))
        return self._schemas[schema]

    def _default(self, schema: ConnectSchema) -> Verbatim:
        values = pa.array([schema.default], schema.arrow_type)
        text = self._texts(values, schema, np.zeros(1, np.bool_))[0].as_py()
        return Verbatim(text)

    def _leaves(self, column: Column) -> list[Any]:
        texts = _scalars(column.values).to_pylist()
        return [None if text is None else Verbatim(text) for text in texts]

    def _texts(self, values: pa.Array, schema: ConnectSchema, failed: Flags) -> pa.Array:
        """JSON of each value, never null; `failed` is set where a required value is missing."""
        inner = np.zeros(len(values), np.bool_)
        texts = self._without_nulls(values, schema, inner)
        if not values.null_count:
            failed |= inner
            return texts
        null = values.is_null()
        failed |= inner & ~null.to_numpy(zero_copy_only=False)
        if schema.default is not None and self.fills:
            return pc.if_else(null, self._default(schema).text, texts)
        if not schema.optional:
            failed |= null.to_numpy(zero_copy_only=False)
        return pc.if_else(null, "null", texts)

    def _without_nulls(self, values: pa.Array, schema: ConnectSchema, failed: Flags) -> pa.Array:
        if schema.kind is Kind.STRUCT:
            return self._structs(values, schema, failed)
        if schema.key is not None and schema.value is not None:
            return self._maps(values, schema.key, schema.value, failed)
        if schema.value is not None:
            return self._lists(values, schema.value, failed)
        if schema.name == DECIMAL and not self.numeric:
            return _base64_decimals(values, int(schema.parameter(SCALE) or 0))
        return _scalars(values)

    def _structs(
        self, values: pa.Array, schema: ConnectSchema, failed: Flags, before: str = "", after: str = ""
    ) -> pa.Array:
        parts: list[Any] = []
        between = before + "{"
        for name, child in children(Column(values, schema)).items():
            assert child.schema is not None
            between += f"{object_text(name)}:"
            if child.schema.kind is Kind.STRING and not child.values.null_count:
                # Its quotation marks go with the name, which saves a copy of each text.
                parts += [between + '"', json_escaped(child.values)]
                between = '",'
            else:
                parts += [between, self._texts(child.values, child.schema, failed)]
                between = ","
        if not parts:
            return pa.array([f"{before}{{}}{after}"] * len(values), pa.string())
        return pc.binary_join_element_wise(*parts, between[:-1] + "}" + after, "")

    def _lists(self, values: pa.Array, of: ConnectSchema, failed: Flags) -> pa.Array:
        items = values.flatten()
        inner = np.zeros(len(items), np.bool_)
        lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        return _joined(self._texts(items, of, inner), lengths, inner, failed, "[]")

    def _maps(self, values: pa.Array, key: ConnectSchema, of: ConnectSchema, failed: Flags) -> pa.Array:
        bounds = values.offsets.to_numpy(zero_copy_only=False)
        keys = values.keys.slice(bounds[0], bounds[-1] - bounds[0])
        items = values.items.slice(bounds[0], bounds[-1] - bounds[0])
        inner = np.zeros(len(keys), np.bool_)
        shown, texts = self._texts(keys, key, inner), self._texts(items, of, inner)
        lengths = np.diff(bounds)
        if key.kind is Kind.STRING:
            pairs = pc.binary_join_element_wise(shown, texts, ":")
            return _joined(pairs, lengths, inner, failed, "{}")
        pairs = pc.binary_join_element_wise("[", pc.binary_join_element_wise(shown, texts, ","), "]", "")
        return _joined(pairs, lengths, inner, failed, "[]")


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "") if before or after else texts


def _joined(texts: pa.Array, lengths: Any, inner: Flags, failed: Flags, brackets: str) -> pa.Array:
    """The texts of all items, each row's own between brackets."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    failed[owners[inner]] = True
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts)
    return pc.binary_join_element_wise(brackets[0], pc.binary_join(lists, ","), brackets[1], "")


def _scalars(values: pa.Array) -> pa.Array:
    """JSON of each value, null for nulls."""
    kind = values.type
    if pt.is_string(kind):
        return pc.binary_join_element_wise('"', json_escaped(values), '"', "")
    if pt.is_date(kind) or pt.is_time(kind):
        return values.cast(pa.int32()).cast(pa.string())
    if pt.is_timestamp(kind):
        return values.cast(pa.int64()).cast(pa.string())
    shown = next((show for applies, show in _SINGLY if applies(kind)), None)
    if shown is None:
        return values.cast(pa.string())
    if pt.is_floating(kind):
        return float_texts(values, shown)
    return pa.array([None if value is None else shown(value) for value in values.to_pylist()], pa.string())


def _number(shown: Callable[[float], str]) -> Callable[[float], str]:
    """Jackson writes what is no JSON number as text."""

    def written(value: float) -> str:
        text = shown(value)
        return text if text[-1].isdigit() else f'"{text}"'

    return written


_SINGLY: Final[Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]]]] = (
    (pt.is_float32, _number(java_float)),
    (pt.is_float64, _number(java_double)),
    (pt.is_binary, lambda value: f'"{base64.b64encode(value).decode()}"'),
    (pt.is_decimal, lambda value: str(value)),
)


def _base64_decimals(values: pa.Array, scale: int) -> pa.Array:
    def singly(value: Decimal) -> str:
        return f'"{_unscaled(value, scale)}"'

    if pt.is_decimal256(values.type) and values.type.scale == scale:
        return base64_decimals(values, singly)
    return pa.array([None if value is None else singly(value) for value in values.to_pylist()], pa.string())


def _unscaled(value: Decimal, scale: int) -> str:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale) * (-1 if sign else 1)
    # As BigInteger.toByteArray: as few bytes as hold the number with its sign.
    width = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(width, "big", signed=True)).decode()


def json_escaped(column: pa.Array) -> pa.Array:
    """Escaped as Jackson does by default: quotation marks, backslashes and control characters."""
    text = _letters(column)
    if not text:
        return column
    for letter in ("\\", '"'):
        if letter.encode() in text:
            column = pc.replace_substring(column, letter, "\\" + letter)
    if np.frombuffer(text, np.uint8).min() < len(_CONTROLS):
        for code in sorted(set(text) & set(_CONTROLS)):
            column = pc.replace_substring(column, chr(code), _SHORT_ESCAPES.get(code, f"\\u{code:04X}"))
    if not text.isascii() and _BEYOND_BMP.search(text):
        # What Java keeps as two characters, such as emoji, is escaped too, and nothing else beyond ASCII.
        column = pa.array(
            [None if line is None else _TWO_UNITS.sub(_escaped, line) for line in column.to_pylist()],
            pa.string(),
        )
    return column


def _letters(column: pa.Array) -> bytes:
    """All texts of a column in one: of a slice, those of the slice."""
    _, bounds, held = column.buffers()
    if held is None or not len(column):
        return b""
    offsets = np.frombuffer(bounds, np.int32)
    first, last = int(offsets[column.offset]), int(offsets[column.offset + len(column)])
    return bytes(held.slice(first, last - first).to_pybytes())


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"


def jackson_bytes(data: Any) -> bytes:
    """Plain data with the bytes that Jackson writes, for keys that Kafka Connect must find again."""
    return _TWO_UNITS.sub(_escaped, _with_capitals(json.dumps(data, **_COMPACT))).encode()


def jackson_string(text: str, *, in_bytes: bool = True) -> str:
    """As Jackson writes it: characters beyond ASCII as they are, unless Java keeps them as two and it writes
    bytes; capital hex digits."""
    written = _with_capitals(json.dumps(text, **_COMPACT))
    return _TWO_UNITS.sub(_escaped, written) if in_bytes else written


def _with_capitals(text: str) -> str:
    return _ESCAPES.sub(lambda found: found[0] if found[1] is None else f"\\u{found[1].upper()}", text)


def object_text(
    value: Any,
    string: Callable[[str], str] = jackson_string,
    whole: Callable[[int], int] = java_long,
    levels: int = MOST_LEVELS,
) -> str:
    """A schemaless value as JSON, keys in their order; strings and whole numbers are written as told. Raises
    NestedTooDeeply if it has more levels."""
    match value:
        case Verbatim():
            return value.text
        case str():
            return string(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(whole(value))
        case float():
            return _number(java_double)(value)
        case Mapping() | list() if not levels:
            raise NestedTooDeeply(MOST_LEVELS)
        case Mapping():
            # Loops, not comprehensions: one call of Python a level, so that deep values can be written.
            pairs = []
            for key, item in value.items():
                text = object_text(item, string, whole, levels - 1)
                pairs.append(f"{object_text(key, string, whole)}:{text}")
            return "{" + ",".join(pairs) + "}"
    if value is None or value is ABSENT:
        return "null"
    items = []
    for item in value:
        items.append(object_text(item, string, whole, levels - 1))
    return "[" + ",".join(items) + "]"


def plain_texts(rows: Sequence[Any]) -> list[str]:
    """JSON of schemaless values; ConversionError for those that are nested too deeply."""
    try:
        return [object_text(row) for row in rows]
    except NestedTooDeeply:
        raise ConversionError(
            {number: _TOO_DEEP for number, row in enumerate(rows) if not _can_be_written(row)}
        ) from None


def _can_be_written(row: Any) -> bool:
    try:
        object_text(row)
    except NestedTooDeeply:
        return False
    return True
