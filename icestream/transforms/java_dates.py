"""java.text.SimpleDateFormat in UTC and English: formats and parses columns of timestamps.

Used by the transforms that convert or route by timestamps, and by Cast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.records.rows import Flags, Indexes
from icestream.transforms.java_calendar import DAY, Fields, moments
from icestream.transforms.java_date_parser import Parser
from icestream.transforms.java_date_pattern import Token, tokens
from icestream.transforms.java_date_words import DAYS, ERAS, HALVES, MONTHS
from icestream.transforms.java_fixed_dates import Layout, layouts, parse_fixed

_HOUR, _MINUTE, _SECOND = 3_600_000, 60_000, 1_000
_SHORT: Final = 3
"""Letters of a short name; so many letters in a pattern ask for short names at most."""
_WIDEST_TABLE: Final = 20_000
_NUMBERS: Final[Mapping[str, Callable[[Fields], Indexes]]] = {
    "y": lambda of: np.where(of.year > 0, of.year, 1 - of.year),
    "Y": lambda of: of.week_date[0],
    "M": lambda of: of.month,
    "L": lambda of: of.month,
    "w": lambda of: of.week_date[1],
    "W": lambda of: of.week_of_month,
    "D": lambda of: of.day_of_year,
    "d": lambda of: of.day,
    "F": lambda of: (of.day - 1) // 7 + 1,
    "u": lambda of: (of.weekday - 1) % 7 + 1,
    "H": lambda of: of.time // _HOUR,
    "k": lambda of: (of.time // _HOUR - 1) % 24 + 1,
    "K": lambda of: of.time // _HOUR % 12,
    "h": lambda of: (of.time // _HOUR - 1) % 12 + 1,
    "m": lambda of: of.time // _MINUTE % 60,
    "s": lambda of: of.time // _SECOND % 60,
    "S": lambda of: of.time % _SECOND,
}
_NAMES: Final[Mapping[str, tuple[Callable[[Fields], Indexes], Sequence[str]]]] = {
    "G": (lambda of: (of.year > 0).astype(np.int64), ERAS),
    "M": (lambda of: of.month - 1, MONTHS),
    "L": (lambda of: of.month - 1, MONTHS),
    "E": (lambda of: of.weekday, DAYS),
    "a": (lambda of: of.time // (12 * _HOUR), HALVES),
}


@dataclass(frozen=True)
class Run:
    """Fields that follow each other and say something of the day, of the time to the second, or of the
    milliseconds: few texts for many moments."""

    unit: int
    tokens: tuple[Token, ...]

    def format(self, moments: Indexes) -> pa.Array:
        within = moments if self.unit == DAY else moments % (DAY if self.unit == _SECOND else _SECOND)
        keys = within // self.unit
        low, high = int(keys.min()), int(keys.max())
        if high - low >= len(keys):
            return self._texts(keys * self.unit)
        return self._texts(np.arange(low, high + 1) * self.unit).take(pa.array(keys - low))

    def _texts(self, moments: Indexes) -> pa.Array:
        fields = Fields.of(moments)
        parts = [_formatted(token, fields) if token.letter else token.text for token in self.tokens]
        if all(isinstance(part, str) for part in parts):
            return pa.repeat("".join(str(part) for part in parts), len(moments))
        return pc.binary_join_element_wise(*parts, "")


def runs(found: Sequence[Token]) -> tuple[Run, ...]:
    """Literal text and zones, which are always UTC, belong to the run before them."""
    grouped: list[tuple[int, list[Token]]] = []
    for token in found:
        unit = grouped[-1][0] if grouped else DAY
        if token.letter and token.letter not in "zZX":
            unit = 1 if token.letter == "S" else _SECOND if token.letter in "HkKhmsa" else DAY
        if grouped and grouped[-1][0] == unit:
            grouped[-1][1].append(token)
        else:
            grouped.append((unit, [token]))
    return tuple(Run(unit, tuple(mine)) for unit, mine in grouped)


@dataclass(frozen=True)
class JavaDateFormat:
    pattern: str
    _runs: tuple[Run, ...]
    _parser: Parser
    _layouts: Sequence[Layout]

    @classmethod
    def of(cls, pattern: str) -> Self:
        """Raises ValueError with the words of Java's IllegalArgumentException."""
        found = tokens(pattern)
        return cls(pattern, runs(found), Parser.of(found), layouts(found))

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
        values, done = parse_fixed(self._layouts, texts)
        rest = np.flatnonzero(~done & texts.is_valid().to_numpy(zero_copy_only=False))
        bad: Sequence[int] = ()
        if len(rest):
            values[rest], done[rest] = self._parsed(texts.take(pa.array(rest)))
            bad = rest[~done[rest]].tolist()
        return pa.array(values, pa.int64(), mask=None if done.all() else ~done), bad

    def _parsed(self, texts: pa.Array) -> tuple[Indexes, Flags]:
        """Each distinct text on its own, and which of them match."""
        encoded = texts.dictionary_encode()
        parsed = [self._parser.parse(text) for text in encoded.dictionary.to_pylist()]
        good = np.fromiter((one is not None for one in parsed), np.bool_, len(parsed))
        columns = np.array([one or (1970, 1, 1, 0) for one in parsed], np.int64).reshape(-1, 4)
        codes = encoded.indices.to_numpy()
        return moments(*columns.T)[codes], good[codes]


def _formatted(token: Token, fields: Fields) -> pa.Array | str:
    if token.letter in "zZX":
        return _zone(token)
    if token.is_number:
        return _digits(_NUMBERS[token.letter](fields), token)
    numbers, names = _NAMES[token.letter]
    short = token.count <= _SHORT and token.letter in "MLE"
    return pa.array([name[:_SHORT] if short else name for name in names]).take(pa.array(numbers(fields)))


def _zone(token: Token) -> str:
    if token.letter == "z":
        return "Coordinated Universal Time" if token.count > _SHORT else "UTC"
    return "+0000" if token.letter == "Z" else "Z"


def _digits(numbers: Indexes, token: Token) -> pa.Array:
    if token.letter in "yY" and token.count == 2:
        numbers = numbers % 100
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > _WIDEST_TABLE:
        digits = pc.utf8_lpad(pa.array(np.abs(numbers)).cast(pa.string()), token.count, "0")
        return pc.binary_join_element_wise(pc.if_else(pa.array(numbers < 0), "-", ""), digits, "")
    if low >= 0 and high < _SECOND:
        low, high = 0, _SECOND - 1
    return _numerals(low, high, token.count).take(pa.array(numbers - low))


@functools.lru_cache(maxsize=256)
def _numerals(low: int, high: int, width: int) -> pa.Array:
    return pa.array([f"{'-' * (number < 0)}{abs(number):0{width}}" for number in range(low, high + 1)])
