"""Records for both sides: written once, made into our columns and into JSON for the real JsonConverter."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.records import Header, Records
from icestream.records.schema import DECIMAL, SCALE, ConnectSchema, Kind
from icestream.records.values import Listing, Text, Value, object_fields, typed

TIMESTAMP: Final = 1_763_222_400_000
FIRST_OFFSET: Final = 1000
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Of:
    """Values with a schema: Python's own values, dicts for structs, lists of pairs for maps. Logical types
    as Python's date, time, datetime or Decimal, or as the number of days or milliseconds."""

    schema: ConnectSchema
    values: Sequence[Any]


@dataclass(frozen=True)
class Json:
    """Values without a schema, as JsonConverter makes them: dicts, lists, strings, ints, floats, booleans,
    None. Types may differ from row to row."""

    values: Sequence[Any]


Data = Of | Json


@dataclass(frozen=True)
class Given:
    """Records of one topic, as many as there are values."""

    value: Data
    key: Data | None = None
    """None: no record has a key."""
    headers: Sequence[tuple[str, Data]] = ()
    topic: str = "events"
    partition: int = 3
    timestamps: Sequence[int | None] | None = None

    def __len__(self) -> int:
        return len(self.value.values)

    @property
    def keys(self) -> Data:
        return Json([None] * len(self)) if self.key is None else self.key

    @property
    def times(self) -> Sequence[int | None]:
        return [TIMESTAMP + row for row in range(len(self))] if self.timestamps is None else self.timestamps


def our_records(given: Given) -> list[Records]:
    """In groups of one Java type of key and value each."""
    codes = [(_code(given.keys, row), _code(given.value, row)) for row in range(len(given))]
    groups = []
    for code in dict.fromkeys(codes):
        rows = np.array([row for row, mine in enumerate(codes) if mine == code], np.int64)
        groups.append(_group(given, rows))
    return groups


def _group(given: Given, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Records:
    listed = rows.tolist()
    headers = []
    for name, data in given.headers:
        value = our_value(_some(data, listed))
        headers.append(Header(name, Column(pa.nulls(len(rows))) if value is None else value))
    return Records(
        rows=rows,
        topic=given.topic,
        timestamps=pa.array([given.times[row] for row in listed], pa.int64()),
        key=our_value(_some(given.keys, listed)),
        value=our_value(_some(given.value, listed)),
        headers=tuple(headers),
        partitions=np.full(len(rows), given.partition),
        offsets=rows + FIRST_OFFSET,
    )


def _some(data: Data, rows: list[int]) -> Data:
    values = [data.values[row] for row in rows]
    return Of(data.schema, values) if isinstance(data, Of) else Json(values)


def _code(data: Data, row: int) -> type | None:
    return None if isinstance(data, Of) else type(data.values[row])


def our_value(data: Data) -> Value:
    """The value of a group whose rows have one type."""
    if isinstance(data, Of):
        return Column(
            pa.array([_arrow(data.schema, value) for value in data.values], data.schema.arrow_type),
            data.schema,
        )
    (kind,) = {type(value) for value in data.values}
    source = JsonSource([json.dumps(value, ensure_ascii=False).encode() for value in data.values])
    if kind is type(None):
        return None
    if kind is dict:
        return object_fields(source)
    if kind is list:
        return Listing(Text(source))
    (part,) = typed(Text(source), len(source))
    return part.value


def _arrow(schema: ConnectSchema, value: Any) -> Any:
    if value is None:
        return None
    if schema.kind is Kind.STRUCT:
        return {one.name: _arrow(one.schema, value.get(one.name)) for one in schema.fields}
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        return [_arrow(schema.value, item) for item in value]
    if schema.kind is Kind.MAP:
        assert schema.key is not None and schema.value is not None
        return [(_arrow(schema.key, key), _arrow(schema.value, item)) for key, item in value]
    return value


_TYPES: Final = {Kind.FLOAT32: "float", Kind.FLOAT64: "double"}


def json_schema(schema: ConnectSchema) -> dict[str, Any]:
    """The schema as JsonConverter's envelope has it."""
    facts: dict[str, Any] = {
        "type": _TYPES.get(schema.kind, schema.kind.value.lower()),
        "optional": schema.optional,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": dict(schema.parameters) or None,
        "default": None if schema.default is None else payload(schema, schema.default),
        "fields": [{"field": one.name, **json_schema(one.schema)} for one in schema.fields] or None,
        "keys": None if schema.key is None else json_schema(schema.key),
        "items" if schema.kind is Kind.ARRAY else "values": (
            None if schema.value is None else json_schema(schema.value)
        ),
    }
    if schema.kind is Kind.STRUCT:
        facts["fields"] = facts["fields"] or []
    return {name: fact for name, fact in facts.items() if fact is not None}


def payload(schema: ConnectSchema, value: Any) -> Any:
    """A value as JsonConverter's envelope has it."""
    if value is None:
        return None
    if schema.kind is Kind.STRUCT:
        return {one.name: payload(one.schema, value.get(one.name)) for one in schema.fields}
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        return [payload(schema.value, item) for item in value]
    if schema.kind is Kind.MAP:
        assert schema.key is not None and schema.value is not None
        items = value.items() if isinstance(value, dict) else value
        pairs = [[payload(schema.key, key), payload(schema.value, item)] for key, item in items]
        return dict(pairs) if schema.key.kind is Kind.STRING else pairs
    return _scalar(schema, value)


def _scalar(schema: ConnectSchema, value: Any) -> Any:
    if schema.name == DECIMAL:
        value = _unscaled(decimal.Decimal(value), int(schema.parameter(SCALE) or 0))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.date):
        return value.toordinal() - _EPOCH.date().toordinal()
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value


def _unscaled(value: decimal.Decimal, scale: int) -> bytes:
    with decimal.localcontext(prec=100):
        number = int(value.scaleb(scale))
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
