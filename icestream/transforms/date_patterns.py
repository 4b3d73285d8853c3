"""Patterns of java.text.SimpleDateFormat, cut into tokens, and columns of texts parsed by them, in UTC and
English. For `dates`.

The calendar is the Gregorian one for all times, as in ISO 8601; patterns with letters that are not in
`_LETTERS` are refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.records.rows import Flags, Indexes

DAY: Final = 86_400_000
HOUR, MINUTE, SECOND = 3_600_000, 60_000, 1_000
_LETTERS: Final = "yMdHhmsSaEzZX"
_REFUSED: Final = "GDFwWkKYuL"
"""Letters of Java's that we do not have."""
ZONE_LETTERS: Final = "zZX"
_PIECES: Final = re.compile(r"''|'((?:[^']|'')*)'|(([a-zA-Z])\3*)|([^a-zA-Z']+)|(')", re.DOTALL)
SHORT: Final = 3
"""Letters of a short name; so many letters of a pattern ask for the short name, and of a month for a name."""
_MONTHS: Final = "January February March April May June July August September October November December"
_DAYS: Final = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday"
NAMES: Final[Mapping[str, Sequence[str]]] = {
    "M": _MONTHS.split(),
    "E": _DAYS.split(),
    "a": ("AM", "PM"),
}
ZONES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("UTC", "GMT", "WET", "Coordinated Universal Time", "Greenwich Mean Time"), 0),
    "CET": 60,
    "CEST": 120,
    "EET": 120,
    "EEST": 180,
    "BST": 60,
    "MSK": 180,
    "JST": 540,
    "EST": -300,
    "EDT": -240,
    "CST": -360,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
}
"""Minutes east of Greenwich, of the zones that are common in logs."""
_OFFSET: Final = r"[-+](?:[01][0-9]|2[0-3])"
_ISO_ZONES: Final = (_OFFSET, f"{_OFFSET}[0-5][0-9]", f"{_OFFSET}:[0-5][0-9]")
_WIDTHS: Final[Mapping[str, Sequence[int]]] = {"X": (1, 3), "XX": (1, 5), "XXX": (1, 6), "Z": (5,), "z": (3,)}
"""How long zones usually are."""
_MOST_DIGITS: Final = 9
_CENTURY_BEGAN: Final = 80
"""Years ago: two digits of a year mean one of the hundred from then on."""
_MILLISECONDS: Final[Mapping[str, int]] = {
    "H": HOUR,
    "h": HOUR,
    "a": 12 * HOUR,
    "m": MINUTE,
    "s": SECOND,
    "S": 1,
    "zone": -MINUTE,
}
Codes = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


class UnsupportedLetter(ValueError):
    """A pattern that Java takes, and we do not."""


@dataclass(frozen=True)
class Token:
    """One field of a pattern, or literal text between fields (then there is no letter)."""

    letter: str
    count: int
    text: str = ""

    @property
    def meant(self) -> str:
        """All zones are one field: the last one counts."""
        return "zone" if self.letter in tuple(ZONE_LETTERS) else self.letter

    @property
    def is_number(self) -> bool:
        return self.letter in tuple("ydHhmsS") or (self.letter == "M" and self.count < SHORT)


def tokens(pattern: str) -> tuple[Token, ...]:
    """Raises ValueError, in the words of Java's IllegalArgumentException where Java refuses it too."""
    found: list[Token] = []
    for match in _PIECES.finditer(pattern):
        if match[2]:
            found.append(_field(match[3], len(match[2])))
        elif match[5]:
            raise ValueError("Unterminated quote")
        else:
            literal = "'" if match[0] == "''" else match[4] or (match[1] or "").replace("''", "'")
            if found and not found[-1].letter:
                literal = found.pop().text + literal
            found.append(Token("", 0, literal))
    return tuple(token for token in found if token.letter or token.text)


def _field(letter: str, count: int) -> Token:
    if letter in _REFUSED:
        known = ", ".join(_LETTERS)
        hint = "write y for the year" if letter == "Y" else f"only {known} can be used"
        raise UnsupportedLetter(f"The letter '{letter}' of SimpleDateFormat is not supported; {hint}")
    if letter not in _LETTERS:
        raise ValueError(f"Illegal pattern character '{letter}'")
    if letter == "X" and count > len(_ISO_ZONES):
        raise ValueError(f"invalid ISO 8601 format: length={count}")
    return Token(letter, count)


