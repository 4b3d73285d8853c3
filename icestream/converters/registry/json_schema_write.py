"""Kafka Connect's schemas as JSON Schemas, as Confluent's converter writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from icestream.converters.registry.avro_from_connect import json_default
from icestream.converters.registry.json_schema_connect import ENUM, NULL_MARKER
from icestream.records.schema import DECIMAL, ConnectSchema, Kind

_NAMESPACE: Final = ENUM.rpartition(".")[0]
_NUMBERS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.INT8: ("integer", "int8"),
    Kind.INT16: ("integer", "int16"),
    Kind.INT32: ("integer", "int32"),
    Kind.INT64: ("integer", "int64"),
    Kind.FLOAT32: ("number", "float32"),
    Kind.FLOAT64: ("number", "float64"),
}


def json_schema(schema: ConnectSchema, numeric: bool, open_objects: bool) -> dict[str, Any]:
    """`numeric`: decimals are numbers, else base64."""
    if schema.optional:
        inner = json_schema(replace(schema, optional=False), numeric, open_objects)
        return {"oneOf": [{"type": "null"}, inner]}
    made = _bare(schema, numeric, open_objects)
    parameters = {name: value for name, value in schema.parameters if not name.startswith(_NAMESPACE)}
    notes = {
        "title": schema.name,
        "description": schema.doc,
        "connect.version": schema.version,
        "connect.parameters": parameters or None,
        "default": None if schema.default is None else json_default(schema, schema.default),
    }
    return made | {name: value for name, value in notes.items() if value is not None}


def _bare(schema: ConnectSchema, numeric: bool, open_objects: bool) -> dict[str, Any]:
    def inner(one: ConnectSchema | None) -> dict[str, Any]:
        assert one is not None
        return json_schema(one, numeric, open_objects)

    if schema.kind in _NUMBERS:
        kind, hint = _NUMBERS[schema.kind]
        return {"type": kind, "connect.type": hint}
    match schema.kind:
        case Kind.STRUCT:
            properties = {
                one.name: inner(one.schema) | {"connect.index": index}
                for index, one in enumerate(schema.fields)
            }
            closed = {} if open_objects else {"additionalProperties": False}
            return {"type": "object", "properties": properties, **closed}
        case Kind.ARRAY:
            return {"type": "array", "items": inner(schema.value)}
        case Kind.MAP if (
            schema.key is not None and schema.key.kind is Kind.STRING and not schema.key.optional
        ):
            return {"type": "object", "connect.type": "map", "additionalProperties": inner(schema.value)}
        case Kind.MAP:
            sides = {"key": inner(schema.key), "value": inner(schema.value)}
            return {
                "type": "array",
                "connect.type": "map",
                "items": {"type": "object", "properties": sides},
            }
        case Kind.BYTES:
            is_number = numeric and schema.name == DECIMAL
            return {"type": "number" if is_number else "string", "connect.type": "bytes"}
        case Kind.BOOLEAN:
            return {"type": "boolean"}
    symbols = [value for name, value in schema.parameters if name.startswith(f"{ENUM}.")]
    if symbols:
        return {"enum": [None if symbol == NULL_MARKER else symbol for symbol in symbols]}
    return {"type": "string"}
