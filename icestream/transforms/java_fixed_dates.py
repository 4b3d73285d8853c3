"""Parses those texts of a column that are written as the pattern says, every field in its usual width: no
leniency is asked for. Used by `java_dates` before it looks at the others one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.records.rows import Flags, Indexes
from icestream.transforms.java_calendar import moments
from icestream.transforms.java_date_pattern import Token
from icestream.transforms.java_date_words import DAYS, HALVES, MONTHS

_MILLISECONDS: Final[Mapping[str, int]] = {
    "H": 3_600_000,
    "h": 3_600_000,
    "a": 12 * 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "S": 1,
    "zone": -60_000,
}
_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "M": [name[:3] for name in MONTHS],
    "E": [name[:3] for name in DAYS],
    "a": HALVES,
}
_ZONES: Final[Mapping[str, Sequence[str]]] = {
    "X": ("Z", "+00"),
    "XX": ("Z", "+0000"),
    "XXX": ("Z", "+00:00"),
    "Z": ("+0000",),
    "z": ("UTC", "GMT"),
}
_MOST_DIGITS: Final = 9
_ZERO, _MINUS, _PLUS, _LOWER = ord("0"), ord("-"), ord("+"), 0x20
_GOES_ON: Final = np.array([code >= 0x80 or chr(code) in "0123456789E" for code in range(256)])
"""Which bytes may belong to the number before them."""
Codes = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


@dataclass(frozen=True)
class Layout:
    """Where everything is in texts of one width."""

    width: int = 0
    literal: Mapping[int, int] = field(default_factory=dict)
    """Position → character."""
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Letter → where it begins and ends."""
    names: Mapping[str, int] = field(default_factory=dict)
    """Letter → where it begins."""
    zone: tuple[int, str] | None = None
    """Where it begins, and one like it."""

    @property
    def ends_in_number(self) -> bool:
        return any(end == self.width for _, end in self.numbers.values())

    def with_text(self, text: str) -> Layout:
        literal = {**self.literal, **dict(enumerate(text.encode(), self.width))}
        return Layout(self.width + len(text), literal, self.numbers, self.names, self.zone)

    def with_number(self, letter: str, count: int) -> Layout:
        numbers = {**self.numbers, letter: (self.width, self.width + count)}
        return Layout(self.width + count, self.literal, numbers, self.names, self.zone)

    def with_name(self, letter: str) -> Layout:
        names = {**self.names, letter: self.width}
        return Layout(self.width + len(_NAMES[letter][0]), self.literal, self.numbers, names, self.zone)

    def with_zone(self, like: str) -> Layout:
        if like[0] != "+":
            return self.with_text(like)
        return Layout(self.width + len(like), self.literal, self.numbers, self.names, (self.width, like))

    def parse(self, codes: Codes) -> tuple[Indexes, Flags]:
        """Milliseconds since 1970, and which texts are written like this."""
        fits = np.ones(len(codes), np.bool_)
        for at, code in self.literal.items():
            fits &= codes[:, at] == code
        fields = {letter: _number(codes[:, start:end], fits) for letter, (start, end) in self.numbers.items()}
        for letter, start in self.names.items():
            fields[letter] = _name(codes[:, start:], letter, fits)
        if self.zone is not None:
            fields["zone"] = _offset(codes[:, self.zone[0] :], self.zone[1], fits)
        return _moments(fields, len(codes)), fits


def layouts(tokens: Sequence[Token]) -> list[Layout]:
    """One for each way in which a zone may be written; none for patterns with other fields, or with such
    that have no width of their own."""
    found = [Layout()]
    seen: set[str] = set()
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if not token.letter:
            if not token.text.isascii() or any(one.isdigit() or one == "E" for one in token.text):
                return []
            found = [one.with_text(token.text) for one in found]
        elif token.letter in seen:
            return []
        elif token.letter in "XZz":
            found = [
                one.with_zone(like) for one in found for like in _ZONES.get(token.letter * token.count, ())
            ]
        elif _is_fixed(token):
            found = [one.with_number(token.letter, token.count) for one in found]
        elif _is_name(token, after):
            found = [one.with_name(token.letter) for one in found]
        else:
            return []
        seen.add(token.letter)
    seen.discard("")
    return found if seen and not _need_rules(seen) else []


