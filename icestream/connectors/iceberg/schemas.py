"""Iceberg schemas as Arrow schemas with field ids, and back for fields that are to be added."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg import types as it
from pyiceberg.schema import Schema
from pyiceberg.table.update.schema import UpdateSchema

from icestream.api.errors import ConfigError, Problem

_FIELD_ID = b"PARQUET:field_id"

_PRIMITIVES: Mapping[type[it.IcebergType], pa.DataType] = {
    it.BooleanType: pa.bool_(),
    it.IntegerType: pa.int32(),
    it.LongType: pa.int64(),
    it.FloatType: pa.float32(),
    it.DoubleType: pa.float64(),
    it.DateType: pa.date32(),
    it.TimeType: pa.time64("us"),
    it.TimestampType: pa.timestamp("us"),
    it.TimestamptzType: pa.timestamp("us", tz="UTC"),
    it.StringType: pa.string(),
    it.BinaryType: pa.binary(),
    it.UUIDType: pa.uuid(),
}
_WIDER: Mapping[it.IcebergType, it.IcebergType] = {
    it.IntegerType(): it.LongType(),
    it.FloatType(): it.DoubleType(),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema that data files of this Iceberg schema have."""
    return pa.schema([_arrow_field(field) for field in schema.fields])


def _arrow_field(field: it.NestedField) -> pa.Field:
    return _field(field.name, field.field_type, field.field_id, not field.required)


def _field(name: str, kind: it.IcebergType, field_id: int, nullable: bool) -> pa.Field:
    return pa.field(name, _arrow_type(kind), nullable, {_FIELD_ID: str(field_id).encode()})


def _arrow_type(kind: it.IcebergType) -> pa.DataType:
    if isinstance(kind, it.StructType):
        return pa.struct([_arrow_field(field) for field in kind.fields])
    if isinstance(kind, it.ListType):
        return pa.list_(_field("element", kind.element_type, kind.element_id, not kind.element_required))
    if isinstance(kind, it.MapType):
        return pa.map_(
            _field("key", kind.key_type, kind.key_id, False),
            _field("value", kind.value_type, kind.value_id, not kind.value_required),
        )
    if isinstance(kind, it.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, it.FixedType):
        return pa.binary(len(kind))
    if type(kind) in _PRIMITIVES:
        return _PRIMITIVES[type(kind)]
    raise ConfigError(
        [
            Problem(
                "iceberg.tables", f"The table has a column of type {kind}, which this version does not write."
            )
        ]
    )


def change_fields(
    update: UpdateSchema, schema: Schema, fields: Mapping[tuple[str, ...], pa.DataType]
) -> None:
    """Add fields to a table, as optional columns; of those that it has, widen the type, or no longer
    require them."""
    known = set(schema.column_names)
    for path, kind in sorted(fields.items(), key=lambda item: (len(item[0]), item[0])):
        if pt.is_null(kind):
            update.update_column(path[:-1], required=False)
        elif ".".join(path) not in known:
            update.add_column(path, _iceberg_type(kind))
        elif _is_wider(wider := _iceberg_type(kind), schema.find_type(".".join(path))):
            update.update_column(path, wider)


def _is_wider(kind: it.IcebergType, held: it.IcebergType) -> bool:
    """Whether Iceberg's rules let a column of the one type become one of the other."""
    if isinstance(kind, it.DecimalType) and isinstance(held, it.DecimalType):
        return kind.scale == held.scale and kind.precision > held.precision
    return kind == _WIDER.get(held)


def new_schema(record: pa.StructType) -> Schema:
    """The schema of a new table. The catalog gives the ids that stay."""
    kind = _iceberg_type(record, itertools.count(1))
    assert isinstance(kind, it.StructType)
    return Schema(*kind.fields)


def _iceberg_type(kind: pa.DataType, ids: Iterator[int] | None = None) -> it.IcebergType:
    # PyIceberg gives the real ids when the column is added; here they only have to differ.
    ids = ids or itertools.count(1)
    if pt.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return it.StructType(
            *(
                it.NestedField(next(ids), one.name, _iceberg_type(one.type, ids), required=not one.nullable)
                for one in fields
            )
        )
    if pt.is_list(kind):
        item = kind.value_field
        return it.ListType(next(ids), _iceberg_type(item.type, ids), element_required=not item.nullable)
    if pt.is_map(kind):
        item = kind.item_field
        return it.MapType(
            next(ids),
            _iceberg_type(kind.key_type, ids),
            next(ids),
            _iceberg_type(item.type, ids),
            value_required=not item.nullable,
        )
    if pt.is_decimal(kind):
        return it.DecimalType(kind.precision, kind.scale)
    if pt.is_fixed_size_binary(kind):
        return it.FixedType(kind.byte_width)
    plain = {held: iceberg for iceberg, held in _PRIMITIVES.items()}
    return plain.get(kind, it.StringType)()
