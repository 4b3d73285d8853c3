"""Connect's schemas for Arrow types: what a user's function returns for records that carry a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.records.schema import ConnectSchema, Field, Kind, array, date, decimal, map_of, time, timestamp

_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], Kind], ...]] = (
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


def schema_of(kind: pa.DataType) -> ConnectSchema | None:
    """Everything is optional, as Arrow's columns are; None: Connect has nothing for the type."""
    facts: dict[str, Any] = {"optional": True}
    if pt.is_dictionary(kind):
        return schema_of(kind.value_type)
    if pt.is_decimal(kind) or pt.is_uint64(kind):
        return decimal(kind.scale if pt.is_decimal(kind) else 0, **facts)
    for applies, made in _LOGICAL:
        if applies(kind):
            return made(**facts)
    if pt.is_map(kind):
        key, value = schema_of(kind.key_type), schema_of(kind.item_type)
        return None if key is None or value is None else map_of(key, value, **facts)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        item = schema_of(kind.value_type)
        return None if item is None else array(item, **facts)
    if pt.is_struct(kind):
        return _struct(kind)
    found = next((plain for applies, plain in _PLAIN if applies(kind)), None)
    return None if found is None else ConnectSchema(found, **facts)


def _struct(kind: pa.StructType) -> ConnectSchema | None:
    fields = [(one.name, schema_of(one.type)) for one in kind]
    if any(schema is None for _, schema in fields):
        return None
    return ConnectSchema(
        Kind.STRUCT, optional=True, fields=tuple(Field(name, one) for name, one in fields if one is not None)
    )


def held(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """The values in the type that columns of the schema have; moments lose what is finer than a
    millisecond."""
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(schema.arrow_type, safe=False)
