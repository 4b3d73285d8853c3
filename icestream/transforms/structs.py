"""Changing the fields of struct columns, and which facts of a schema survive it; shared by transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, filled, struct_column
from icestream.records.records import Failure
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.transforms.refusals import SCHEMA_BUILDER_EXCEPTION, Refused
from icestream.transforms.struct_fields import nulls_refused

_MOST_SCHEMAS = 64
T = TypeVar("T")


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


def field_arrays(column: Column, defaults: bool) -> list[pa.Array]:
    """The fields of a struct column in order, if asked for with defaults in place of nulls."""
    assert column.schema is not None
    arrays = column.values.flatten()
    if not defaults:
        return list(arrays)
    return [
        filled(Column(array, one.schema)).values if array.null_count else array
        for one, array in zip(column.schema.fields, arrays, strict=True)
    ]


def rebuilt_column(schema: ConnectSchema, arrays: Sequence[pa.Array], length: int) -> Column:
    """A struct column without nulls."""
    return struct_column(schema, arrays, None if arrays else np.zeros(length, np.bool_))


def nulls_in_required(schema: ConnectSchema, arrays: Sequence[pa.Array]) -> dict[int, Failure]:
    """Positions that have a null where the schema has no room for it, which Java's `Struct.put` refuses."""
    failed: dict[int, Failure] = {}
    for one, array in zip(schema.fields, arrays, strict=True):
        if array.null_count and not one.schema.optional:
            failed = nulls_refused(one.name, Column(array, one.schema)) | failed
    return failed
