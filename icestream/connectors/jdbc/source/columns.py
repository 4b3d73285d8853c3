"""Columns of a table or query: how each is selected, in which Arrow type it is read, and as which Connect
type it is sent. The types are those that Confluent's connector gives them.

The databases (`databases/`) say what a column is (`Shape`); everything after that is alike for all.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icestream.api.errors import FatalError
from icestream.records.column import Column, struct_column
from icestream.records.schema import ConnectSchema, Field, Kind, array, date, decimal, time, timestamp

MOST_DIGITS: Final = 38
UNBOUND_SCALE: Final = 18
"""Digits behind the point of numbers whose column does not limit them."""
_NANOSECONDS: Final = 1000
_DAY_US: Final = 86_400_000_000


class Shape(Enum):
    """What a column holds."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    NUMERIC = "numeric"
    """Whose Connect type `numeric.mapping` chooses."""
    DECIMAL = "decimal"
    STRING = "string"
    BYTES = "bytes"
    HEX = "hex"
    """Bytes that arrive as hexadecimal digits."""
    DATE = "date"
    TIME = "time"
    WALL_CLOCK = "wall clock"
    """A timestamp without a time zone: one of `db.timezone`."""
    INSTANT = "instant"
    LIST = "list"
    """That arrives as JSON."""


WHOLE: Final = frozenset({Shape.INT8, Shape.INT16, Shape.INT32, Shape.INT64})
"""Whole numbers."""


@dataclass(frozen=True)
class TypeOptions:
    """What the config says about types."""

    numeric: str = "none"
    """none, precision_only, best_fit or best_fit_eager_double."""
    granularity: str = "connect_logical"
    zone: str = "UTC"


@dataclass(frozen=True)
class SourceColumn:
    name: str
    select: str
    """The expression that yields it."""
    shape: Shape
    schema: ConnectSchema
    raw: pa.DataType
    """In which it is read."""


_PLAIN: Final[Mapping[Shape, tuple[Kind, pa.DataType]]] = {
    Shape.BOOLEAN: (Kind.BOOLEAN, pa.bool_()),
    Shape.INT8: (Kind.INT8, pa.int8()),
    Shape.INT16: (Kind.INT16, pa.int16()),
    Shape.INT32: (Kind.INT32, pa.int32()),
    Shape.INT64: (Kind.INT64, pa.int64()),
    Shape.FLOAT32: (Kind.FLOAT32, pa.float32()),
    Shape.FLOAT64: (Kind.FLOAT64, pa.float64()),
    Shape.STRING: (Kind.STRING, pa.string()),
    Shape.BYTES: (Kind.BYTES, pa.binary()),
    Shape.HEX: (Kind.BYTES, pa.string()),
}


def source_column(
    name: str,
    select: str,
    shape: Shape,
    options: TypeOptions,
    *,
    optional: bool,
    precision: int | None = None,
    scale: int | None = None,
    item: Shape = Shape.STRING,
) -> SourceColumn:
    if shape is Shape.NUMERIC:
        shape = numeric_shape(options.numeric, precision, scale)
    if shape in _PLAIN:
        kind, raw = _PLAIN[shape]
        return SourceColumn(name, select, shape, ConnectSchema(kind, optional), raw)
    if shape is Shape.DECIMAL:
        digits = UNBOUND_SCALE if scale is None else scale
        # Arrow's CSV reader has no wider decimals; those come as text.
        is_wide = (precision or MOST_DIGITS + 1) > MOST_DIGITS or digits < 0
        raw = pa.string() if is_wide else pa.decimal128(MOST_DIGITS, digits)
        return SourceColumn(name, select, shape, decimal(digits, optional=optional), raw)
    if shape is Shape.DATE:
        return SourceColumn(name, select, shape, date(optional=optional), pa.date32())
    if shape is Shape.TIME:
        return SourceColumn(name, select, shape, time(optional=optional), pa.time64("us"))
    if shape is Shape.LIST:
        schema = array(ConnectSchema(_PLAIN[item][0], optional=True), optional=optional)
        return SourceColumn(name, select, shape, schema, pa.string())
    raw = pa.timestamp("us", "UTC" if shape is Shape.INSTANT else None)
    return SourceColumn(name, select, shape, _timestamp_schema(options.granularity, optional), raw)


