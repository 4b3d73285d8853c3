"""`InsertHeader`: the same header for all records, its value read from a literal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, nulls
from icestream.records.records import Applied, Header, Records
from icestream.records.schema import STRING, ConnectSchema, Kind, date, decimal, time, timestamp
from icestream.transforms.date_patterns import DAY
from icestream.transforms.dates import DateFormat
from icestream.transforms.failures import invalid_setting
from icestream.transforms.groups import Side

_LITERAL: Final = "value.literal"
_DATES: Final[Mapping[int, tuple[ConnectSchema, str]]] = {
    10: (date(), "yyyy-MM-dd"),
    13: (time(), "HH:mm:ss.SSS'Z'"),
    24: (timestamp(), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
}
"""By the length of the text."""
_NUMBER: Final = re.compile(r"(?=[0-9+-])[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LIST_OR_MAP: Final = re.compile(r"\s*[\[{]")
_CUT_OFF: Final = re.compile(rf"\s*([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{_NUMBER.pattern})\s*[:,{{}}\[\]\"]")
_MOST_DIGITS: Final = 76
_INTEGERS: Final = ((Kind.INT8, 7), (Kind.INT16, 15), (Kind.INT32, 31), (Kind.INT64, 63))
_SPACES: Final = "".join(map(chr, range(33)))
"""What Java's String.trim takes off."""


@dataclass(frozen=True)
class InsertHeader:
    name: str
    value: Column
    """One row."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(settings["header"], read_literal(settings[_LITERAL]))

    def apply(self, records: Records) -> Applied:
        values = self.value.take(np.zeros(len(records), np.int64))
        return Applied([replace(records, headers=(*records.headers, Header(self.name, values)))])


def read_literal(text: str) -> Column:
    """A literal as Java's `Values.parseString` reads it: null, a boolean, a number, a date, a time, a
    timestamp, or else the string that it is. Raises ConfigError for those that Java would read as a list or
    map, or as a number or date with the rest of the text cut off."""
    word = text.strip(_SPACES)
    if word == "null":
        return nulls(1)
    if word in ("true", "false"):
        return _column(ConnectSchema(Kind.BOOLEAN), word == "true")
    if found := _date(word):
        return found
    if _NUMBER.fullmatch(word):
        return _number(word)
    if _LIST_OR_MAP.match(text):
        raise invalid_setting(_LITERAL, text[:80], "Lists and maps cannot be headers; write another text")
    if _CUT_OFF.match(text):
        reason = "Kafka Connect would read only the number or date that it begins with; write another text"
        raise invalid_setting(_LITERAL, text[:80], reason)
    return _column(STRING, text)


def _column(schema: ConnectSchema, value: Any) -> Column:
    return Column(pa.array([value], schema.arrow_type), schema)


def _date(text: str) -> Column | None:
    text = text.replace("\\:", ":")
    if len(text) not in _DATES or not text[0].isdecimal():
        return None
    schema, pattern = _DATES[len(text)]
    moments, failed = DateFormat.of(pattern).parse(pa.array([text]))
    if failed:
        return None
    millis = moments[0].as_py()
    return _column(schema, millis // DAY if len(text) == 10 else millis)


def _number(text: str) -> Column:
    """The narrowest integer that holds it, else a float, else a double, else a decimal."""
    number = Decimal(text)
    if number == number.to_integral_value() and number.adjusted() < 20:
        whole = int(number)
        for kind, bits in _INTEGERS:
            if -(2**bits) <= whole < 2**bits:
                return _column(ConnectSchema(kind), whole)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    with np.errstate(over="ignore"):
        single = float(np.float32(float(number)))
    for kind, value in ((Kind.FLOAT32, single), (Kind.FLOAT64, float(number))):
        if np.isfinite(value) and exponent:
            return _column(ConnectSchema(kind), value)
    if len(number.as_tuple().digits) > _MOST_DIGITS or abs(exponent) > _MOST_DIGITS:
        raise invalid_setting(_LITERAL, text[:80], f"Numbers have at most {_MOST_DIGITS} digits")
    return _column(decimal(-exponent), number)
