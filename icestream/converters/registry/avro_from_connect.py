"""Kafka Connect's schemas as Avro ones, as Confluent's converter writes them; called when values are
written."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from icestream.converters.registry.avro_connect import (
    DEFAULT_NAME,
    ENUM,
    FIXED_SIZE,
    MAP_ENTRY,
    PRECISION,
    UNION,
    AvroOptions,
)
from icestream.records.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Kind

_NAMESPACE: Final = MAP_ENTRY.rpartition(".")[0]
_FIELD_DEFAULT: Final = f"{_NAMESPACE}.field.default"
_PLAIN: Final[Mapping[Kind, str]] = {
    Kind.INT8: "int",
    Kind.INT16: "int",
    Kind.INT32: "int",
    Kind.INT64: "long",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.BOOLEAN: "boolean",
    Kind.STRING: "string",
    Kind.BYTES: "bytes",
}
_LOGICAL: Final[Mapping[str, str]] = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_SMALL: Final[Mapping[Kind, str]] = {Kind.INT8: "int8", Kind.INT16: "int16"}
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def avro_schema(schema: ConnectSchema, options: AvroOptions) -> Any:
    """The JSON of the Avro schema."""
    return _Translation(options).schema(schema)


@dataclass
class _Translation:
    options: AvroOptions
    unnamed: int = 0
    defined: set[str] = field(default_factory=set)

    def schema(self, schema: ConnectSchema) -> Any:
        if schema.name == UNION:
            branches = [self._base(replace(one.schema, optional=False)) for one in schema.fields]
            return ["null", *branches] if schema.optional else branches
        base = self._base(schema)
        if not schema.optional:
            return base
        return [base, "null"] if schema.default is not None else ["null", base]

    def _base(self, schema: ConnectSchema) -> Any:
        named = self._is_named(schema)
        if named and schema.name in self.defined:
            return schema.name
        if named and schema.name is not None:
            self.defined.add(schema.name)
        made = self._bare(schema) | self._properties(schema)
        return made["type"] if len(made) == 1 else made

    def _is_named(self, schema: ConnectSchema) -> bool:
        if schema.kind is Kind.STRUCT:
            return True
        return schema.name is not None and (
            schema.parameter(ENUM) is not None
            or (schema.name != DECIMAL and schema.parameter(FIXED_SIZE) is not None)
        )

    def _bare(self, schema: ConnectSchema) -> dict[str, Any]:
        if schema.kind is Kind.STRUCT:
            return self._record(schema)
        if schema.kind is Kind.ARRAY:
            assert schema.value is not None
            return {"type": "array", "items": self.schema(schema.value)}
        if schema.kind is Kind.MAP:
            return self._map(schema)
        if (enum := schema.parameter(ENUM)) is not None:
            symbols = [value for name, value in schema.parameters if name.startswith(f"{ENUM}.")]
            return {"type": "enum", **_names(enum), "symbols": symbols}
        if schema.parameter(FIXED_SIZE) is not None and self._is_named(schema):
            return {
                "type": "fixed",
                **_names(schema.name or ""),
                "size": int(schema.parameter(FIXED_SIZE) or 0),
            }
        return {"type": _PLAIN[schema.kind]}

    def _record(self, schema: ConnectSchema) -> dict[str, Any]:
        fields = [self._field(one.name, one.schema) for one in schema.fields]
        return {"type": "record", **_names(schema.name or self._new_name()), "fields": fields}

    def _new_name(self) -> str:
        self.unnamed += 1
        return DEFAULT_NAME if self.unnamed == 1 else f"{DEFAULT_NAME}{self.unnamed}"

    def _field(self, name: str, schema: ConnectSchema) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "type": self.schema(schema)}
        if schema.default is not None:
            made["default"] = json_default(schema, schema.default)
        elif schema.optional:
            made["default"] = None
        return made

    def _map(self, schema: ConnectSchema) -> dict[str, Any]:
        key, value = schema.key, schema.value
        assert key is not None and value is not None
        if key.kind is Kind.STRING and not key.optional:
            return {"type": "map", "values": self.schema(value)}
        fields = [self._field("key", key), self._field("value", value)]
        entry: dict[str, Any] = {"type": "record", **_names(schema.name or MAP_ENTRY), "fields": fields}
        if schema.name is not None:
            entry["connect.internal.type"] = "MapEntry"
        return {"type": "array", "items": entry}

    def _properties(self, schema: ConnectSchema) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.options.metadata:
            found |= _metadata(schema)
        if schema.name == DECIMAL:
            precision = int(schema.parameter(PRECISION) or 64)
            found |= {"logicalType": "decimal", "precision": precision}
            found["scale"] = int(schema.parameter(SCALE) or 0)
        elif (logical := _LOGICAL.get(schema.name or "")) is not None:
            found["logicalType"] = logical
        return found | {name: value for name, value in schema.parameters if name.startswith("avro")}


def _names(full: str) -> dict[str, str]:
    namespace, _, name = full.rpartition(".")
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _metadata(schema: ConnectSchema) -> dict[str, Any]:
    parameters = {name: value for name, value in schema.parameters if not name.startswith(_NAMESPACE)}
    found = {
        "connect.doc": schema.doc,
        "connect.version": schema.version,
        "connect.parameters": parameters or None,
        "connect.name": schema.name,
        "connect.type": _SMALL.get(schema.kind),
    }
    if schema.default is not None and schema.parameter(_FIELD_DEFAULT) is None:
        found["connect.default"] = json_default(schema, schema.default)
    return {name: value for name, value in found.items() if value is not None}


def json_default(schema: ConnectSchema, value: Any) -> Any:
    """A default as Avro's JSON has it."""
    if value is None:
        return None
    if schema.kind is Kind.STRUCT:
        return {one.name: json_default(one.schema, value.get(one.name)) for one in schema.fields}
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        return [json_default(schema.value, one) for one in value]
    if schema.kind is Kind.MAP:
        assert schema.value is not None
        pairs = value.items() if isinstance(value, dict) else value
        return {key: json_default(schema.value, one) for key, one in pairs}
    return _json_scalar(schema, value)


def _json_scalar(schema: ConnectSchema, value: Any) -> Any:
    match value:
        case bytes():
            return value.decode("iso-8859-1")
        case decimal.Decimal():
            return unscaled(value, int(schema.parameter(SCALE) or 0)).decode("iso-8859-1")
        case datetime.datetime():
            return (value - _EPOCH) // datetime.timedelta(milliseconds=1)
        case datetime.date():
            return (value - _EPOCH.date()).days
        case datetime.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value


def unscaled(value: decimal.Decimal, scale: int) -> bytes:
    """The shortest two's complement of a decimal's digits, as Java writes it."""
    with decimal.localcontext(prec=100):
        number = int(value.scaleb(scale))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
