"""What both sides made, in one form: values tagged with their Java class, schemas with all their facts.

Strings, booleans, bytes and nulls are themselves; everything else is a pair like ("Long", 5),
("Date", milliseconds), ("Map", {…}), ("List", […]) or ("Struct", {…}).
"""

from __future__ import annotations

import base64
import decimal
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.records.records import Records
from icestream.records.schema import ConnectSchema
from icestream.records.values import Fields, Listing, Node, Text, Value


@dataclass(frozen=True)
class Datum:
    schema: Any
    value: Any


@dataclass(frozen=True)
class Row:
    topic: str
    partition: int | None
    timestamp: int | None
    key: Datum
    value: Datum
    headers: Sequence[tuple[str, Datum]]


@dataclass(frozen=True)
class Dropped:
    """The transform answered null."""


@dataclass(frozen=True)
class Failed:
    exception: str
    reason: str | None


Result = Row | Dropped | Failed | Datum | bytes | bool | None

NOTHING: Final = Datum(None, None)

# Ours

_CLASSES: Final = {
    pa.int8(): "Byte",
    pa.int16(): "Short",
    pa.int32(): "Integer",
    pa.int64(): "Long",
}


def our_rows(records: Records) -> dict[int, Row]:
    """By row of the chunk."""
    length = len(records)
    keys, values = our_data(records.key, length), our_data(records.value, length)
    headers = [(header.name, our_data(header.values, length)) for header in records.headers]
    times = records.timestamps.to_pylist()
    partitions = [None] * length if records.partitions is None else records.partitions.tolist()
    return {
        row: Row(
            records.topic,
            partitions[at],
            times[at],
            keys[at],
            values[at],
            [(name, data[at]) for name, data in headers],
        )
        for at, row in enumerate(records.rows.tolist())
    }


def our_data(value: Value, length: int) -> list[Datum]:
    if value is None:
        return [NOTHING] * length
    schema = None
    if isinstance(value, Column) and value.schema is not None:
        assert value.values.type == value.schema.arrow_type, (value.values.type, value.schema)
        schema = our_schema(value.schema)
    found = [Datum(schema, one) for one in _node(value, length)]
    assert len(found) == length, "a group whose value has another length"
    return found


def our_schema(schema: ConnectSchema) -> dict[str, Any]:
    default = None
    if schema.default is not None:
        (default,) = _array(pa.array([schema.default], schema.arrow_type))
    return {
        "type": schema.kind.value,
        "optional": schema.optional,
        "default": default,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": dict(schema.parameters),
        "fields": [(one.name, our_schema(one.schema)) for one in schema.fields],
        "key": None if schema.key is None else our_schema(schema.key),
        "value": None if schema.value is None else our_schema(schema.value),
    }


def _node(node: Node, length: int) -> list[Any]:
    """ABSENT where the map lacks the key."""
    match node:
        case Column():
            values = _array(node.values)
            if node.absent is None:
                return values
            return [ABSENT if lacks else value for lacks, value in zip(node.absent, values, strict=True)]
        case Text():
            return [_json(value) for value in node.objects()]
        case Listing():
            return [_json(value) for value in node.text.objects()]
        case Fields():
            return _maps(node)


def _maps(fields: Fields) -> list[Any]:
    rest = [{}] * fields.length if fields.rest is None else fields.rest.objects()
    maps = [{name: _json(value) for name, value in row.items()} for row in rest]
    for name, node in fields.named.items():
        values = [ABSENT] * fields.length if node is None else _node(node, fields.length)
        for row, value in zip(maps, values, strict=True):
            row.pop(name, None)
            if value is not ABSENT:
                row[name] = value
    return [("Map", row) for row in maps]


def _json(value: Any) -> Any:
    match value:
        case bool() | str() | None:
            return value
        case int():
            return ("Long", (value + 2**63) % 2**64 - 2**63)
        case float():
            return ("Double", repr(value))
        case list():
            return ("List", [_json(item) for item in value])
        case dict():
            return ("Map", {name: _json(item) for name, item in value.items()})
    assert value is ABSENT, f"{value!r} is no value of JSON"
    return value


def _array(array: pa.Array) -> list[Any]:
    kind = array.type
    if kind in _CLASSES:
        return [None if value is None else (_CLASSES[kind], value) for value in array.to_pylist()]
    if pa.types.is_temporal(kind):
        return [None if moment is None else ("Date", moment) for moment in _milliseconds(array)]
    if pa.types.is_floating(kind):
        return [None if value is None else _float(kind, value) for value in array.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else ("BigDecimal", value.as_tuple()) for value in array.to_pylist()]
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_nested(kind):
        return [_nested(scalar) if scalar.is_valid else None for scalar in array]
    return list(array.to_pylist())


