"""Values of records as Arrow tables, and back: what a user's function is given and what it returns.

Called by `user_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.records.column import Column, children, filled_deep
from icestream.records.json_source import JsonSource, encoded
from icestream.records.plain import plain
from icestream.records.rows import Indexes
from icestream.records.schema import (
    MOMENT,
    ConnectSchema,
    Field,
    Kind,
    date,
    decimal,
    map_of,
    time,
    timestamp,
)
from icestream.records.schema import (
    array as list_of,
)
from icestream.records.values import Fields, Node, Text, Typed, Value
from icestream.transforms.groups import Picked
from icestream.transforms.structs import full_struct_column, with_fields

ROW: Final = "__row"
"""The column that numbers the records, so that a function may drop some or change their order."""
_WRAPPED: Final = "v"
_AS_THEY_ARE: Final = frozenset(
    (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string())
) | {pa.binary(), pa.null(), MOMENT}
_PLAIN: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


_KINDS: Final[tuple[tuple[Callable[[pa.DataType], bool], Kind], ...]] = (
    (pt.is_int8, Kind.INT8),
    (pt.is_int16, Kind.INT16),
    (pt.is_uint8, Kind.INT16),
    (pt.is_int32, Kind.INT32),
    (pt.is_uint16, Kind.INT32),
    (pt.is_integer, Kind.INT64),
    (pt.is_float64, Kind.FLOAT64),
    (pt.is_floating, Kind.FLOAT32),
    (pt.is_boolean, Kind.BOOLEAN),
    (pt.is_string, Kind.STRING),
    (pt.is_large_string, Kind.STRING),
    (pt.is_string_view, Kind.STRING),
    (pt.is_null, Kind.STRING),
    (pt.is_binary, Kind.BYTES),
    (pt.is_large_binary, Kind.BYTES),
    (pt.is_fixed_size_binary, Kind.BYTES),
)
_LOGICAL: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[..., ConnectSchema]], ...]] = (
    (pt.is_timestamp, timestamp),
    (pt.is_date, date),
    (pt.is_time, time),
)


class Misuse(Exception):
    """The function returned what cannot become records; says what, in one sentence."""


class Tabular(Protocol):
    """Values that a function can be given."""

    @property
    def table(self) -> pa.Table: ...

    def value(self, result: pa.Table, rows: Indexes) -> Value:
        """What a function made of the values at these rows. Raises Misuse."""


@dataclass(frozen=True)
class SchemalessTable:
    """Maps without a schema."""

    columns: Mapping[str, Typed]
    table: pa.Table

    @classmethod
    def of(cls, names: Sequence[str], group: Picked) -> SchemalessTable:
        columns = dict(zip(names, group.values, strict=True))
        arrays = {name: _array(one) for name, one in columns.items()}
        return cls(columns, _numbered(arrays, len(group.records)))

    def value(self, result: pa.Table, rows: Indexes) -> Fields:
        named: dict[str, Node | None] = {}
        for name in result.column_names:
            array = _chunk(result[name])
            known = self.columns.get(name)
            if known is not None and array.equals(_chunk(self.table[name]).take(pa.array(rows))):
                named[name] = known.take(rows)
            else:
                absent = (
                    known.absent[rows] if isinstance(known, Column) and known.absent is not None else None
                )
                named[name] = _schemaless(name, array, absent)
        return Fields(named, None, len(rows))


@dataclass(frozen=True)
class StructTable:
    """Structs that carry a schema."""

    schema: ConnectSchema
    table: pa.Table

    @classmethod
    def of(cls, column: Column, schema: ConnectSchema) -> StructTable:
        fields = {name: child.values for name, child in children(filled_deep(column)).items()}
        return cls(schema, _numbered(fields, len(column)))

    def value(self, result: pa.Table, rows: Indexes) -> Column:
        columns = [self._column(name, _chunk(result[name])) for name in result.column_names]
        fields = [
            (name, one.schema) for name, one in zip(result.column_names, columns, strict=True) if one.schema
        ]
        schema = with_fields(self.schema, fields)
        return full_struct_column(schema, [one.values for one in columns], len(rows))

    def _column(self, name: str, array: pa.Array) -> Column:
        if name in self.schema and self.schema[name].arrow_type == array.type:
            known = self.schema[name]
            return Column(array, known.as_optional() if array.null_count else known)
        found = _schema_of(array.type)
        if found is None:
            raise Misuse(_no_type(name, array.type))
        try:
            return Column(_held(array, found), found)
        except pa.ArrowException:
            raise Misuse(_no_type(name, array.type)) from None


def _numbered(columns: Mapping[str, pa.Array], length: int) -> pa.Table:
    return pa.table({**columns, ROW: pa.array(np.arange(length))})


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _array(value: Typed) -> pa.Array:
    """Maps and lists as structs and lists, or as JSON if their types differ from row to row."""
    if isinstance(value, Column):
        return value.values
    objects = plain(value, len(value))
    try:
        return pa.array(objects)
    except (pa.ArrowException, OverflowError):
        return pa.array([encoded(one).decode() for one in objects], pa.string())


def _schemaless(name: str, array: pa.Array, absent: Any) -> Node:
    """A column of a result. Where the key was absent and is null now, it is still absent."""
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pt.is_nested(array.type):
        return _nested(name, array, absent)
    if absent is not None:
        absent = absent & array.is_null().to_numpy(zero_copy_only=False)
    if array.type in _AS_THEY_ARE or pt.is_decimal(array.type):
        return Column(array, None, absent)
    if pt.is_date(array.type):
        array = array.cast(pa.timestamp("ms"))
    if pt.is_timestamp(array.type):
        return Column(array.cast(MOMENT, safe=False), None, absent)
    if array.type not in _PLAIN:
        raise Misuse(_no_type(name, array.type))
    try:
        return Column(array.cast(_PLAIN[array.type]), None, absent)
    except pa.ArrowInvalid:  # an unsigned number that is no Long
        return Column(array.cast(pa.decimal128(20, 0)), None, absent)


def _nested(name: str, array: pa.Array, absent: Any) -> Text:
    gone = np.zeros(len(array), np.bool_) if absent is None else absent
    texts = []
    for value, missing in zip(array.to_pylist(maps_as_pydicts="strict"), gone.tolist(), strict=True):
        try:
            texts.append(encoded({} if value is None and missing else {_WRAPPED: value}))
        except TypeError:
            raise Misuse(_no_type(name, array.type)) from None
    return Text(JsonSource(texts), (_WRAPPED,))


def _no_type(name: str, kind: pa.DataType) -> str:
    return f"its column '{name}' has the type {kind}, which records cannot hold; cast it"


def _schema_of(kind: pa.DataType) -> ConnectSchema | None:
    """Everything is optional, as Arrow's columns are; None: Connect has nothing for the type."""
    facts: dict[str, Any] = {"optional": True}
    if pt.is_dictionary(kind):
        return _schema_of(kind.value_type)
    if pt.is_decimal(kind) or pt.is_uint64(kind):
        return decimal(kind.scale if pt.is_decimal(kind) else 0, **facts)
    for applies, made in _LOGICAL:
        if applies(kind):
            return made(**facts)
    if pt.is_map(kind):
        key, value = _schema_of(kind.key_type), _schema_of(kind.item_type)
        return None if key is None or value is None else map_of(key, value, **facts)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        item = _schema_of(kind.value_type)
        return None if item is None else list_of(item, **facts)
    if pt.is_struct(kind):
        return _struct(kind)
    found = next((plain for applies, plain in _KINDS if applies(kind)), None)
    return None if found is None else ConnectSchema(found, **facts)


def _struct(kind: pa.StructType) -> ConnectSchema | None:
    fields = [(one.name, _schema_of(one.type)) for one in kind]
    if any(schema is None for _, schema in fields):
        return None
    return ConnectSchema(
        Kind.STRUCT, optional=True, fields=tuple(Field(name, one) for name, one in fields if one is not None)
    )


def _held(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """The values in the type that columns of the schema have; moments lose what is finer than a
    millisecond."""
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(schema.arrow_type, safe=False)
