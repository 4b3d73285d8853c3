"""Kafka Connect's schemas as plain facts, and the Arrow type in which values of each are held.

Made by converters, changed by transforms, read by sinks. A schema is hashable, so that caches of changed
schemas are dicts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa


class Kind(StrEnum):
    """Connect's `Schema.Type`."""

    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    BYTES = "BYTES"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"


DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"
"""Parameter of a decimal's schema."""


@dataclass(frozen=True)
class Field:
    name: str
    schema: ConnectSchema


@dataclass(frozen=True)
class ConnectSchema:
    kind: Kind
    optional: bool = False
    name: str | None = None
    """Names the logical type, if there is one."""
    version: int | None = None
    default: Any = field(default=None, hash=False)
    """As Python's own values: Decimal, date, time, datetime for logical types; a dict for a struct or map."""
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    fields: tuple[Field, ...] = ()
    key: ConnectSchema | None = None
    value: ConnectSchema | None = None
    """Of a map's values, or of an array's elements."""

    def __getitem__(self, name: str) -> ConnectSchema:
        return self.fields[self.position(name)].schema

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    def position(self, name: str) -> int:
        return self._positions[name]

    @functools.cached_property
    def _positions(self) -> Mapping[str, int]:
        return {one.name: position for position, one in enumerate(self.fields)}

    def parameter(self, name: str) -> str | None:
        return dict(self.parameters).get(name)

    def as_optional(self) -> ConnectSchema:
        return self if self.optional else replace(self, optional=True)

    @functools.cached_property
    def arrow_type(self) -> pa.DataType:
        """What a column of these values is held in."""
        return _arrow_type(self)


def struct(*fields: tuple[str, ConnectSchema], **facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.STRUCT, fields=tuple(Field(name, schema) for name, schema in fields), **facts)


def array(value: ConnectSchema, **facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.ARRAY, value=value, **facts)


def map_of(key: ConnectSchema, value: ConnectSchema, **facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.MAP, key=key, value=value, **facts)


def decimal(scale: int, **facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.BYTES, name=DECIMAL, version=1, parameters=((SCALE, str(scale)),), **facts)


def date(**facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.INT32, name=DATE, version=1, **facts)


def time(**facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.INT32, name=TIME, version=1, **facts)


def timestamp(**facts: Any) -> ConnectSchema:
    return ConnectSchema(Kind.INT64, name=TIMESTAMP, version=1, **facts)


STRING: Final = ConnectSchema(Kind.STRING)
OPTIONAL_STRING: Final = ConnectSchema(Kind.STRING, optional=True)
BYTES: Final = ConnectSchema(Kind.BYTES)
OPTIONAL_BYTES: Final = ConnectSchema(Kind.BYTES, optional=True)

MOMENT: Final = pa.timestamp("ms", "UTC")
"""Timestamps; of schemaless values any `java.util.Date`."""

_PLAIN: Final[Mapping[Kind, pa.DataType]] = {
    Kind.INT8: pa.int8(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.STRING: pa.string(),
    Kind.BYTES: pa.binary(),
}
_LOGICAL: Final[Mapping[str, pa.DataType]] = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: MOMENT}


def _arrow_type(schema: ConnectSchema) -> pa.DataType:
    if schema.name is not None and schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == DECIMAL:
        # The widest there is: Connect's decimals have a scale and no precision.
        return pa.decimal256(76, int(schema.parameter(SCALE) or 0))
    if schema.kind is Kind.STRUCT:
        return pa.struct([pa.field(one.name, one.schema.arrow_type) for one in schema.fields])
    if schema.kind is Kind.ARRAY:
        return pa.list_(_inner_type(schema.value))
    if schema.kind is Kind.MAP:
        key = pa.string() if schema.key is None else schema.key.arrow_type
        return pa.map_(key, _inner_type(schema.value))
    return _PLAIN[schema.kind]


def _inner_type(schema: ConnectSchema | None) -> pa.DataType:
    """Java reads the literals `[]` and `{}` as an array and a map whose elements have no schema."""
    return pa.null() if schema is None else schema.arrow_type