def _milliseconds(array: pa.Array) -> list[int | None]:
    if pa.types.is_date32(array.type):
        return [None if day is None else day * 86_400_000 for day in array.cast(pa.int32()).to_pylist()]
    wide = pa.int32() if pa.types.is_time(array.type) else pa.int64()
    return list(array.cast(wide).to_pylist())


def _float(kind: pa.DataType, value: float) -> tuple[str, str]:
    return ("Double", repr(value)) if kind == pa.float64() else ("Float", repr(float(np.float32(value))))


def _structs(array: pa.Array) -> list[Any]:
    names = [array.type.field(at).name for at in range(array.type.num_fields)]
    columns = [_array(child) for child in array.flatten()]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
    structs = [("Struct", dict(zip(names, row, strict=True))) for row in rows]
    return [one if valid else None for one, valid in zip(structs, array.is_valid().to_pylist(), strict=True)]


def _nested(scalar: pa.Scalar) -> tuple[str, Any]:
    if pa.types.is_map(scalar.type):
        keys, values = _array(scalar.values.field(0)), _array(scalar.values.field(1))
        return ("Map", {_map_key(key): value for key, value in zip(keys, values, strict=True)})
    return ("List", _array(scalar.values))


def _map_key(key: Any) -> str:
    """As Jackson writes a key of a map."""
    plain = key[1] if isinstance(key, tuple) else key
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


# Java's, as Jackson wrote it with class names


def java_results(text: bytes) -> list[Any]:
    """Records and data from the JSON of a list."""
    return [_java_result(one) for one in json.loads(text, parse_float=decimal.Decimal)]


def _java_result(tagged: Any) -> Any:
    if tagged is None:
        return None
    name, body = tagged
    if name == "org.apache.kafka.connect.data.SchemaAndValue":
        return _java_datum(body["schema"], body["value"])
    assert name == "org.apache.kafka.connect.sink.SinkRecord", name
    headers = [
        (one["key"], _java_datum(one["schemaAndValue"]["schema"], one["schemaAndValue"]["value"]))
        for one in body["headers"]["headers"] or ()
    ]
    return Row(
        body["topic"],
        body["kafkaPartition"],
        body["timestamp"],
        _java_datum(body["keySchema"], body["key"]),
        _java_datum(body["valueSchema"], body["value"]),
        headers,
    )


def _java_datum(schema: Any, value: Any) -> Datum:
    return Datum(_java_schema(schema), _java_value(value, schema))


def _java_schema(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {
        "type": schema["type"],
        "optional": bool(schema["optional"]),
        "default": _java_value(schema["defaultValue"], schema),
        "name": schema["name"],
        "version": schema["version"],
        "doc": schema["doc"],
        "parameters": schema["parameters"] or {},
        "fields": [(one["name"], _java_schema(one["schema"])) for one in _fields(schema)],
        "key": _java_schema(schema["keySchema"]),
        "value": _java_schema(schema["valueSchema"]),
    }


def _fields(schema: Mapping[str, Any]) -> list[Any]:
    """A SchemaBuilder keeps its fields by name, a finished schema in a list."""
    fields = schema["fields"] or []
    return list(fields.values()) if isinstance(fields, dict) else fields


def _java_value(value: Any, schema: Mapping[str, Any] | None) -> Any:
    match value:
        case bool() | str() | None:
            return value
        case int():  # Jackson tags neither Integer nor Double: they are JSON's own
            return ("Integer", value)
        case float() | decimal.Decimal():
            return ("Double", repr(float(value)))
    name, body = value
    return _tagged(name.rpartition(".")[2], body, schema)


def _tagged(name: str, body: Any, schema: Mapping[str, Any] | None) -> Any:
    match name:
        case "Struct":
            assert schema is not None
            found = {
                one["name"]: _java_value(item, one["schema"])
                for one, item in zip(_fields(schema), body["values"], strict=True)
            }
            return ("Struct", found)
        case "[B" | "HeapByteBuffer" | "HeapByteBufferR":
            return base64.b64decode(body)
        case "Double":  # only those that JSON has no number for have a tag
            return ("Double", repr(float(body)))
        case "Float":
            return ("Float", repr(float(np.float32(float(body)))))
        case "BigDecimal":
            return ("BigDecimal", decimal.Decimal(body).as_tuple())
    inner = None if schema is None else schema["valueSchema"]
    if isinstance(body, dict):
        return ("Map", {key: _java_value(item, inner) for key, item in body.items()})
    if isinstance(body, list):
        return ("List", [_java_value(item, inner) for item in body])
    return (name, body)
