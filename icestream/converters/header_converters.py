"""Kafka Connect's SimpleHeaderConverter: headers as text. Every other converter serves headers, too."""

from __future__ import annotations

import base64
import datetime as dt
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.types as pt

from icestream.records.column import Column
from icestream.records.java_text import Verbatim, java_double, java_float, java_long
from icestream.records.plain import plain
from icestream.records.records import Converted
from icestream.records.schema import DATE, TIME, TIMESTAMP, ConnectSchema, Kind
from icestream.records.values import Value

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECONDS_A_DAY: Final = 86_400_000
_QUOTED: Final = re.compile(r'[\\"]')


@dataclass(frozen=True)
class SimpleHeaderConverter:
    @classmethod
    def configured(cls, settings: Mapping[str, str], is_key: bool) -> Self:
        return cls()

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        """Bytes as they are: no transform reads the value of a header, and no bytes are refused."""
        return Converted([(None, Column(pa.array(values, pa.binary())))])

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        if value is None:
            return [None] * length
        texts = [_shown(row, False) for row in plain(value, length, _leaves)]
        return [None if text is None else text.encode(errors="replace") for text in texts]


def _leaves(column: Column) -> list[Any]:
    """Values of a column as text where Python's own types do not tell Java's, structs as dicts."""
    schema = column.schema
    if schema is not None:
        return [
            None if value is None else _of_schema(schema, value) for value in _numbers(column).to_pylist()
        ]
    shown = _shown_arrow(column)
    return [None if value is None else shown(value) for value in _numbers(column).to_pylist()]


def _numbers(column: Column) -> Any:
    """Moments as numbers, because Python's own have no year 10,000."""
    return column.values.cast("int64") if pt.is_timestamp(column.values.type) else column.values


def _shown_arrow(column: Column) -> Callable[[Any], Any]:
    kind = column.values.type
    if pt.is_float32(kind):
        return lambda value: Verbatim(java_float(value))
    if pt.is_timestamp(kind):
        return lambda value: Verbatim(_moment(value))
    return lambda value: value


def _of_schema(schema: ConnectSchema, value: Any) -> Any:
    if value is None:
        return None
    if schema.name in (DATE, TIME, TIMESTAMP):
        return Verbatim(_moment(_milliseconds(value)))
    if schema.kind is Kind.STRUCT:
        fields = ((one, value[one.name]) for one in schema.fields)
        return _Pairs(
            [(one.name, _of_schema(one.schema, _or_default(one.schema, item))) for one, item in fields]
        )
    if schema.kind is Kind.MAP:
        assert schema.key is not None and schema.value is not None
        pairs = [(_of_schema(schema.key, key), _of_schema(schema.value, item)) for key, item in value]
        return dict(pairs) if schema.key.kind is Kind.STRING else _Pairs(pairs)
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        return [_of_schema(schema.value, item) for item in value]
    return Verbatim(java_float(value)) if schema.kind is Kind.FLOAT32 else value


def _or_default(schema: ConnectSchema, value: Any) -> Any:
    return schema.default if value is None else value


@dataclass(frozen=True)
class _Pairs:
    """The fields of a struct, or a map with other keys than strings."""

    items: list[tuple[Any, Any]]


def _milliseconds(value: Any) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_EPOCH.date(), value, dt.UTC)
    elif not isinstance(value, dt.datetime):
        return int((value - _EPOCH.date()).days) * _MILLISECONDS_A_DAY
    return int((value - _EPOCH) // dt.timedelta(milliseconds=1))


def _moment(milliseconds: int) -> str:
    """In the zone of this machine, though it says Z; so does Java."""
    local = time.localtime(milliseconds // 1000)
    of_day = time.strftime("%H:%M:%S", local) + f".{milliseconds % 1000:03}Z"
    if milliseconds < _MILLISECONDS_A_DAY:
        return of_day
    day = f"{local.tm_year:04}-{local.tm_mon:02}-{local.tm_mday:02}"
    return day if milliseconds % _MILLISECONDS_A_DAY == 0 else f"{day}T{of_day}"


def _shown(value: Any, embedded: bool) -> str | None:
    if value is None:
        return "null" if embedded else None
    if isinstance(value, str):
        return _in_quotes(_QUOTED.sub(r"\\\g<0>", value)) if embedded else value
    if isinstance(value, bytes):
        text = base64.b64encode(value).decode()
        return _in_quotes(text) if embedded else text
    if isinstance(value, Mapping):
        value = _Pairs(list(value.items()))
    if isinstance(value, _Pairs):
        return "{" + ",".join(f"{_shown(key, True)}:{_shown(item, True)}" for key, item in value.items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(str(_shown(item, True)) for item in value) + "]"
    return _scalar(value)


def _in_quotes(text: str) -> str:
    return f'"{text}"'


def _scalar(value: Any) -> str:
    if isinstance(value, Verbatim):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    return str(java_long(value)) if isinstance(value, int) else str(value)