@dataclass(frozen=True)
class DateParser:
    _tokens: tuple[Token, ...]
    _layouts: tuple[_Layout, ...]
    """For texts in which every field has its usual width: the fast way."""

    @classmethod
    def of(cls, found: Sequence[Token]) -> Self:
        return cls(tuple(found), _layouts(found))

    def parse(self, texts: pa.Array) -> tuple[pa.Array, Sequence[int]]:
        """Text as milliseconds since 1970, and the positions of those that do not match the pattern. As in
        Java, what follows a match does not matter, and a field that is out of range counts on."""
        values, done = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
        for layout in self._layouts:
            layout.parse(texts, values, done)
        rest = np.flatnonzero(~done & texts.is_valid().to_numpy(zero_copy_only=False))
        bad: Sequence[int] = ()
        if len(rest):
            values[rest], done[rest] = self._parse_leniently(texts.take(pa.array(rest)))
            bad = rest[~done[rest]].tolist()
        return pa.array(values, pa.int64(), mask=None if done.all() else ~done), bad

    def _parse_leniently(self, texts: pa.Array) -> tuple[Indexes, Flags]:
        """Fields of any width. Milliseconds since 1970, and which texts match."""
        found = pc.extract_regex(texts, self._regex)
        fits: Flags = found.is_valid().to_numpy(zero_copy_only=False)
        fields = {}
        for token, parts in zip((one for one in self._tokens if one.letter), found.flatten(), strict=True):
            if token.is_number:
                numbers = parts.fill_null("0").cast(pa.int64()).to_numpy()
                short = pc.equal(pc.utf8_length(parts), 2).fill_null(False).to_numpy(zero_copy_only=False)
                fields[token.letter] = _years(numbers, short) if _may_be_short(token) else numbers
            else:
                fields[token.meant] = _meanings(parts.fill_null(""), token, fits)
        return _moments(fields, len(texts)), fits

    @functools.cached_property
    def _regex(self) -> str:
        following = [*(token.is_number for token in self._tokens[1:]), False]
        parts = [
            f"(?P<f{at}>{_field_regex(token, following[at])})" if token.letter else re.escape(token.text)
            for at, token in enumerate(self._tokens)
        ]
        pieces = [
            f"[ \t]*{part}" if token.is_number or token.meant == "zone" else part
            for token, part in zip(self._tokens, parts, strict=True)
        ]
        ends = "(?:[^0-9]|$)" if self._tokens and self._tokens[-1].is_number else ""
        return f"(?s)^{''.join(pieces)}{ends}"


def _field_regex(token: Token, before_number: bool) -> str:
    """A number right before another one has the width of the pattern, any other one what the text has."""
    if token.is_number:
        return f"[0-9]{{{token.count}}}" if before_number else f"[0-9]{{1,{_MOST_DIGITS}}}"
    if token.letter == "X":
        return f"Z|{_ISO_ZONES[token.count - 1]}"
    if token.letter in "zZ":
        names = "|".join(sorted(ZONES, key=len, reverse=True))
        return f"(?i:GMT[-+][0-9]{{1,2}}:[0-5][0-9]|{names}|{_ISO_ZONES[1]})"
    names = "|".join(NAMES[token.letter])
    return f"(?i:{names}|{'|'.join(name[:SHORT] for name in NAMES[token.letter])})"


def _may_be_short(token: Token) -> bool:
    return token.letter == "y" and token.count <= 2


def _years(numbers: Indexes, short: Flags) -> Indexes:
    first = datetime.now(UTC).year - _CENTURY_BEGAN
    return np.where(short, first + (numbers - first) % 100, numbers)


def _meanings(texts: pa.Array, token: Token, fits: Flags) -> Indexes:
    """The numbers that names and zones stand for; few texts for many rows."""
    encoded = texts.dictionary_encode()
    found = [_meaning(token, text) for text in encoded.dictionary.to_pylist()]
    codes = encoded.indices.to_numpy()
    fits &= np.fromiter((one is not None for one in found), np.bool_, len(found))[codes]
    numbers: Indexes = np.fromiter((one or 0 for one in found), np.int64, len(found))[codes]
    return numbers


def _meaning(token: Token, text: str) -> int | None:
    """A month from 1, a half of the day from 0, a zone in minutes; None if it is none of them."""
    if token.letter not in ZONE_LETTERS:
        short = [name[:SHORT].lower() for name in NAMES[token.letter]]
        low = text[:SHORT].lower()
        return short.index(low) + (token.letter != "a") if low in short else None
    if text == "Z":
        return 0
    if found := re.fullmatch(r"(?:GMT)?([-+])([0-9]{1,2}?):?([0-9]{2})?", text, re.IGNORECASE):
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        return -minutes if found[1] == "-" else minutes
    return next((east for name, east in ZONES.items() if name.lower() == text.lower()), None)


