"""Decoded values of some records, with what Arrow alone does not tell of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.records.rows import Flags, Indexes
from icestream.records.schema import ConnectSchema, Kind


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one Java type.

    With a schema: held in `schema.arrow_type`. A null is a null; defaults are filled in by who reads them, as
    Java's `Struct.get` does (`filled`).

    Without: the Arrow type is the Java class. int64 Long, int32 Integer, int16 Short, int8 Byte, float64
    Double, float32 Float, bool Boolean, string String, binary byte[], `schema.MOMENT` java.util.Date,
    decimal BigDecimal; `pa.null()` if there are only nulls. Objects and lists are no columns but `Fields`
    and `Listing`.
    """

    values: pa.Array
    schema: ConnectSchema | None = None
    absent: Flags | None = None
    """Rows whose map lacks the key; None: none does. A null that is not absent was written as null."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Indexes) -> Column:
        absent = None if self.absent is None else self.absent[rows]
        return Column(self.values.take(pa.array(rows)), self.schema, absent)

    @property
    def nulls(self) -> Flags:
        """True where there is no value, whether absent or null."""
        found: Flags = self.values.is_null().to_numpy(zero_copy_only=False)
        return found


def nulls(length: int, schema: ConnectSchema | None = None) -> Column:
    return Column(pa.nulls(length, schema.arrow_type if schema else pa.null()), schema)


def missing(length: int) -> Column:
    """A key that no row has."""
    return Column(pa.nulls(length), None, np.ones(length, np.bool_))


def filled(column: Column) -> Column:
    """Nulls replaced by the schema's default, if it has one."""
    schema = column.schema
    if schema is None or schema.default is None or not column.values.null_count:
        return column
    defaults = pa.array([schema.default], schema.arrow_type)
    at = pa.array(np.where(column.nulls, len(column), np.arange(len(column))))
    return Column(pa.concat_arrays([column.values, defaults]).take(at), schema)


def filled_deep(column: Column) -> Column:
    """With the defaults of all structs inside, too: what Java sees who gets the fields one by one."""
    schema = column.schema
    if schema is None or not _has_defaults(schema):
        return column
    column = filled(column)
    if schema.kind is not Kind.STRUCT:
        return column
    fields = [filled_deep(child).values for child in children(column).values()]
    return struct_column(schema, fields, column.nulls)


@functools.lru_cache(maxsize=1000)
def _has_defaults(schema: ConnectSchema) -> bool:
    return schema.default is not None or any(_has_defaults(field.schema) for field in schema.fields)


def children(column: Column) -> dict[str, Column]:
    """The fields of a struct column by name; null where the struct is."""
    schema = column.schema
    assert schema is not None and schema.kind is Kind.STRUCT
    arrays = column.values.flatten()
    return {
        field.name: Column(array, field.schema) for field, array in zip(schema.fields, arrays, strict=True)
    }


def struct_column(schema: ConnectSchema, fields: Sequence[pa.Array], null: Flags | None = None) -> Column:
    """The inverse of `children`: a struct column of arrays in the order of the schema's fields."""
    kind = schema.arrow_type
    if not fields:
        length = 0 if null is None else len(null)
        return Column(pa.array([{}] * length, kind), schema)
    mask = None if null is None or not null.any() else pa.array(null)
    held = [kind.field(position) for position in range(kind.num_fields)]
    return Column(pa.StructArray.from_arrays(list(fields), fields=held, mask=mask), schema)


def is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType)


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Python's own values as an array; a UUID is its 16 bytes, on any level."""
    held = _without_uuids(kind)
    return pa.array(values, kind) if held is kind else pa.array(values, held).cast(kind)


def _without_uuids(kind: pa.DataType) -> pa.DataType:
    """The type itself, or the one that Arrow can make of Python's values and cast to it."""
    if is_uuid(kind):
        return pa.binary(16)
    if pt.is_struct(kind):
        fields = [kind.field(position) for position in range(kind.num_fields)]
        held = [one.with_type(_without_uuids(one.type)) for one in fields]
        is_same = all(one.type is other.type for one, other in zip(fields, held, strict=True))
        return kind if is_same else pa.struct(held)
    if pt.is_list(kind):
        inner = _without_uuids(kind.value_type)
        return kind if inner is kind.value_type else pa.list_(kind.value_field.with_type(inner))
    if pt.is_map(kind):
        key, item = _without_uuids(kind.key_type), _without_uuids(kind.item_type)
        if key == kind.key_type and item == kind.item_type:
            return kind
        return pa.map_(kind.key_field.with_type(key), kind.item_field.with_type(item))
    return kind
