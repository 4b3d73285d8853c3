"""What Java's transforms require of keys, values and fields, and its words where they are not so."""

from __future__ import annotations

from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.records import Failure
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Value
from icestream.transforms.refusals import Refused


def is_null(value: Value) -> bool:
    """Of a key or value as a transform gets it: null in all rows, or in none."""
    return value is None or (isinstance(value, Column) and value.values.null_count == len(value))


def not_a_map(value: Value, purpose: str) -> Failure:
    found = java_class(value)
    return Failure(f"Only Map objects supported in absence of schema for [{purpose}], found: {found}")


def not_a_struct(value: Value, purpose: str) -> Failure:
    return Failure(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")


def require_map(value: Value, purpose: str) -> Fields:
    if isinstance(value, Fields):
        return value
    raise Refused(not_a_map(value, purpose).reason)


def require_struct(value: Value, purpose: str) -> tuple[Column, ConnectSchema]:
    if isinstance(value, Column) and not is_null(value):
        schema = value.schema
        if schema is not None and schema.kind is Kind.STRUCT:
            return value, schema
    raise Refused(not_a_struct(value, purpose).reason)


def schema_text(schema: ConnectSchema) -> str:
    """As Java prints a schema."""
    return f"Schema{{{schema.name}:{schema.kind}}}" if schema.name is not None else f"Schema{{{schema.kind}}}"
