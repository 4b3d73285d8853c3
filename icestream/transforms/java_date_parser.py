"""Reads one text as java.text.SimpleDateFormat does, with all its leniency. Used by `java_dates`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

import numpy as np

from icestream.transforms.java_calendar import moments
from icestream.transforms.java_date_days import Day, Found, day_of
from icestream.transforms.java_date_pattern import Token
from icestream.transforms.java_date_words import DAYS, ERAS, HALVES, MONTHS, ZONES, by_name

_NUMBER: Final = re.compile(r"(-?)(\d+)(?:E(-?\d+))?")
_OFFSET: Final = re.compile(r"([0-9])([0-9]?)(?:(:?)([0-5][0-9]))?")
_NAMES: Final[Mapping[str, Mapping[str, int]]] = {
    "G": by_name(ERAS, 0),
    "M": by_name(MONTHS, 1),
    "L": by_name(MONTHS, 1),
    "E": by_name(DAYS, 1),
    "a": by_name(HALVES, 0),
    "z": {name.lower(): offset for name, offset in ZONES.items()},
}
_MINUTE: Final = 60_000
_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1
_LEAST_LONG, _MOST_LONG = -(2**63), 2**63 - 1
_MANY_DIGITS: Final = 400
_PLAIN_DIGITS: Final = 9
_CENTURY_BEGAN: Final = 80
"""Years ago: two digits of a year mean one of the hundred from then on."""

Parsed = tuple[int, int, int, int]
"""Year, month, day and milliseconds of the day, each perhaps out of range."""


@dataclass(frozen=True)
class _Step:
    """One token: literal text, a number (with others right behind it, or not), a name or a zone."""

    token: Token
    is_number: bool
    abutting: bool


@dataclass(frozen=True)
class Parser:
    steps: tuple[_Step, ...]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Self:
        following = [*(token.is_number for token in tokens[1:]), False][: len(tokens)]
        return cls(
            tuple(
                _Step(token, token.is_number, abutting)
                for token, abutting in zip(tokens, following, strict=True)
            )
        )

    def parse(self, text: str) -> Parsed | None:
        """None: the text does not match. What follows a match does not matter."""
        found: Found = {}
        position = 0
        for step in self.steps:
            if step.token.letter:
                end = _read(text, position, step, found)
            else:
                literal = step.token.text
                end = position + len(literal) if text.startswith(literal, position) else None
            if end is None:
                return None
            position = end
        return _resolved(found) if position else None


def _read(text: str, start: int, step: _Step, found: Found) -> int | None:
    """Where the field ends."""
    at = start
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    if at == len(text):
        return None
    token = step.token
    if not step.is_number:
        read = _zone if token.letter in "zZX" else _name
        return read(text, start, at, token, found)
    if step.abutting and start + token.count > len(text):
        return None
    match = _NUMBER.match(text, at, start + token.count if step.abutting else len(text))
    if match is None:
        return None
    _put(found, token, _integer(match), match)
    return match.end()


def _integer(match: re.Match[str]) -> int:
    """As Java's `Number.intValue`: of a long the low bits, of what is no long the end of the range."""
    sign, digits, power = match.groups()
    if power is None and len(digits) <= _PLAIN_DIGITS:
        return -int(digits) if sign else int(digits)
    exponent = int((power or "0")[:_PLAIN_DIGITS])
    if len(digits) + abs(exponent) > _MANY_DIGITS:
        number = 0 if exponent < 0 or not int(digits[:_MANY_DIGITS]) else 10**_MANY_DIGITS
    else:
        number = int(digits) * 10**exponent if exponent >= 0 else int(digits) // 10**-exponent
    number = -number if sign else number
    if _LEAST_LONG <= number <= _MOST_LONG:
        return (number + 2**31) % 2**32 - 2**31
    return max(_LEAST_INT, min(_MOST_INT, number))


