"""Debezium's logical types: numbers and texts of a schema whose name says that they are more than that.

Called by `to_rows` before a column is cast: microseconds would be taken for milliseconds, which is what a
bare number in a timestamp column means to Java's table sinks. Where the table has a number or text, the
values stay as they are, as with the Java sink. Connect's own logical types are Arrow types already.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.schema import ConnectSchema, Kind
from icestream.rows.cast import entries_of, null_mask, offsets_of

_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
_VARIABLE_SCALE: Final = f"{_DATA}VariableScaleDecimal"
_DAY: Final = dt.timedelta(days=1)


@dataclass(frozen=True)
class _Logical:
    """What values of a name are held in, what they mean, and the type of a new column for them."""

    kind: Kind
    means: pa.DataType
    column: pa.DataType


_LOCAL: Final = pa.timestamp("us")
_CLOCK: Final = pa.time64("us")
# New columns for times of day are numbers, as the Java sink makes them: Spark reads no table that has a
# column of times, and what merges changes into tables is Spark.
_TYPES: Final[Mapping[str, _Logical]] = {
    f"{_TIME}Date": _Logical(Kind.INT32, pa.date32(), pa.date32()),
    f"{_TIME}Time": _Logical(Kind.INT32, pa.time32("ms"), pa.int32()),
    f"{_TIME}MicroTime": _Logical(Kind.INT64, pa.time64("us"), pa.int64()),
    f"{_TIME}NanoTime": _Logical(Kind.INT64, pa.time64("ns"), pa.int64()),
    f"{_TIME}Timestamp": _Logical(Kind.INT64, pa.timestamp("ms"), _LOCAL),
    f"{_TIME}MicroTimestamp": _Logical(Kind.INT64, pa.timestamp("us"), _LOCAL),
    f"{_TIME}NanoTimestamp": _Logical(Kind.INT64, pa.timestamp("ns"), _LOCAL),
    # Text that every column of its own type takes.
    f"{_TIME}ZonedTimestamp": _Logical(Kind.STRING, pa.string(), pa.timestamp("us", "UTC")),
    f"{_DATA}Uuid": _Logical(Kind.STRING, pa.string(), pa.uuid()),
    "uuid": _Logical(Kind.STRING, pa.string(), pa.uuid()),
    _VARIABLE_SCALE: _Logical(Kind.STRUCT, pa.string(), pa.string()),
}


def new_column_type(schema: ConnectSchema) -> pa.DataType | None:
    """The type of a new column, if the schema's name says one."""
    found = _of(schema)
    return None if found is None else found.column


def _of(schema: ConnectSchema) -> _Logical | None:
    found = _TYPES.get(schema.name or "")
    return found if found is not None and found.kind is schema.kind else None


@functools.lru_cache(maxsize=1000)
def has_logical_types(schema: ConnectSchema) -> bool:
    inside = [*(one.schema for one in schema.fields), *(one for one in (schema.key, schema.value) if one)]
    return _of(schema) is not None or any(map(has_logical_types, inside))


def meant(values: pa.Array, schema: ConnectSchema | None, kind: pa.DataType) -> pa.Array:
    """The values as what they mean, where a column of this type takes that."""
    if schema is None or not has_logical_types(schema):
        return values
    logical = _of(schema)
    if logical is not None:
        return _meant_here(values, logical, kind)
    if schema.kind is Kind.STRUCT and pt.is_struct(kind):
        return _in_struct(values, schema, kind)
    if schema.kind is Kind.ARRAY and pt.is_list(kind):
        return _in_items(values, lambda items: meant(items, schema.value, kind.value_type))
    if schema.kind is Kind.MAP and pt.is_map(kind):
        return _in_map(values, schema, kind)
    return values


def _meant_here(values: pa.Array, logical: _Logical, kind: pa.DataType) -> pa.Array:
    if logical.kind is Kind.STRUCT:
        return values if pt.is_struct(kind) else _decimal_texts(values)
    if pt.is_temporal(logical.means) and pt.is_temporal(kind):
        return _times(values, logical.means) if pt.is_time(logical.means) else _moments(values, logical.means)
    return values


def _moments(values: pa.Array, means: pa.DataType) -> pa.Array:
    found = pc.cast(values, means)
    # Tables have microseconds: what is finer is cut off.
    return pc.cast(found, _LOCAL, safe=False) if means == pa.timestamp("ns") else found


def _times(values: pa.Array, means: pa.DataType) -> pa.Array:
    """MySQL's TIME may be longer than a day, or negative: then no column of times takes it, and its text
    says why."""
    ticks = {"ms": 1000, "us": 1, "ns": 1}[means.unit]
    micros = pc.multiply(pc.cast(values, pa.int64()), ticks)
    micros = pc.divide(micros, 1000) if means.unit == "ns" else micros
    ends = pc.min_max(micros).as_py()
    if ends["min"] is None or (ends["min"] >= 0 and ends["max"] < _DAY // dt.timedelta(microseconds=1)):
        return pc.cast(micros, _CLOCK)
    return pa.array([None if one is None else _clock_text(one) for one in micros.to_pylist()], pa.string())


def _clock_text(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, second = divmod(seconds, 60)
    sign = "-" if micros < 0 else ""
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction:06}"


def _decimal_texts(values: pa.Array) -> pa.Array:
    """Structs of a scale and the digits, each with a scale of its own."""
    return pa.array([_decimal_text(value) for value in values.to_pylist()], pa.string())


def _decimal_text(value: Mapping[str, Any] | None) -> str | None:
    if value is None or value.get("value") is None:
        return None
    number = decimal.Decimal(int.from_bytes(value["value"], "big", signed=True))
    return f"{number.scaleb(-int(value.get('scale') or 0), decimal.Context(prec=1000)):f}"


def _in_struct(values: pa.Array, schema: ConnectSchema, kind: pa.StructType) -> pa.Array:
    columns, fields = values.flatten(), []
    for position, one in enumerate(schema.fields):
        at = kind.get_field_index(one.name)
        if at >= 0:
            columns[position] = meant(columns[position], one.schema, kind.field(at).type)
        fields.append(pa.field(one.name, columns[position].type))
    return pa.StructArray.from_arrays(columns, fields=fields, mask=null_mask(values))


def _in_items(values: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    return pa.ListArray.from_arrays(offsets_of(values), change(values.flatten()), mask=null_mask(values))


def _in_map(values: pa.Array, schema: ConnectSchema, kind: pa.MapType) -> pa.Array:
    offsets, keys, items = entries_of(values)
    keys, items = meant(keys, schema.key, kind.key_type), meant(items, schema.value, kind.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, mask=null_mask(values))
