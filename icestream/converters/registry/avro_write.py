"""Columns to Avro datums under a schema of the registry; the Avro converter's way back to Kafka."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from icestream.converters.registry import wire
from icestream.converters.registry.avro_connect import UNION, AvroOptions
from icestream.converters.registry.avro_from_connect import avro_schema, unscaled
from icestream.converters.registry.avro_schema import AvroType, BadSchema, parse
from icestream.converters.registry.client import UnusableSchema
from icestream.converters.registry.subjects import Subjects, differs
from icestream.records.column import Column
from icestream.records.records import ConversionError, Failure
from icestream.records.schema import DECIMAL, SCALE, ConnectSchema, Kind
from icestream.records.values import Value

Datums = list[bytes | None]
"""One per row; None where there is nothing to write."""


def encoded(
    topic: str, value: Value, length: int, options: AvroOptions, subjects: Subjects
) -> Sequence[bytes | None]:
    if value is None:
        return [None] * length
    if not isinstance(value, Column) or value.schema is None:
        raise UnusableSchema("the value has no schema; give it one, or use the JSON converter")
    schema_id, kind = _target(topic, value.schema, options, subjects)
    datums = datums_of(kind, value.schema, value.values)
    null = value.nulls if kind.kind != "union" else None
    bad = [row for row, datum in enumerate(datums) if datum is None and not (null is not None and null[row])]
    if bad:
        why = Failure("Invalid value: null used for required field")
        raise ConversionError(dict.fromkeys(bad, why))
    head = wire.head(schema_id)
    return [
        None if datum is None or (null is not None and null[row]) else head + datum
        for row, datum in enumerate(datums)
    ]


def _target(
    topic: str, schema: ConnectSchema, options: AvroOptions, subjects: Subjects
) -> tuple[int, AvroType]:
    text, kind = _avro(schema, options)
    name = kind.name or None
    if not subjects.uses_latest:
        return subjects.schema_id(topic, name, "AVRO", text), kind
    latest = subjects.latest(topic, name)
    try:
        newest = parse(latest.text, [one.text for one in latest.references])
    except BadSchema as error:
        raise UnusableSchema(str(error)) from None
    if newest != kind:
        raise differs(latest)
    return latest.id, newest


@functools.lru_cache(maxsize=1000)
def _avro(schema: ConnectSchema, options: AvroOptions) -> tuple[str, AvroType]:
    text = json.dumps(avro_schema(schema, options), separators=(",", ":"), ensure_ascii=False)
    try:
        return text, parse(text)
    except BadSchema as error:
        raise UnusableSchema(str(error)) from None


def long_datum(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    if left < 0x80:
        return bytes((left,))
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def _prefixed(value: bytes) -> bytes:
    return long_datum(len(value)) + value


def datums_of(kind: AvroType, schema: ConnectSchema, values: pa.Array) -> Datums:
    """Of each value, without any frame. None where a value is missing that must be there."""
    match kind.kind:
        case "union":
            return _union(kind, schema, values)
        case "record":
            return _record(kind, schema, values)
        case "array" | "map":
            return _collection(kind, schema, values)
        case _:
            encode = _scalar(kind, schema)
            return [None if value is None else encode(value) for value in _plain(values).to_pylist()]


def _plain(values: pa.Array) -> pa.Array:
    """Dates and times as the numbers that Avro writes."""
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(kind) else values


def _scalar(kind: AvroType, schema: ConnectSchema) -> Callable[[Any], bytes]:
    if schema.name == DECIMAL:
        scale = int(schema.parameter(SCALE) or 0)
        if kind.kind == "fixed":
            size = kind.size
            return lambda value: int(value.scaleb(scale)).to_bytes(size, "big", signed=True)
        return lambda value: _prefixed(unscaled(value, scale))
    if kind.kind == "enum":
        places = {symbol: long_datum(position) for position, symbol in enumerate(kind.symbols)}
        return places.__getitem__
    return _SCALARS[kind.kind]


_SCALARS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "boolean": lambda value: b"\1" if value else b"\0",
    "int": long_datum,
    "long": long_datum,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": lambda value: _prefixed(value.encode()),
    "bytes": _prefixed,
    "fixed": lambda value: value,
}


def _record(kind: AvroType, schema: ConnectSchema, values: pa.Array) -> Datums:
    null = values.is_null().to_pylist()
    parts = [
        datums_of(one.type, mine.schema, child)
        for one, mine, child in zip(kind.fields, schema.fields, values.flatten(), strict=True)
    ]
    rows = zip(*parts, strict=True) if parts else iter([()] * len(values))
    return [
        None if is_null or None in row else b"".join(row) for is_null, row in zip(null, rows, strict=True)
    ]


def _union(kind: AvroType, schema: ConnectSchema, values: pa.Array) -> Datums:
    branches = {
        one.kind if one.kind == "null" else position: position for position, one in enumerate(kind.branches)
    }
    nothing = long_datum(branches["null"]) if "null" in branches else None
    datums: Datums = [nothing] * len(values)
    valued = [position for position, one in enumerate(kind.branches) if one.kind != "null"]
    if schema.name != UNION:
        sides = [(valued[0], schema, values)]
    else:
        arrays = values.flatten()
        sides = [
            (position, one.schema, child)
            for position, one, child in zip(valued, schema.fields, arrays, strict=True)
        ]
    for position, mine, child in sides:
        present = child.is_valid().to_pylist()
        for row, datum in enumerate(datums_of(kind.branches[position], mine, child)):
            if present[row]:
                datums[row] = None if datum is None else long_datum(position) + datum
    return datums


def _collection(kind: AvroType, schema: ConnectSchema, values: pa.Array) -> Datums:
    assert kind.item is not None and schema.value is not None
    if schema.kind is not Kind.MAP:
        items = datums_of(kind.item, schema.value, values.values)
    else:
        items = _pairs(kind, schema, values)
    bounds = values.offsets.to_pylist()
    null = values.is_null().to_pylist()
    datums: Datums = []
    for is_null, (low, high) in zip(null, pairwise(bounds), strict=True):
        mine = items[low:high]
        if is_null or None in mine:
            datums.append(None)
        else:
            block = long_datum(len(mine)) + b"".join(mine) if mine else b""  # type: ignore[arg-type]
            datums.append(block + b"\0")
    return datums


def _pairs(kind: AvroType, schema: ConnectSchema, values: pa.Array) -> Datums:
    item = kind.item
    assert item is not None and schema.key is not None and schema.value is not None
    if kind.kind == "map":
        keys = datums_of(AvroType("string"), schema.key, values.keys)
        found = datums_of(item, schema.value, values.items)
    else:
        keys = datums_of(item.fields[0].type, schema.key, values.keys)
        found = datums_of(item.fields[1].type, schema.value, values.items)
    return [None if key is None or one is None else key + one for key, one in zip(keys, found, strict=True)]
