"""Values of one Java type as another, as Kafka Connect's Cast does it, on columns."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.column import Column
from icestream.records.records import Failure
from icestream.records.schema import ConnectSchema, Kind
from icestream.transforms.java_calendar import DAY
from icestream.transforms.java_dates import JavaDateFormat
from icestream.transforms.java_numbers import (
    over_distinct,
    parsed_integers,
    parsed_reals,
    printed_reals,
    saturated,
)
from icestream.transforms.refusals import Refused, values_failed
from icestream.transforms.timestamps import milliseconds

_INPUTS: Final = (
    Kind.INT8,
    Kind.INT16,
    Kind.INT32,
    Kind.INT64,
    Kind.FLOAT32,
    Kind.FLOAT64,
    Kind.BOOLEAN,
    Kind.STRING,
    Kind.BYTES,
)
_PLAIN_SCALE: Final = 6
"""A decimal of so many digits after the point is never written with an exponent."""
_TIME: Final = JavaDateFormat.of("HH:mm:ss.SSS'Z'")
_DATE: Final = JavaDateFormat.of("yyyy-MM-dd")
_TIMESTAMP: Final = JavaDateFormat.of("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")

Cast = tuple[pa.Array, Mapping[int, Failure]]


def cast_values(values: pa.Array, source: Kind, target: Kind) -> Cast:
    """The values in the Arrow type of a kind; what cannot be cast is null and has a failure."""
    kind = ConnectSchema(target).arrow_type
    if values.null_count == len(values):
        return pa.nulls(len(values), kind), {}
    if source not in _INPUTS:
        return _refused(values, kind, unsupported(source))
    if target is Kind.STRING:
        return printed(values), {}
    if pt.is_binary(values.type):
        return _refused(values, kind, "Unexpected type in Cast transformation: class [B")
    if pt.is_temporal(values.type):
        values = values.cast(pa.int64() if pt.is_timestamp(values.type) else pa.int32())
    if target is Kind.BOOLEAN:
        return _booleans(values), {}
    if pt.is_string(values.type):
        parse = parsed_integers if pt.is_integer(kind) else parsed_reals
        numbers, bad = parse(values, kind)
        return numbers, {row: _out_of_range(text) for row, text in bad.items()}
    return _numbers(values, kind), {}


def unsupported(source: Kind) -> str:
    supported = f"supported types are [{', '.join(_INPUTS)}]"
    return f"Cast transformation does not support casting from {source}; {supported}"


def _refused(values: pa.Array, kind: pa.DataType, reason: str) -> Cast:
    return pa.nulls(len(values), kind), values_failed(Column(values), Failure(reason))


def _out_of_range(text: str) -> Failure:
    return Failure(f"Value ({text}) was out of range for requested data type")


def _numbers(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pt.is_decimal(values.type):
        return _decimals(values, target)
    if pt.is_floating(values.type) and pt.is_integer(target):
        return saturated(values, target)
    return values.cast(target, safe=False)


def _decimals(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pt.is_floating(target):
        return printed(values).cast(target)
    longs, _ = over_distinct(values, _long, pa.int64())
    return longs.cast(target, safe=False)


def _long(value: Decimal) -> int:
    """The low 64 bits of the whole part."""
    return (int(value) + 2**63) % 2**64 - 2**63


def _booleans(values: pa.Array) -> pa.Array:
    if pt.is_boolean(values.type):
        return values
    if pt.is_string(values.type):
        return pc.equal(pc.ascii_lower(values), "true")
    return pc.not_equal(_numbers(values, pa.int64()), 0)


def printed(values: pa.Array) -> pa.Array:
    """As text."""
    kind = values.type
    if pt.is_string(kind):
        return values
    if pt.is_floating(kind):
        return printed_reals(values)
    if pt.is_binary(kind):
        return over_distinct(values, lambda data: base64.b64encode(data).decode(), pa.string())[0]
    if pt.is_temporal(kind):
        return _printed_dates(values)
    if pt.is_decimal(kind) and not 0 <= kind.scale <= _PLAIN_SCALE:
        return over_distinct(values, str, pa.string())[0]
    return values.cast(pa.string())


def _printed_dates(values: pa.Array) -> pa.Array:
    """A time of day until the second of January 1970, from then on a date at midnight or else a timestamp."""
    moments = milliseconds(values)
    numbers = moments.fill_null(0).to_numpy(zero_copy_only=False)
    midnight = pa.array(numbers % DAY == 0)
    later = pc.if_else(midnight, _DATE.format(moments), _TIMESTAMP.format(moments))
    return pc.if_else(pa.array(numbers < DAY), _TIME.format(moments), later)


def cast_one(value: Any, schema: ConnectSchema, target: Kind) -> Any:
    """A schema's default."""
    values, failed = cast_values(pa.array([value], schema.arrow_type), schema.kind, target)
    for failure in failed.values():
        raise Refused(failure.reason, failure.exception)
    return values[0].as_py()
