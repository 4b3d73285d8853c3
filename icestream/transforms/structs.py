"""Structs taken apart and put together, as Java's `Struct.get` and `put` do it; shared by transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, children, filled, struct_column
from icestream.records.records import Failure
from icestream.records.rows import Flags
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.transforms.refusals import SCHEMA_BUILDER_EXCEPTION, Refused


def read_fields(column: Column, *, defaults: bool) -> dict[str, Column]:
    """By name. If asked for, a field's default stands in for a null, unless the struct itself is null."""
    found = children(column)
    if not defaults:
        return found
    nulls = column.nulls
    return {name: defaulted(field, nulls) for name, field in found.items()}


def field_arrays(column: Column, defaults: bool) -> list[pa.Array]:
    """The same, only the values, in the order of the schema's fields."""
    return [field.values for field in read_fields(column, defaults=defaults).values()]


def defaulted(column: Column, struct_nulls: Flags) -> Column:
    """A field with its default in place of nulls, but not where the struct around it is null."""
    full = filled(column)
    if full is column or not struct_nulls.any():
        return full
    rows = pa.array(np.arange(len(column)), mask=struct_nulls)
    return Column(full.values.take(rows), column.schema)


def rebuilt(schema: ConnectSchema, fields: Sequence[tuple[str, ConnectSchema]]) -> ConnectSchema:
    """A struct with other fields. Name, version, doc and parameters survive; it is required and has no
    default, as Java's `copySchemaBasics` leaves it."""
    names: set[str] = set()
    for name, _ in fields:
        if not name:
            raise Refused("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
        if name in names:
            reason = f"Cannot create field because of field name duplication {name}"
            raise Refused(reason, SCHEMA_BUILDER_EXCEPTION)
        names.add(name)
    return ConnectSchema(
        Kind.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(Field(name, one) for name, one in fields),
    )


def rebuilt_column(schema: ConnectSchema, arrays: Sequence[pa.Array], length: int) -> Column:
    """A struct column without nulls."""
    return struct_column(schema, arrays, None if arrays else np.zeros(length, np.bool_))


def nulls_refused(name: str, column: Column) -> dict[int, Failure]:
    """The positions that cannot go into a struct's field, as it has to have a value there."""
    schema = column.schema
    if schema is None or schema.optional or not column.values.null_count:
        return {}
    why = Failure(f'Invalid value: null used for required field: "{name}", schema type: {schema.kind}')
    return dict.fromkeys(np.flatnonzero(column.nulls).tolist(), why)


def nulls_in_required(schema: ConnectSchema, arrays: Sequence[pa.Array]) -> dict[int, Failure]:
    """The same of all fields of a struct; the first one names the reason."""
    failed: dict[int, Failure] = {}
    for one, array in zip(schema.fields, arrays, strict=True):
        failed = nulls_refused(one.name, Column(array, one.schema)) | failed
    return failed
