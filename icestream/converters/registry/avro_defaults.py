"""Defaults that Avro schemas state, in the form that our schemas hold; used when schemas are translated."""

from __future__ import annotations

import datetime
import decimal
from typing import Any, Final

from icestream.converters.registry.avro_schema import AvroType
from icestream.records.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Kind

UNION: Final = "io.confluent.connect.avro.Union"
"""Name of the struct that a union becomes."""
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def default_value(kind: AvroType, schema: ConnectSchema, value: Any) -> Any:
    """A default as a schema's JSON has it, in the form that our schemas hold."""
    if value is None:
        return None
    match kind.kind:
        case "bytes" | "fixed":
            raw = value.encode("iso-8859-1")
            return _unscaled(raw, schema) if schema.name == DECIMAL else raw
        case "record":
            return {
                one.name: default_value(one.type, schema[one.name], value.get(one.name))
                for one in kind.fields
            }
        case "array":
            assert kind.item is not None and schema.value is not None
            return [default_value(kind.item, schema.value, one) for one in value]
        case "map":
            assert kind.item is not None and schema.value is not None
            return [(key, default_value(kind.item, schema.value, one)) for key, one in value.items()]
        case "union":
            return _union_default(kind, schema, value)
        case _:
            return _plain_default(schema, value)


def _union_default(kind: AvroType, schema: ConnectSchema, value: Any) -> Any:
    """Of the first branch, which is the one that a union's default is of."""
    first = kind.branches[0]
    if first.kind == "null":
        return None
    if schema.name != UNION:
        return default_value(first, schema, value)
    chosen = schema.fields[0]
    return {one.name: None for one in schema.fields} | {
        chosen.name: default_value(first, chosen.schema, value)
    }


def _unscaled(raw: bytes, schema: ConnectSchema) -> decimal.Decimal:
    scale = int(schema.parameter(SCALE) or 0)
    return decimal.Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale)


def _plain_default(schema: ConnectSchema, value: Any) -> Any:
    if schema.name == DATE:
        return (_EPOCH + datetime.timedelta(days=value)).date()
    if schema.name == TIME:
        return (_EPOCH + datetime.timedelta(milliseconds=value)).time()
    if schema.name == TIMESTAMP:
        return _EPOCH + datetime.timedelta(milliseconds=value)
    expected = {Kind.BOOLEAN: bool, Kind.STRING: str}.get(schema.kind)
    if expected is not None and not isinstance(value, expected):
        raise TypeError(f"{value!r} is no {schema.kind}")
    return float(value) if schema.kind in (Kind.FLOAT32, Kind.FLOAT64) else value
