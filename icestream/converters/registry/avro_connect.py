"""Avro types as Kafka Connect's schemas, as Confluent's converter has them; called by the Avro converter."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from icestream.converters.registry.avro_schema import NO_DEFAULT, AvroField, AvroType, BadSchema
from icestream.records.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    Field,
    Kind,
)

UNION: Final = "io.confluent.connect.avro.Union"
"""Name of the struct that a union becomes."""
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NAMESPACE: Final = "io.confluent.connect.avro"
ENUM: Final = f"{_NAMESPACE}.Enum"
DEFAULT_NAME: Final = f"{_NAMESPACE}.ConnectDefault"
MAP_ENTRY: Final = f"{_NAMESPACE}.MapEntry"
FIXED_SIZE: Final = "connect.fixed.size"
PRECISION: Final = "connect.decimal.precision"
_USUAL_PRECISION: Final = 64
_PLAIN: Final[Mapping[str, Kind]] = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT32,
    "long": Kind.INT64,
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "string": Kind.STRING,
    "bytes": Kind.BYTES,
    "fixed": Kind.BYTES,
    "enum": Kind.STRING,
}
_LOGICAL: Final[Mapping[tuple[str, str], str]] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}
_SMALL: Final[Mapping[str, Kind]] = {"int8": Kind.INT8, "int16": Kind.INT16}


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


@dataclass(frozen=True)
class AvroOptions:
    """Settings of the converter that change schemas."""

    enhanced: bool = False
    """`enhanced.avro.schema.support`: full names in unions."""
    metadata: bool = True
    """`connect.meta.data`: docs and parameters are kept."""
    flatten_singletons: bool = True
    """`flatten.singleton.unions`."""


def connect_schema(kind: AvroType, options: AvroOptions) -> ConnectSchema:
    """Raises BadSchema for what Connect has no schema for."""
    return _Translation(options).schema(kind)


@dataclass(frozen=True)
class _Translation:
    options: AvroOptions

    def schema(self, kind: AvroType, optional: bool = False, default: Any = NO_DEFAULT) -> ConnectSchema:
        if (branch := self._only_branch(kind)) is not None:
            return self.schema(branch, optional or len(kind.branches) == 2)
        made = self._bare(kind)
        made = replace(made, parameters=made.parameters + self._parameters(kind, default))
        made = self._annotated(kind, made)
        made = replace(made, name=_name(kind, made), optional=optional or made.optional)
        return replace(made, default=_default(kind, made, default))

    def _only_branch(self, kind: AvroType) -> AvroType | None:
        valued = [branch for branch in kind.branches if branch.kind != "null"]
        if len(valued) != 1:
            return None
        if len(kind.branches) == 1 and not self.options.flatten_singletons:
            return None
        return valued[0]

    def _bare(self, kind: AvroType) -> ConnectSchema:
        match kind.kind:
            case "record":
                fields = tuple(self._field(one) for one in kind.fields)
                return ConnectSchema(Kind.STRUCT, fields=fields)
            case "array" | "map":
                return self._collection(kind)
            case "union":
                return self._union(kind)
            case "null":
                raise BadSchema("Standalone null schemas are not supported by this converter")
            case _:
                return _scalar(kind)

    def _field(self, one: AvroField) -> Field:
        schema = self.schema(one.type, default=one.default)
        extra = one.properties.get("connect.parameters")
        if self.options.metadata and isinstance(extra, dict):
            merged = dict(schema.parameters) | {name: str(value) for name, value in extra.items()}
            schema = replace(schema, parameters=tuple(merged.items()))
        return Field(one.name, schema)

    def _collection(self, kind: AvroType) -> ConnectSchema:
        assert kind.item is not None
        if kind.kind == "map":
            return ConnectSchema(Kind.MAP, key=ConnectSchema(Kind.STRING), value=self.schema(kind.item))
        if not _is_map_entry(kind.item):
            return ConnectSchema(Kind.ARRAY, value=self.schema(kind.item))
        sides = {one.name: self.schema(one.type) for one in kind.item.fields}
        if set(sides) != {"key", "value"}:
            raise BadSchema(
                "Found map encoded as array of key-value pairs, but array elements do not match the expected"
                " format."
            )
        return ConnectSchema(Kind.MAP, key=sides["key"], value=sides["value"])

    def _union(self, kind: AvroType) -> ConnectSchema:
        fields: dict[str, ConnectSchema] = {}
        for branch in kind.branches:
            if branch.kind == "null":
                continue
            name = branch_name(branch, self.options)
            if name in fields:
                raise BadSchema("Multiple union schemas map to the Connect union field name")
            fields[name] = self.schema(branch, optional=True)
        return ConnectSchema(
            Kind.STRUCT,
            name=UNION,
            optional=any(branch.kind == "null" for branch in kind.branches),
            fields=tuple(Field(name, schema) for name, schema in fields.items()),
        )

    def _parameters(self, kind: AvroType, default: Any) -> tuple[tuple[str, str], ...]:
        return tuple(dict(self._each_parameter(kind, default)).items())

    def _each_parameter(self, kind: AvroType, default: Any) -> Iterator[tuple[str, str]]:
        keeps = self.options.metadata
        if kind.kind == "record" and keeps:
            if kind.doc is not None:
                yield f"{_NAMESPACE}.record.doc", kind.doc
            for one in kind.fields:
                if one.doc is not None:
                    yield f"{_NAMESPACE}.field.doc.{one.name}", one.doc
        if kind.kind == "enum":
            yield from self._enum_parameters(kind)
        given = kind.properties.get("connect.parameters")
        if keeps and isinstance(given, dict):
            yield from ((name, str(value)) for name, value in given.items())
        for name, value in kind.properties.items():
            if name.startswith("avro"):
                yield name, str(value)
        if keeps and default is not NO_DEFAULT and kind.properties.get("connect.default") is None:
            yield f"{_NAMESPACE}.field.default", "true"

    def _enum_parameters(self, kind: AvroType) -> Iterator[tuple[str, str]]:
        if self.options.metadata:
            if kind.doc is not None:
                yield f"{_NAMESPACE}.enum.doc.{kind.short_name}", kind.doc
            if kind.default is not None:
                yield f"{_NAMESPACE}.enum.default.{kind.short_name}", kind.default
        yield ENUM, kind.name
        yield from ((f"{ENUM}.{symbol}", symbol) for symbol in kind.symbols)

    def _annotated(self, kind: AvroType, schema: ConnectSchema) -> ConnectSchema:
        doc = kind.properties.get("connect.doc") if self.options.metadata else None
        version = kind.properties.get("connect.version", schema.version)
        if version is not None and not isinstance(version, int):
            raise BadSchema(f"Invalid Connect version found: {version}")
        return replace(schema, doc=doc, version=version)


def branch_name(branch: AvroType, options: AvroOptions) -> str:
    """The field of a branch in the struct that a union becomes."""
    if branch.kind not in ("record", "enum", "fixed"):
        return branch.kind
    return branch.name if options.enhanced else branch.short_name


def _is_map_entry(kind: AvroType) -> bool:
    if kind.kind != "record":
        return False
    return kind.name == MAP_ENTRY or kind.properties.get("connect.internal.type") == "MapEntry"


def _scalar(kind: AvroType) -> ConnectSchema:
    parameters: dict[str, str] = {}
    if kind.kind == "fixed":
        parameters[FIXED_SIZE] = str(kind.size)
    if kind.kind in ("bytes", "fixed") and kind.logical == "decimal":
        return _decimal(kind, parameters)
    if (name := _LOGICAL.get((kind.kind, kind.logical or ""))) is not None:
        return ConnectSchema(_PLAIN[kind.kind], name=name, version=1)
    small = kind.properties.get("connect.type")
    if kind.kind == "int" and kind.logical is None and small is not None:
        if small not in _SMALL:
            raise BadSchema("Connect type annotation for Avro int field is null")
        return ConnectSchema(_SMALL[small])
    if kind.kind not in _PLAIN:
        raise BadSchema(f"Couldn't translate unsupported schema type {kind.kind}.")
    return ConnectSchema(_PLAIN[kind.kind], parameters=tuple(parameters.items()))


def _decimal(kind: AvroType, parameters: Mapping[str, str]) -> ConnectSchema:
    scale, precision = kind.properties.get("scale", 0), kind.properties.get("precision")
    if not isinstance(scale, int):
        raise BadSchema("scale property must be a JSON Integer.")
    known = {SCALE: str(scale)}
    if precision is not None:
        if not isinstance(precision, int):
            raise BadSchema("precision property must be a JSON Integer.")
        if precision != _USUAL_PRECISION:
            known[PRECISION] = str(precision)
    if not -76 <= scale <= 76:
        raise BadSchema(f"a decimal of scale {scale} fits into no column; at most 76 digits do")
    return ConnectSchema(
        Kind.BYTES, name=DECIMAL, version=1, parameters=tuple((known | dict(parameters)).items())
    )


def _name(kind: AvroType, schema: ConnectSchema) -> str | None:
    name = kind.properties.get("connect.name")
    if name is None and kind.kind in ("record", "enum", "fixed") and schema.name != DECIMAL:
        name = kind.name
    if name is not None and not isinstance(name, str):
        raise BadSchema(f"Invalid schema name found: {name}")
    if name is None or name.startswith(DEFAULT_NAME):
        return schema.name
    if schema.name is not None and name != schema.name:
        raise BadSchema(
            f"Mismatched names: name already added to SchemaBuilder ({schema.name}) differs from name in"
            f" source schema ({name})"
        )
    return name


def _default(kind: AvroType, schema: ConnectSchema, given: Any) -> Any:
    value = kind.properties.get("connect.default") if given is NO_DEFAULT else given
    try:
        return default_value(kind, schema, value)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
        return None  # Java warns and goes on without it
