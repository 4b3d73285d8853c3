"""Values as the text of Java's `toString()`: for StringConverter and for sinks of text lines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.records.column import Column
from icestream.records.java_text import (
    Verbatim,
    java_date,
    java_double,
    java_float,
    java_text,
)
from icestream.records.plain import plain
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema, Kind
from icestream.records.values import Value

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


def value_texts(value: Value, length: int) -> Sequence[str | None]:
    """`String.valueOf` of each value; None for nulls."""
    if value is None:
        return [None] * length
    if not isinstance(value, Column):
        return [java_text(row) for row in plain(value, length, _verbatim)]
    return _column_texts(value)


def _verbatim(column: Column) -> list[Any]:
    return [None if text is None else Verbatim(text) for text in _column_texts(column)]


def _column_texts(column: Column) -> list[str | None]:
    if (
        pt.is_string(column.values.type)
        or pt.is_integer(column.values.type)
        or pt.is_boolean(column.values.type)
    ):
        texts: list[str | None] = column.values.cast(pa.string()).to_pylist()
        return texts
    shown = _shown_as(column.schema) if column.schema is not None else _shown_arrow(column.values.type)
    values = column.values.cast(_in_numbers(column.values.type)).to_pylist()
    return [None if value is None else shown(value) for value in values]


def _in_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with moments and days as numbers, because Python's own have no year 10,000."""
    if pt.is_timestamp(kind):
        return pa.int64()
    if pt.is_date32(kind):
        return pa.int32()
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_in_numbers(field.type)) for field in kind])
    if pt.is_map(kind):
        return pa.map_(_in_numbers(kind.key_type), _in_numbers(kind.item_type))
    return pa.list_(_in_numbers(kind.value_type)) if pt.is_list(kind) else kind


def _shown_as(schema: ConnectSchema) -> Callable[[Any], str]:
    return lambda value: _shown(schema, value)


def _shown_arrow(kind: pa.DataType) -> Callable[[Any], str]:
    if pt.is_float32(kind):
        return java_float
    if pt.is_float64(kind):
        return java_double
    if pt.is_timestamp(kind):
        return java_date
    if pt.is_binary(kind):
        return _bytes
    return str


def _bytes(value: bytes) -> str:
    # Java prints where the array lies in memory; nobody can want that twice.
    return f"[B@{len(value):x}"


def _shown(schema: ConnectSchema, value: Any) -> str:
    if value is None:
        return "null"
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name](value)
    convert = _KINDS.get(schema.kind)
    return java_text(value) if convert is None else convert(schema, value)


def _day(value: int) -> str:
    return java_date(value * 86_400_000)


def _time(value: dt.time) -> str:
    return java_date((dt.datetime.combine(_EPOCH.date(), value, dt.UTC) - _EPOCH) // _MILLISECOND)


def _struct(schema: ConnectSchema, value: Mapping[str, Any]) -> str:
    shown = [
        f"{field.name}={_shown(field.schema, value[field.name])}"
        for field in schema.fields
        if value[field.name] is not None
    ]
    return "Struct{" + ",".join(shown) + "}"


def _list(schema: ConnectSchema, value: Sequence[Any]) -> str:
    assert schema.value is not None
    of = schema.value
    return "[" + ", ".join(_shown(of, item) for item in value) + "]"


def _map(schema: ConnectSchema, value: Sequence[tuple[Any, Any]]) -> str:
    assert schema.key is not None and schema.value is not None
    of_key, of_value = schema.key, schema.value
    shown = {_shown(of_key, key): _shown(of_value, item) for key, item in value}
    return "{" + ", ".join(f"{key}={text}" for key, text in shown.items()) + "}"


_LOGICAL: Final[Mapping[str | None, Callable[[Any], str]]] = {
    DATE: _day,
    TIME: _time,
    TIMESTAMP: java_date,
    DECIMAL: lambda value: str(Decimal(value)),
}
_KINDS: Final[Mapping[Kind, Callable[[ConnectSchema, Any], str]]] = {
    Kind.STRUCT: _struct,
    Kind.ARRAY: _list,
    Kind.MAP: _map,
    Kind.FLOAT32: lambda schema, value: java_float(value),
    Kind.FLOAT64: lambda schema, value: java_double(value),
    Kind.BYTES: lambda schema, value: _bytes(value),
}
