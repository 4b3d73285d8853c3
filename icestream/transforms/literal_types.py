"""Which types Connect finds in literals, which type several of them have in common, and what they are in it.
For `literals`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.records.schema import (
    DATE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    Kind,
    date,
    decimal,
    time,
    timestamp,
)
from icestream.transforms.java_dates import JavaDateFormat

BOOLEAN: Final = ConnectSchema(Kind.BOOLEAN)
_INTEGERS: Final = ((Kind.INT8, 7), (Kind.INT16, 15), (Kind.INT32, 31), (Kind.INT64, 63))
_WIDER: Final = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64)
_NUMBER: Final = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DAY: Final = 86_400_000
_PATTERNS: Final[Mapping[int, tuple[ConnectSchema, str]]] = {
    10: (date(), "yyyy-MM-dd"),
    13: (time(), "HH:mm:ss.SSS'Z'"),
    24: (timestamp(), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
}
"""By the length of the text."""


class Mismatch(ValueError):
    """A value has no place in the type that the others have."""


@dataclass(frozen=True)
class Moment:
    """A `java.util.Date`."""

    millis: int


def as_moment(text: str) -> tuple[ConnectSchema, Moment] | None:
    """A date, time or timestamp, if the text is one; its colons may be escaped."""
    text = text.replace("\\:", ":")
    if len(text) not in _PATTERNS:
        return None
    schema, pattern = _PATTERNS[len(text)]
    millis, failed = _date_format(pattern).parse(pa.array([text]))
    return None if failed else (schema, Moment(millis[0].as_py()))


@functools.cache
def _date_format(pattern: str) -> JavaDateFormat:
    return JavaDateFormat.of(pattern)


def as_number(text: str) -> tuple[ConnectSchema, Any] | None:
    """The narrowest integer that holds it, else a float, else a double, else a decimal."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    if number == number.to_integral_value():
        # An exponent can ask for more digits than there is memory.
        kind = _narrowest(int(number)) if number.adjusted() < 20 else None
        if kind is not None:
            return ConnectSchema(kind), int(number)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    for kind, value in ((Kind.FLOAT32, _single(float(number))), (Kind.FLOAT64, float(number))):
        if np.isfinite(value) and exponent:
            return ConnectSchema(kind), value
    return decimal(-exponent), number


def _narrowest(number: int) -> Kind | None:
    return next((kind for kind, bits in _INTEGERS if -(2**bits) <= number < 2**bits), None)


def _single(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


@dataclass
class Merger:
    """The type that some values have in common."""

    schema: ConnectSchema | None = None
    """None: there was no type yet, or there is none in common."""
    _given_up: bool = False

    def add(self, schema: ConnectSchema | None) -> None:
        if schema is None or self._given_up:
            return
        self.schema = schema if self.schema is None else _common(self.schema, schema)
        self._given_up = self.schema is None


def _common(first: ConnectSchema, second: ConnectSchema) -> ConnectSchema | None:
    if first.kind is second.kind:
        return second
    if first.kind not in _WIDER or second.kind not in _WIDER:
        return None
    return max(first, second, key=lambda schema: _WIDER.index(schema.kind))


def aligned(schema: ConnectSchema, value: Any) -> Any:
    """A value in the type that it has in common with others."""
    if value is None:
        raise Mismatch
    if schema.name in (DATE, TIME, TIMESTAMP):
        return value if isinstance(value, Moment) else Moment(value * (_DAY if schema.name == DATE else 1))
    if isinstance(value, Moment):
        raise Mismatch
    if schema.kind is Kind.FLOAT32:
        return _single(float(value))
    if schema.kind is Kind.FLOAT64:
        return float(value)
    return value


def arrow_value(schema: ConnectSchema | None, value: Any) -> Any:
    """As Arrow takes it for the type of the schema."""
    if isinstance(value, Moment):
        return value.millis // _DAY if schema is not None and schema.name == DATE else value.millis
    if schema is None or value is None:
        return value
    if schema.kind is Kind.ARRAY:
        return [arrow_value(schema.value, one) for one in value]
    if schema.kind is Kind.MAP:
        return [(arrow_value(schema.key, key), arrow_value(schema.value, one)) for key, one in value]
    return value
