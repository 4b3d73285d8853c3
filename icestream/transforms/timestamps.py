"""Between the representations of a moment that TimestampConverter knows, on columns, as Java does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.records import Failure
from icestream.records.schema import MOMENT
from icestream.transforms.java_calendar import DAY
from icestream.transforms.java_dates import JavaDateFormat

NULL_POINTER: Final = "java.lang.NullPointerException"
_PER_SECOND: Final[Mapping[str, int]] = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}
_LEAST, _MOST = -(2**63), 2**63 - 1

Converted = tuple[pa.Array, Mapping[int, Failure]]


def milliseconds(values: pa.Array) -> pa.Array:
    """Dates, times and timestamps as java.util.Date holds them: int64, milliseconds since 1970."""
    if pt.is_date(values.type):
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), DAY)
    if pt.is_time(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    return values.cast(pa.int64())


def to_moments(values: pa.Array, format: JavaDateFormat | None, precision: str) -> Converted:
    """Text, Unix time or any java.util.Date as milliseconds since 1970."""
    if pt.is_string(values.type):
        return _parsed(values, format)
    if pt.is_integer(values.type):
        return _scaled(values, _PER_SECOND[precision], _PER_SECOND["milliseconds"]), {}
    return milliseconds(values), {}


def from_moments(moments: pa.Array, target: str, format: JavaDateFormat | None, precision: str) -> pa.Array:
    """As text or Unix time, or the same with only its date or its time of day left."""
    match target:
        case "string":
            assert format is not None
            return format.format(moments)
        case "unix":
            return _scaled(moments, _PER_SECOND["milliseconds"], _PER_SECOND[precision])
        case "Date":
            return pc.subtract(moments, _time_of_day(moments))
        case "Time":
            return _time_of_day(moments)
        case _:
            return moments


def held(moments: pa.Array, kind: pa.DataType) -> pa.Array:
    """Milliseconds since 1970 as dates, times of day or timestamps. A date beyond the range keeps the low
    bits of its day, as Java's `int` does."""
    if kind == MOMENT:
        return moments.cast(MOMENT)
    whole = pc.divide(moments, DAY) if pt.is_date(kind) else moments
    return whole.cast(pa.int32(), safe=False).cast(kind)


def _time_of_day(moments: pa.Array) -> pa.Array:
    numbers = moments.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(numbers % DAY, pa.int64(), mask=_nulls(moments))


def _scaled(values: pa.Array, per_second: int, wanted: int) -> pa.Array:
    """As java.util.concurrent.TimeUnit converts: cuts off towards zero, stops at the ends of the range."""
    if per_second >= wanted:
        return pc.divide(values, per_second // wanted)
    factor = wanted // per_second
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    most = _MOST // factor
    inside = np.clip(numbers, -most, most) * factor
    scaled = np.where(numbers > most, _MOST, np.where(numbers < -most, _LEAST, inside))
    return pa.array(scaled, pa.int64(), mask=_nulls(values))


def _nulls(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None


def _parsed(texts: pa.Array, format: JavaDateFormat | None) -> Converted:
    if format is None:
        rows = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False)).tolist()
        reason = 'Cannot invoke "java.text.SimpleDateFormat.parse(String)" because "config.format" is null'
        return pa.nulls(len(texts), pa.int64()), dict.fromkeys(rows, Failure(reason, NULL_POINTER))
    moments, bad = format.parse(texts)
    return moments, {row: _unparsable(texts[row].as_py(), format.pattern) for row in bad}


def _unparsable(text: str, pattern: str) -> Failure:
    return Failure(f"Could not parse timestamp: value ({text}) does not match pattern ({pattern})")
