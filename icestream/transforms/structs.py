"""Structs taken apart and put together, as Java's `Struct.get` and `put` do it, and fields changed in structs
and schemaless maps alike; shared by transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.records.column import Column, children, filled, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.records.values import Fields, Typed
from icestream.transforms.failures import (
    SCHEMA_BUILDER_EXCEPTION,
    GroupFailed,
    has_schema,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Changed, Picked, Side, change_field, merged, pick_keys, without_failed

_MOST_SCHEMAS = 64
T = TypeVar("T")
Change = Callable[[Typed], Changed]


@dataclass
class SchemaCache(Generic[T]):
    """What was made of each schema, as groups of the same schema come again and again."""

    _made: dict[ConnectSchema, T] = field(default_factory=dict)
    _last: tuple[ConnectSchema, T] | None = None

    def get(self, schema: ConnectSchema, make: Callable[[ConnectSchema], T]) -> T:
        if self._last is not None and self._last[0] is schema:
            return self._last[1]
        if schema not in self._made:
            if len(self._made) >= _MOST_SCHEMAS:
                self._made.clear()
            self._made[schema] = make(schema)
        self._last = (schema, self._made[schema])
        return self._made[schema]


def change_fields(
    records: Records,
    side: Side,
    changes: Mapping[str, Change],
    purpose: str,
    *,
    schema_after: Callable[[ConnectSchema], ConnectSchema],
    defaults: bool,
) -> Applied:
    """Fields of structs or of schemaless maps changed, each by one function that gets and gives columns with
    a schema or without. Raises GroupFailed if the values are neither."""
    if has_schema(side.get(records)):
        return _change_struct(records, side, changes, purpose, schema_after, defaults)
    require_map(side.get(records), purpose)
    applied = Applied([records])
    for name, change in changes.items():
        more = [change_field(one, side, name, change) for one in applied.records]
        applied = merged([*more, Applied([], applied.failed)])
    return applied


def pick_fields(
    records: Records, side: Side, names: Sequence[str], purpose: str, *, defaults: bool
) -> list[Picked]:
    """Fields of structs or of schemaless maps, in groups where each has one Java type. Raises GroupFailed if
    the values are neither, or lack a field."""
    value = side.get(records)
    if not has_schema(value):
        require_map(value, purpose)
        return pick_keys(records, side, names)
    column, schema = require_struct(value, purpose)
    unknown = next((name for name in names if name not in schema), None)
    if unknown is not None:
        raise GroupFailed(f"Field does not exist: {unknown}")
    columns = read_fields(column, defaults=defaults)
    return [Picked(records, [columns[name] for name in names])]


@dataclass(frozen=True)
class Added:
    """A field to add to structs, or to schemaless maps: there a null means that the map does not get it."""

    name: str
    schema: ConnectSchema
    values: pa.Array

    def take(self, rows: Indexes) -> Added:
        return replace(self, values=self.values.take(pa.array(rows)))


def add_fields(
    records: Records,
    side: Side,
    added: Sequence[Added],
    purpose: str,
    schemas: SchemaCache[ConnectSchema],
    *,
    defaults: bool,
) -> Applied:
    """Raises GroupFailed if the values are neither structs nor schemaless maps."""
    if not has_schema(side.get(records)):
        require_map(side.get(records), purpose)
        return Applied(_with_keys(records, side, added))
    column, schema = require_struct(side.get(records), purpose)
    arrays = field_arrays(column, defaults)
    failed = required_null_failures(schema, arrays)

    def with_added(before: ConnectSchema) -> ConnectSchema:
        fields = [(one.name, one.schema) for one in before.fields]
        return with_fields(before, [*fields, *((one.name, one.schema) for one in added)])

    for one in added:
        kind = one.schema.arrow_type
        arrays.append(one.values if one.values.type == kind else one.values.cast(kind))
    changed = full_struct_column(schemas.get(schema, with_added), arrays, len(records))
    return without_failed(side.put(records, changed), failed)


def _with_keys(records: Records, side: Side, added: Sequence[Added]) -> list[Records]:
    """Rows apart where some of them get a key and others do not."""
    for one in added:
        if 0 < one.values.null_count < len(records):
            nulls = Column(one.values).nulls
            parts = [np.flatnonzero(flags) for flags in (nulls, ~nulls)]
            groups = [(records.take(rows), [field.take(rows) for field in added]) for rows in parts]
            return [more for group, fields in groups for more in _with_keys(group, side, fields)]
    value = side.get(records)
    assert isinstance(value, Fields)
    named = {one.name: Column(one.values) for one in added if not one.values.null_count}
    return [side.put(records, value.put(named))]


def _change_struct(
    records: Records,
    side: Side,
    changes: Mapping[str, Change],
    purpose: str,
    schema_after: Callable[[ConnectSchema], ConnectSchema],
    defaults: bool,
) -> Applied:
    column, schema = require_struct(side.get(records), purpose)
    after = schema_after(schema)
    arrays = field_arrays(column, defaults)
    failed: dict[int, Failure] = {}
    for position, one in enumerate(schema.fields):
        if one.name in changes:
            changed = changes[one.name](Column(arrays[position], one.schema))
            assert isinstance(changed.value, Column)
            values = changed.value.values
            arrays[position] = values.cast(after[one.name].arrow_type) if pt.is_null(values.type) else values
            failed = {**changed.failed, **failed}
        failed = {**null_failures(one.name, Column(arrays[position], after[one.name])), **failed}
    return without_failed(side.put(records, full_struct_column(after, arrays, len(records))), failed)


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


def with_fields(schema: ConnectSchema, fields: Sequence[tuple[str, ConnectSchema]]) -> ConnectSchema:
    """A struct with other fields. Name, version, doc and parameters survive; it is required and has no
    default, as Java's `copySchemaBasics` leaves it."""
    names: set[str] = set()
    for name, _ in fields:
        if not name:
            raise GroupFailed("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
        if name in names:
            reason = f"Cannot create field because of field name duplication {name}"
            raise GroupFailed(reason, SCHEMA_BUILDER_EXCEPTION)
        names.add(name)
    return ConnectSchema(
        Kind.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(Field(name, one) for name, one in fields),
    )


def full_struct_column(schema: ConnectSchema, arrays: Sequence[pa.Array], length: int) -> Column:
    """A struct column without nulls."""
    return struct_column(schema, arrays, None if arrays else np.zeros(length, np.bool_))


def null_failures(name: str, column: Column) -> dict[int, Failure]:
    """The positions that cannot go into a struct's field, as it has to have a value there."""
    schema = column.schema
    if schema is None or schema.optional or not column.values.null_count:
        return {}
    why = Failure(f'Invalid value: null used for required field: "{name}", schema type: {schema.kind}')
    return dict.fromkeys(np.flatnonzero(column.nulls).tolist(), why)


def required_null_failures(schema: ConnectSchema, arrays: Sequence[pa.Array]) -> dict[int, Failure]:
    """The same of all fields of a struct; the first one names the reason."""
    failed: dict[int, Failure] = {}
    for one, array in zip(schema.fields, arrays, strict=True):
        failed = null_failures(one.name, Column(array, one.schema)) | failed
    return failed