def _need_rules(letters: set[str]) -> bool:
    """Where it takes java.util.Calendar to know which of the fields count."""
    return ("E" in letters and "d" not in letters) or ("H" in letters and bool(letters & {"h", "a"}))


def parse_fixed(found: Sequence[Layout], texts: pa.Array) -> tuple[Indexes, Flags]:
    """Milliseconds since 1970, and which texts are written like one of the layouts; nulls are not."""
    values, done = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    _, offsets, text = texts.buffers()
    if not len(texts) or text is None:
        return values, done
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    widths = np.diff(bounds)
    letters = np.frombuffer(text, np.uint8)
    for layout in found:
        rows = np.flatnonzero(_may_be(layout, widths, bounds, letters) & ~done)
        if len(rows) == len(texts) and int(widths.max()) == layout.width:
            codes = letters[bounds[0] : bounds[-1]].reshape(len(texts), layout.width)
        else:
            codes = letters[bounds[rows][:, None] + np.arange(layout.width)]
        values[rows], done[rows] = layout.parse(codes)
    return values, done


def _may_be(layout: Layout, widths: Indexes, bounds: Indexes, letters: Codes) -> Flags:
    """Texts as long as the layout, or longer ones if the layout ends in a number that ends there: Java
    ignores what comes after."""
    same: Flags = np.equal(widths, layout.width)
    longer = np.flatnonzero(widths > layout.width)
    if len(longer) and layout.ends_in_number:
        same[longer] = ~_GOES_ON[letters[bounds[longer] + layout.width]]
    return same


def _is_fixed(token: Token) -> bool:
    if token.letter == "y":
        return 2 < token.count <= _MOST_DIGITS
    if token.letter == "S":
        return token.count <= _MOST_DIGITS
    return token.letter in "MdHhms" and token.count == 2


def _is_name(token: Token, after: Token | None) -> bool:
    """Short names that no letter follows, which could make them long ones."""
    ends = after is None or (not after.letter and not after.text[0].isalpha())
    return ends and not token.is_number and token.letter in _NAMES


def _number(digits: Codes, fits: Flags) -> Indexes:
    values = digits - np.uint8(_ZERO)
    number: Indexes = np.zeros(len(digits), np.int64)
    for at in range(digits.shape[1]):
        fits &= values[:, at] <= 9
        number = number * 10 + values[:, at]
    return number


def _name(codes: Codes, letter: str, fits: Flags) -> Indexes:
    """The number of a name, from 1 for months and weekdays, from 0 for halves of the day."""
    names = _NAMES[letter]
    wanted = np.array([_packed(np.frombuffer(name.encode(), np.uint8)[None, :])[0] for name in names])
    order = np.argsort(wanted)
    found = _packed(codes[:, : len(names[0])])
    places = np.searchsorted(wanted, found, sorter=order).clip(max=len(names) - 1)
    numbers: Indexes = order[places]
    fits &= wanted[numbers] == found
    return numbers + (letter != "a")


def _packed(codes: Codes) -> Indexes:
    """The letters of a name as one number, whether they are capitals or not."""
    packed: Indexes = np.zeros(len(codes), np.int64)
    for at in range(codes.shape[1]):
        packed = packed << 8 | (codes[:, at] | _LOWER)
    return packed


def _offset(codes: Codes, like: str, fits: Flags) -> Indexes:
    """Minutes east of Greenwich."""
    signs = codes[:, 0]
    fits &= (signs == _PLUS) | (signs == _MINUS)
    hours = _number(codes[:, 1:3], fits)
    fits &= hours <= 23
    minutes = np.zeros(len(codes), np.int64)
    if len(like) > 3:
        minutes = _number(codes[:, len(like) - 2 : len(like)], fits)
        fits &= minutes <= 59
    if ":" in like:
        fits &= codes[:, 3] == ord(":")
    east: Indexes = (hours * 60 + minutes) * np.where(signs == _MINUS, -1, 1)
    return east


def _moments(fields: Mapping[str, Indexes], length: int) -> Indexes:
    time = np.zeros(length, np.int64)
    for letter, unit in _MILLISECONDS.items():
        if letter in fields:
            values = fields[letter]
            time += (np.where(values == 12, 0, values) if letter == "h" else values) * unit
    one = np.ones(length, np.int64)
    return moments(fields.get("y", one * 1970), fields.get("M", one), fields.get("d", one), time)
