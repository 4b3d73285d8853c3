"""Columns to Protobuf messages under a schema of the registry, by Google's runtime; the Protobuf
converter's way back to Kafka."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from typing import Any, Final

from icestream.converters.registry import wire
from icestream.converters.registry.avro_from_connect import unscaled
from icestream.converters.registry.converter import UnusableSchema
from icestream.converters.registry.protobuf_compile import compiled
from icestream.converters.registry.protobuf_plan import ENUM, UNION, Options
from icestream.converters.registry.protobuf_text import ProtoText, proto_text
from icestream.converters.registry.writing import Writing
from icestream.records.column import Column
from icestream.records.records import ConversionError, Failure
from icestream.records.schema import DECIMAL, SCALE, ConnectSchema, Kind
from icestream.records.values import Value

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_REQUIRED: Final = Failure("Invalid value: null used for required field")


class _Null(ValueError):
    """A null where the schema wants a value."""


def encoded(
    topic: str, value: Value, length: int, options: Options, writing: Writing
) -> Sequence[bytes | None]:
    if value is None:
        return [None] * length
    if not isinstance(value, Column) or value.schema is None:
        raise UnusableSchema("the value has no schema; give it one, or use the JSON converter")
    schema = value.schema
    described, kind = _message_class(schema, options)
    schema_id = writing.schema_id(topic, described.name, "PROTOBUF", described.text)
    head = wire.head(schema_id) + (b"\0" if not described.index else bytes((2, 2 * described.index)))
    written: list[bytes | None] = []
    failed: dict[int, Failure] = {}
    for row, one in enumerate(value.values.to_pylist()):
        try:
            written.append(None if one is None else head + _serialized(kind, schema, one))
        except _Null:
            failed[row] = _REQUIRED
    if failed:
        raise ConversionError(failed)
    return written


@functools.lru_cache(maxsize=1000)
def _message_class(schema: ConnectSchema, options: Options) -> tuple[ProtoText, Any]:
    from google.protobuf.message_factory import GetMessageClass

    described = proto_text(schema, options)
    return described, GetMessageClass(compiled(described.text, ()).message((described.index,)))


def _serialized(kind: Any, schema: ConnectSchema, value: Any) -> bytes:
    message = kind()
    if schema.kind is Kind.STRUCT:
        _fill(message, schema, value)
    else:
        message.value = value
    found: bytes = message.SerializeToString()
    return found


def _fill(message: Any, schema: ConnectSchema, value: dict[str, Any]) -> None:
    for one in schema.fields:
        inner = value.get(one.name)
        if inner is None:
            if not one.schema.optional:
                raise _Null
        elif (one.schema.name or "").startswith(UNION):
            _fill(message, one.schema, {name: given for name, given in inner.items() if given is not None})
        else:
            _put(message, one.name, one.schema, inner)


def _put(message: Any, name: str, schema: ConnectSchema, value: Any) -> None:
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        for item in value:
            if item is None:
                raise _Null
            if _is_message(schema.value):
                _fill_one(getattr(message, name).add(), schema.value, item)
            else:
                getattr(message, name).append(item)
    elif schema.kind is Kind.MAP:
        _put_map(getattr(message, name), schema, value)
    elif _is_message(schema):
        inner = getattr(message, name)
        inner.SetInParent()
        _fill_one(inner, schema, value)
    elif schema.parameter(ENUM) is not None and isinstance(value, str):
        setattr(message, name, int(schema.parameter(f"{ENUM}.{value}") or 0))
    else:
        setattr(message, name, value)


def _put_map(entries: Any, schema: ConnectSchema, pairs: Sequence[tuple[Any, Any]]) -> None:
    assert schema.value is not None
    for key, value in pairs:
        if value is None:
            raise _Null
        if _is_message(schema.value):
            _fill_one(entries[key], schema.value, value)
        else:
            entries[key] = value


def _is_message(schema: ConnectSchema) -> bool:
    return schema.kind is Kind.STRUCT or (schema.name or "").startswith("org.apache.kafka.connect.data.")


def _fill_one(message: Any, schema: ConnectSchema, value: Any) -> None:
    if schema.name == DECIMAL:
        scale = int(schema.parameter(SCALE) or 0)
        message.value, message.scale = unscaled(value, scale), scale
        message.precision = len(value.as_tuple().digits)
    elif isinstance(value, datetime.datetime):
        passed = value - _EPOCH
        message.seconds = passed // datetime.timedelta(seconds=1)
        message.nanos = passed.microseconds * 1000
    elif isinstance(value, datetime.date):
        message.year, message.month, message.day = value.year, value.month, value.day
    elif isinstance(value, datetime.time):
        message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
        message.nanos = value.microsecond * 1000
    else:
        _fill(message, schema, value)
