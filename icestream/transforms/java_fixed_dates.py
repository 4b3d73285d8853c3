"""Parses columns of dates whose fields all have the width that the pattern gives them: no leniency is asked
for. Used by `java_dates` before it looks at single texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.rows import Indexes
from icestream.transforms.java_calendar import moments
from icestream.transforms.java_date_pattern import Token

_MILLISECONDS: Final[Mapping[str, int]] = {"H": 3_600_000, "m": 60_000, "s": 1_000, "S": 1}
_MOST_DIGITS: Final = 9
_ZERO: Final = ord("0")
Codes = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


@dataclass(frozen=True)
class FixedDates:
    width: int
    literal: Mapping[int, int]
    """Position → character."""
    fields: Mapping[str, tuple[int, int]]
    """Letter → where it begins and ends."""

    @classmethod
    def of(cls, tokens: tuple[Token, ...]) -> Self | None:
        """None: the pattern has other fields, or such that have no width of their own."""
        position = 0
        literal: dict[int, int] = {}
        fields: dict[str, tuple[int, int]] = {}
        for token in tokens:
            text = "Z" if token.letter == "X" else token.text
            if text:
                if not text.isascii() or any(one.isdigit() or one == "E" for one in text):
                    return None
                literal.update(enumerate(text.encode(), position))
                position += len(text)
                continue
            if not _is_fixed(token) or token.letter in fields:
                return None
            fields[token.letter] = (position, position + token.count)
            position += token.count
        return cls(position, literal, fields) if fields else None

    def parse(self, texts: pa.Array) -> pa.Array | None:
        """None: some text does not look like this."""
        valid = texts.drop_null() if texts.null_count else texts
        codes = self._codes(valid)
        if codes is None or not all((codes[:, at] == code).all() for at, code in self.literal.items()):
            return None
        numbers: dict[str, Indexes] = {}
        for letter, (start, end) in self.fields.items():
            digits = codes[:, start:end] - _ZERO
            if (digits > 9).any():
                return None
            numbers[letter] = digits.astype(np.int64) @ (10 ** np.arange(end - start - 1, -1, -1))
        found = pa.array(self._moments(numbers, len(valid)), pa.int64())
        if valid is texts:
            return found
        here = texts.is_valid().to_numpy(zero_copy_only=False)
        return found.take(pa.array(np.cumsum(here) - 1, mask=~here))

    def _codes(self, texts: pa.Array) -> Codes | None:
        _, offsets, text = texts.buffers()
        if not len(texts) or text is None:
            return None
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        if (np.diff(bounds) != self.width).any():
            return None
        return np.frombuffer(text, np.uint8)[bounds[0] : bounds[-1]].reshape(len(texts), self.width)

    def _moments(self, numbers: Mapping[str, Indexes], length: int) -> Indexes:
        one = np.ones(length, np.int64)
        time = np.zeros(length, np.int64)
        for letter, unit in _MILLISECONDS.items():
            if letter in numbers:
                time += numbers[letter] * unit
        return moments(numbers.get("y", one * 1970), numbers.get("M", one), numbers.get("d", one), time)


def _is_fixed(token: Token) -> bool:
    if token.letter == "y":
        return 2 < token.count <= _MOST_DIGITS
    if token.letter == "S":
        return token.count <= _MOST_DIGITS
    return token.letter in "MdHms" and token.count == 2