def _moments(fields: Mapping[str, Indexes], length: int) -> Indexes:
    """Whatever is out of range counts on."""
    time = np.zeros(length, np.int64)
    for letter, unit in _MILLISECONDS.items():
        if letter in fields and not (letter in "ha" and "H" in fields):
            values = fields[letter]
            time += (np.where(values == 12, 0, values) if letter == "h" else values) * unit
    months = (fields.get("y", 1970) - np.int64(1970)) * 12 + fields.get("M", 1) - 1
    first = np.asarray(months, "datetime64[M]").astype("datetime64[D]").astype(np.int64)
    found: Indexes = (first + fields.get("d", 1) - 1) * DAY + time
    return found


@dataclass(frozen=True)
class _Layout:
    """Where everything is in texts in which every field has its usual width."""

    width: int
    literal: Mapping[int, int]
    """Position → byte."""
    fields: Sequence[tuple[Token, int, int]]
    """With where each begins and ends."""

    def parse(self, texts: pa.Array, values: Indexes, done: Flags) -> None:
        """Puts milliseconds since 1970 into `values` of those texts that are written like this."""
        _, offsets, text = texts.buffers()
        if not len(texts) or text is None:
            return
        places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        bounds = places.astype(np.int64)
        letters = np.frombuffer(text, np.uint8)
        rows = np.flatnonzero(self._may_be(np.diff(bounds), bounds, letters) & ~done)
        if not len(rows):
            return
        if len(rows) == len(texts) and bounds[-1] - bounds[0] == len(texts) * self.width:
            codes = letters[bounds[0] : bounds[-1]].reshape(len(texts), self.width)
        else:
            codes = letters[bounds[rows][:, None] + np.arange(self.width)]
        values[rows], done[rows] = self._parse(codes)

    def _may_be(self, widths: Indexes, bounds: Indexes, letters: Codes) -> Flags:
        """Texts as long as this, or longer ones if this ends in a number that ends there."""
        same: Flags = np.equal(widths, self.width)
        longer = np.flatnonzero(widths > self.width)
        last = self.fields[-1]
        if len(longer) and last[0].is_number and last[2] == self.width:
            after = letters[bounds[longer] + self.width] - np.uint8(ord("0"))
            same[longer] = after > 9
        return same

    def _parse(self, codes: Codes) -> tuple[Indexes, Flags]:
        fits = np.ones(len(codes), np.bool_)
        for at, code in self.literal.items():
            fits &= codes[:, at] == code
        fields = {}
        for token, start, end in self.fields:
            part = codes[:, start:end]
            if token.is_number:
                fields[token.letter] = _digits_of(part, fits)
            else:
                padded = np.zeros((len(codes), 8), np.uint8)
                padded[:, : end - start] = part
                encoded = pa.array(padded.view(np.int64)[:, 0]).dictionary_encode()
                distinct = encoded.dictionary.to_numpy()
                texts = [one.tobytes().rstrip(b"\0").decode(errors="replace") for one in distinct]
                whole = [text if _is_whole(token, text) else "" for text in texts]
                named = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(whole, pa.string()))
                fields[token.meant] = _meanings(named, token, fits)
        return _moments(fields, len(codes)), fits


def _is_whole(token: Token, text: str) -> bool:
    return re.fullmatch(_field_regex(token, False), text) is not None


def _digits_of(codes: Codes, fits: Flags) -> Indexes:
    values = codes - np.uint8(ord("0"))
    number: Indexes = np.zeros(len(codes), np.int64)
    for at in range(codes.shape[1]):
        fits &= values[:, at] <= 9
        number = number * 10 + values[:, at]
    return number


def _layouts(found: Sequence[Token]) -> tuple[_Layout, ...]:
    """One for each usual width of its fields; none if the pattern has fields without one."""
    widths = [_usual(token, after) for token, after in zip(found, [*found[1:], None], strict=False)]
    letters = [token.letter for token in found if token.letter]
    if not letters or len(set(letters)) < len(letters):
        return ()
    return tuple(_layout(found, chosen) for chosen in product(*widths))


def _layout(found: Sequence[Token], widths: Sequence[int]) -> _Layout:
    at = 0
    literal: dict[int, int] = {}
    fields = []
    for token, width in zip(found, widths, strict=True):
        if token.letter:
            fields.append((token, at, at + width))
        else:
            literal.update(enumerate(token.text.encode(), at))
        at += width
    return _Layout(at, literal, fields)


def _usual(token: Token, after: Token | None) -> Sequence[int]:
    if not token.letter:
        return (len(token.text),) if token.text.isascii() else ()
    if token.letter in ZONE_LETTERS:
        return _WIDTHS.get(token.letter * token.count, ())
    if token.is_number:
        fixed = SHORT <= token.count <= _MOST_DIGITS if token.letter in "yS" else token.count == 2
        return (token.count,) if fixed else ()
    ends = after is None or (not after.letter and not after.text[0].isalpha())
    return (len(NAMES[token.letter][0][:SHORT]),) if ends else ()
