"""Columns of dates as text, in the letters of java.text.SimpleDateFormat, in UTC and English.

For the transforms that convert or route by timestamps, and for Cast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.rows import Indexes
from icestream.transforms.date_patterns import (
    DAY,
    HOUR,
    MINUTE,
    NAMES,
    SECOND,
    SHORT,
    ZONE_LETTERS,
    DateParser,
    Token,
    tokens,
)

_WIDEST_TABLE: Final = 20_000


def milliseconds(values: pa.Array) -> pa.Array:
    """Dates, times and timestamps as java.util.Date holds them: int64, milliseconds since 1970."""
    if pt.is_date(values.type):
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), DAY)
    if pt.is_time(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    return values.cast(pa.int64())


@dataclass(frozen=True)
class DateFormat:
    pattern: str
    _runs: tuple[_Run, ...]
    _parser: DateParser

    @classmethod
    def of(cls, pattern: str) -> Self:
        """Raises ValueError with what is wrong with the pattern."""
        found = tokens(pattern)
        return cls(pattern, _runs(found), DateParser.of(found))

    def format(self, values: pa.Array) -> pa.Array:
        """Milliseconds since 1970 (int64) as text."""
        if not len(values) or not self._runs:
            return pc.if_else(values.is_valid(), "", None)
        moments = values.fill_null(0).to_numpy(zero_copy_only=False)
        parts = [run.format(moments) for run in self._runs]
        text = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")
        return pc.if_else(values.is_valid(), text, None) if values.null_count else text

    def parse(self, texts: pa.Array) -> tuple[pa.Array, Sequence[int]]:
        """Text as milliseconds since 1970, and the positions of those that do not match the pattern."""
        return self._parser.parse(texts)


@dataclass(frozen=True, eq=False)
class _Fields:
    """What the calendar says of some moments."""

    days: Indexes
    time: Indexes
    """Milliseconds since midnight."""

    @functools.cached_property
    def months(self) -> Indexes:
        """Since January 1970."""
        return self.days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)

    @property
    def day(self) -> Indexes:
        first = self.months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        found: Indexes = self.days - first + 1
        return found

    @property
    def year(self) -> Indexes:
        """Before the first one, years count backwards from 1."""
        year = self.months // 12 + 1970
        return np.where(year > 0, year, 1 - year)


_NUMBERS: Final[Mapping[str, Callable[[_Fields], Indexes]]] = {
    "y": lambda of: of.year,
    "M": lambda of: of.months % 12 + 1,
    "d": lambda of: of.day,
    "H": lambda of: of.time // HOUR,
    "h": lambda of: (of.time // HOUR - 1) % 12 + 1,
    "m": lambda of: of.time // MINUTE % 60,
    "s": lambda of: of.time // SECOND % 60,
    "S": lambda of: of.time % SECOND,
}
_NAMED: Final[Mapping[str, Callable[[_Fields], Indexes]]] = {
    "M": lambda of: of.months % 12,
    "E": lambda of: (of.days + 4) % 7,  # the first of January 1970 was a Thursday
    "a": lambda of: of.time // (12 * HOUR),
}


@dataclass(frozen=True)
class _Run:
    """Fields that follow each other and say something of the day, of the time to the second, or of the
    milliseconds: few texts for many moments."""

    unit: int
    tokens: tuple[Token, ...]

    def format(self, moments: Indexes) -> pa.Array:
        within = moments if self.unit == DAY else moments % (DAY if self.unit == SECOND else SECOND)
        keys = within // self.unit
        low, high = int(keys.min()), int(keys.max())
        if high - low >= len(keys):
            return self._texts(keys * self.unit)
        return self._texts(np.arange(low, high + 1) * self.unit).take(pa.array(keys - low))

    def _texts(self, moments: Indexes) -> pa.Array:
        days = moments // DAY
        fields = _Fields(days, moments - days * DAY)
        parts = [_formatted(token, fields) if token.letter else token.text for token in self.tokens]
        if all(isinstance(part, str) for part in parts):
            return pa.repeat("".join(str(part) for part in parts), len(moments))
        return pc.binary_join_element_wise(*parts, "")


def _runs(found: Sequence[Token]) -> tuple[_Run, ...]:
    """Literal text and zones, which are always UTC, belong to the run before them."""
    grouped: list[tuple[int, list[Token]]] = []
    for token in found:
        unit = grouped[-1][0] if grouped else DAY
        if token.letter and token.letter not in ZONE_LETTERS:
            unit = 1 if token.letter == "S" else SECOND if token.letter in "Hhmsa" else DAY
        if grouped and grouped[-1][0] == unit:
            grouped[-1][1].append(token)
        else:
            grouped.append((unit, [token]))
    return tuple(_Run(unit, tuple(mine)) for unit, mine in grouped)


def _formatted(token: Token, fields: _Fields) -> pa.Array | str:
    if token.letter == "z":
        return "Coordinated Universal Time" if token.count > SHORT else "UTC"
    if token.letter in ZONE_LETTERS:
        return "+0000" if token.letter == "Z" else "Z"
    if token.is_number:
        return _digits(_NUMBERS[token.letter](fields), token)
    names = [name if token.count > SHORT else name[:SHORT] for name in NAMES[token.letter]]
    return pa.array(names).take(pa.array(_NAMED[token.letter](fields)))


def _digits(numbers: Indexes, token: Token) -> pa.Array:
    if token.letter == "y" and token.count == 2:
        numbers = numbers % 100
    if int(numbers.max()) > _WIDEST_TABLE:
        return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), token.count, "0")
    return _numerals(SECOND if numbers.max() < SECOND else _WIDEST_TABLE + 1, token.count).take(
        pa.array(numbers)
    )


@functools.lru_cache(maxsize=256)
def _numerals(many: int, width: int) -> pa.Array:
    return pa.array([f"{number:0{width}}" for number in range(many)])