def numeric_shape(mapping: str, precision: int | None, scale: int | None) -> Shape:
    """Of NUMERIC columns, by what the database says of their digits: Confluent's rules, except that a column
    without limits is never an INT8."""
    if mapping == "none" or precision is None:
        is_double = mapping in ("best_fit", "best_fit_eager_double")
        return Shape.FLOAT64 if is_double else Shape.DECIMAL
    whole = scale is None or scale < 1 if mapping != "precision_only" else not scale
    if whole:
        if precision > 18:
            return Shape.DECIMAL
        return next(shape for most, shape in _BY_DIGITS if precision <= most)
    if mapping == "best_fit_eager_double" or (mapping == "best_fit" and precision < 19):
        return Shape.FLOAT64
    return Shape.DECIMAL


_BY_DIGITS: Final = ((2, Shape.INT8), (4, Shape.INT16), (9, Shape.INT32), (18, Shape.INT64))


def _timestamp_schema(granularity: str, optional: bool) -> ConnectSchema:
    if granularity == "connect_logical":
        return timestamp(optional=optional)
    return ConnectSchema(Kind.INT64 if granularity.endswith("_long") else Kind.STRING, optional)


def value_schema(name: str | None, columns: Sequence[SourceColumn]) -> ConnectSchema:
    return ConnectSchema(
        Kind.STRUCT, name=name, fields=tuple(Field(column.name, column.schema) for column in columns)
    )


def values_of(
    schema: ConnectSchema, columns: Sequence[SourceColumn], rows: pa.RecordBatch, options: TypeOptions
) -> Column:
    """Rows as they were read, as values for the converters."""
    fields = []
    for place, column in enumerate(columns):
        try:
            fields.append(converted(rows.column(place), column, options))
        except (pa.ArrowInvalid, ValueError, OverflowError) as error:
            reason = str(error).splitlines()[0]
            raise FatalError(
                f"a value of column '{column.name}' cannot be sent as "
                f"{column.schema.name or column.schema.kind}: {reason}; leave the column out, or cast it "
                "in a 'query'"
            ) from error
    return struct_column(schema, fields)


def converted(values: pa.Array, column: SourceColumn, options: TypeOptions) -> pa.Array:
    kind = column.schema.arrow_type
    match column.shape:
        case Shape.WALL_CLOCK | Shape.INSTANT:
            return _timestamps(instants(values, options.zone), options.granularity)
        case Shape.HEX:
            digits = values.to_pylist()
            return pa.array([None if one is None else bytes.fromhex(one) for one in digits], kind)
        case Shape.LIST:
            texts = values.to_pylist()
            return pa.array([None if one is None else json.loads(one) for one in texts], kind)
        case Shape.TIME:
            return _times_of_day(values).cast(kind, safe=False)
        case _:
            return values if values.type == kind else values.cast(kind)


def _times_of_day(values: pa.Array) -> pa.Array:
    """As they are; MySQL's TIME may hold a duration below zero or of days, which no reader would take."""
    bounds = pc.min_max(values.cast(pa.int64()))
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if least is not None and (least < 0 or most >= _DAY_US):
        wrong = least if least < 0 else most
        sign = "-" if wrong < 0 else ""
        raise ValueError(f"{sign}{dt.timedelta(microseconds=abs(wrong))} is no time of day")
    return values


def instants(values: pa.Array, zone: str, nonexistent: str = "latest") -> pa.Array:
    """Timestamps of a wall clock, or with a zone, as such in UTC."""
    if values.type.tz is not None:
        return values
    if zone == "UTC":
        return values.cast(pa.timestamp(values.type.unit, "UTC"))
    zoned = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent=nonexistent)
    return zoned.cast(pa.timestamp(values.type.unit, "UTC"))


def _timestamps(values: pa.Array, granularity: str) -> pa.Array:
    if granularity == "connect_logical":
        return pc.floor_temporal(values, unit="millisecond").cast(pa.timestamp("ms", "UTC"))
    unit, _, form = granularity.partition("_")
    numbers = values.cast(pa.int64())
    if form == "iso_datetime_string":
        text = pc.strftime(values.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
        return pc.binary_join_element_wise(text, "000", "") if unit == "nanos" else text
    if unit == "nanos":
        numbers = pc.multiply_checked(numbers, _NANOSECONDS)
    return numbers if form == "long" else numbers.cast(pa.string())