def _put(found: Found, token: Token, value: int, match: re.Match[str]) -> None:
    letter = token.letter
    if letter in "yY" and token.count <= 2 and match.end() - match.start() == 2 and match[0].isdecimal():
        value = _century(found, value)
    elif letter == "k":
        letter, value = "H", 0 if value == 24 else value
    elif letter == "h":
        letter, value = "K", 0 if value == 12 else value
    elif letter == "L":
        letter = "M"
    elif letter == "u":
        letter, value = "E", value % 7 + 1 if 1 <= value <= 7 else value
    _set(found, letter, value)


def _set(found: Found, letter: str, value: int) -> None:
    """The order in which fields were set last decides which of them count."""
    found.pop(letter, None)
    found[letter] = value


def _century(found: Found, value: int) -> int:
    first = datetime.now(UTC).year - _CENTURY_BEGAN
    if value == first % 100:
        found["ambiguous"] = 1
    return value + first // 100 * 100 + (100 if value < first % 100 else 0)


def _name(text: str, start: int, _at: int, token: Token, found: Found) -> int | None:
    best = _longest(text, start, _NAMES[token.letter])
    if best is None:
        return None
    _set(found, "M" if token.letter == "L" else token.letter, _NAMES[token.letter][best])
    return start + len(best)


def _longest(text: str, start: int, names: Mapping[str, int]) -> str | None:
    candidates = [name for name in names if text[start : start + len(name)].lower() == name]
    return max(candidates, key=len, default=None)


def _zone(text: str, start: int, at: int, token: Token, found: Found) -> int | None:
    if token.letter == "X":
        if text[at] == "Z":
            found["zone"] = 0
            return at + 1
        return _offset(text, at, found, colon=token.count == 3, digits=2, minutes=token.count > 1)
    if text[at] in "+-":
        return _offset(text, at, found, colon=False, digits=2)
    if text[start : start + 3].lower() == "gmt":
        if text[start + 3 : start + 4] in ("+", "-"):
            return _offset(text, start + 3, found, colon=True, digits=1)
        found["zone"] = 0
        return start + 3
    name = _longest(text, at, _NAMES["z"])
    if name is None:
        return None
    found["zone"] = _NAMES["z"][name]
    return at + len(name)


def _offset(
    text: str, at: int, found: Found, *, colon: bool, digits: int, minutes: bool = True
) -> int | None:
    """A zone such as +02:00: whether with a colon, with minutes, and how many digits hours have at least."""
    sign = {"+": 1, "-": -1}.get(text[at])
    match = _OFFSET.match(text, at + 1)
    if sign is None or match is None or len(match[1] + match[2]) < digits or int(match[1] + match[2]) > 23:
        return None
    hours = int(match[1] + match[2])
    if not minutes:
        found["zone"] = sign * hours * 60
        return match.end(2)
    if match[4] is None or bool(match[3]) != colon:
        return None
    found["zone"] = sign * (hours * 60 + int(match[4]))
    return match.end()


def _resolved(found: Found) -> Parsed:
    day = day_of(found)
    time = _hour(found) * 60 + found.get("m", 0) - found.get("zone", 0)
    milliseconds = time * _MINUTE + found.get("s", 0) * 1_000 + found.get("S", 0)
    if "ambiguous" in found and _before_the_century(day, milliseconds):
        day = day_of({**found, **{letter: found[letter] + 100 for letter in "yY" if letter in found}})
    return (*day, milliseconds)


def _before_the_century(day: Day, milliseconds: int) -> bool:
    now = datetime.now(UTC)
    first = (now.year - _CENTURY_BEGAN, now.month, now.day, (now.hour * 60 + now.minute) * _MINUTE)
    columns = np.array([(*day, milliseconds), first], np.int64).T
    then, start = moments(*columns).tolist()
    return bool(then < start)


def _hour(found: Found) -> int:
    """Of the day; hour and half day count if one of them was set after it."""
    order = list(found)
    halves = [order.index(letter) for letter in "Ka" if letter in found]
    if "H" in found and (len(halves) < 2 or order.index("H") > max(halves)):
        return found["H"]
    return found.get("K", 0) + 12 * found.get("a", 0)
