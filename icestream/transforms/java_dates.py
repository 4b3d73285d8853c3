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

from icestream.records.rows import Indexes
from icestream.transforms.java_calendar import Fields, moments
from icestream.transforms.java_date_parser import Parser
from icestream.transforms.java_date_pattern import Token, tokens
from icestream.transforms.java_date_words import DAYS, ERAS, HALVES, MONTHS
from icestream.transforms.java_fixed_dates import FixedDates

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
class JavaDateFormat:
    pattern: str
    _tokens: tuple[Token, ...]
    _parser: Parser
    _fixed: FixedDates | None

    @classmethod
    def of(cls, pattern: str) -> Self:
        """Raises ValueError with the words of Java's IllegalArgumentException."""
        found = tokens(pattern)
        return cls(pattern, found, Parser(found), FixedDates.of(found))

    def format(self, values: pa.Array) -> pa.Array:
        """Milliseconds since 1970 (int64) as text."""
        fields = Fields.of(values.fill_null(0).to_numpy(zero_copy_only=False))
        parts = [token.text if not token.letter else _formatted(token, fields) for token in self._tokens]
        if not parts or all(isinstance(part, str) for part in parts):
            text = pa.repeat("".join(str(part) for part in parts), len(values))
        else:
            text = pc.binary_join_element_wise(*parts, "")
        return pc.if_else(values.is_valid(), text, None) if values.null_count else text

    def parse(self, texts: pa.Array) -> tuple[pa.Array, Sequence[int]]:
        """Text as milliseconds since 1970, and the positions of those that do not match the pattern."""
        if self._fixed is not None and (found := self._fixed.parse(texts)) is not None:
            return found, ()
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        parsed = [self._parser.parse(text) for text in distinct]
        good = np.fromiter((one is not None for one in parsed), np.bool_, len(parsed))
        columns = np.array([one or (1970, 1, 1, 0) for one in parsed], np.int64).reshape(-1, 4)
        values = pa.array(moments(*columns.T), pa.int64(), mask=~good).take(encoded.indices)
        if good.all():
            return values, ()
        bad = values.is_null().to_numpy(zero_copy_only=False) & texts.is_valid().to_numpy(
            zero_copy_only=False
        )
        return values, np.flatnonzero(bad).tolist()


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
    if not len(numbers):
        return pa.array([], pa.string())
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
