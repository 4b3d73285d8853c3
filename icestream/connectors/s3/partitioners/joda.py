"""Patterns of Joda-Time's DateTimeFormat, as `path.format` has them, and the texts that they print.

Joda is not Java: `Y` is the year of the era, `x` the week year, `S` a fraction of a second, `e` a weekday.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from icestream.connectors.s3.partitioners.civil import Moment
from icestream.connectors.s3.zones import Zone, shown_offset

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SHORT: Final = 3
_FULL_FROM: Final = 4
"""As many letters ask for a whole name."""
_TEXTS: Final = frozenset("EaG")
_ENGLISH: Final = "en"
_REGIONS: Final = frozenset(("us", "gb"))
"""Which are often given for a language, and are none."""


def names_in_full(locale: str) -> bool:
    """Whether the locale is English. Java takes the whole text for a language, so it knows no `en-US`, and
    prints short names for all that it does not know. ValueError for languages that are not known here."""
    language = locale.lower()
    if language == _ENGLISH:
        return True
    if language.isalpha() and len(language) in (2, 3) and language not in _REGIONS:
        raise ValueError(f"names of days and months in the language '{locale}' are not known here; use en")
    return False


@dataclass(frozen=True)
class _Printed:
    moment: Moment
    offset_ms: int
    zone: Zone
    in_full: bool


_Show = Callable[[_Printed, int], str]
"""Prints a field; told how many letters the pattern has for it."""


def _number(of: Callable[[Moment], int]) -> _Show:
    return lambda printed, letters: _padded(of(printed.moment), letters)


def _padded(value: int, width: int) -> str:
    return f"-{str(-value).zfill(width)}" if value < 0 else str(value).zfill(width)


def _year(of: Callable[[Moment], int], short: Callable[[Moment], int] | None = None) -> _Show:
    def shown(printed: _Printed, letters: int) -> str:
        if letters == 2:
            return f"{abs((short or of)(printed.moment)) % 100:02}"
        return _padded(of(printed.moment), letters)

    return shown


def _year_of_era(moment: Moment) -> int:
    return moment.year if moment.year > 0 else 1 - moment.year


def _month(printed: _Printed, letters: int) -> str:
    if letters < _SHORT:
        return _padded(printed.moment.month, letters)
    return _named(_MONTHS[printed.moment.month - 1], printed, letters)


def _weekday(printed: _Printed, letters: int) -> str:
    return _named(_DAYS[printed.moment.weekday - 1], printed, letters)


def _named(name: str, printed: _Printed, letters: int) -> str:
    return name if letters >= _FULL_FROM and printed.in_full else name[:_SHORT]


def _era(printed: _Printed, letters: int) -> str:
    names = ("BC", "AD") if printed.in_full else ("BCE", "CE")
    return names[printed.moment.year > 0]


def _fraction(printed: _Printed, letters: int) -> str:
    return f"{printed.moment.milliseconds % 1000:03}".ljust(letters, "0")[:letters]


def _offset(printed: _Printed, letters: int) -> str:
    if letters > 2:
        return printed.zone.id
    return shown_offset(printed.offset_ms, colons=letters == 2)


_FIELDS: Final[Mapping[str, _Show]] = {
    "G": _era,
    "C": _number(lambda moment: _year_of_era(moment) // 100),
    "Y": _year(_year_of_era, lambda moment: moment.year),
    "y": _year(lambda moment: moment.year),
    "x": _year(lambda moment: moment.week_year),
    "w": _number(lambda moment: moment.week),
    "e": _number(lambda moment: moment.weekday),
    "E": _weekday,
    "D": _number(lambda moment: moment.day_of_year),
    "M": _month,
    "d": _number(lambda moment: moment.day),
    "a": lambda printed, letters: "AM" if printed.moment.hour < 12 else "PM",
    "K": _number(lambda moment: moment.hour % 12),
    "h": _number(lambda moment: (moment.hour - 1) % 12 + 1),
    "H": _number(lambda moment: moment.hour),
    "k": _number(lambda moment: (moment.hour - 1) % 24 + 1),
    "m": _number(lambda moment: moment.milliseconds // 60_000 % 60),
    "s": _number(lambda moment: moment.milliseconds // 1000 % 60),
    "S": _fraction,
    "Z": _offset,
}


@dataclass(frozen=True)
class JodaPattern:
    """A pattern in its parts: a letter and how often it stands there, or text with 0."""

    parts: tuple[tuple[str, int], ...]
    in_full: bool = True
    """Whether names are English; else those of a language that Java does not know."""

    @classmethod
    def parsed(cls, pattern: str, locale: str = _ENGLISH) -> JodaPattern:
        """ValueError says what is wrong."""
        parts: list[tuple[str, int]] = []
        at = 0
        while at < len(pattern):
            letter = pattern[at]
            if _is_letter(letter):
                end = at
                while end < len(pattern) and pattern[end] == letter:
                    end += 1
                if letter == "z":
                    raise ValueError("names of time zones (z) are not printed here; use Z, ZZ or ZZZ")
                if letter not in _FIELDS:
                    raise ValueError(
                        f"Illegal pattern component: {pattern[at:end]}; words stand in quotation marks, "
                        "such as 'year'=YYYY"
                    )
                parts.append((letter, end - at))
                at = end
            else:
                text, at = _literal(pattern, at)
                parts.append((text, 0))
        has_names = any(
            count and (letter in _TEXTS or (letter == "M" and count >= _SHORT)) for letter, count in parts
        )
        return cls(tuple(parts), names_in_full(locale) if has_names else True)

    def printed(self, moment_ms: int, zone: Zone) -> str:
        offset = int(zone.offsets(np.array([moment_ms], np.int64))[0])
        printed = _Printed(Moment.at(moment_ms + offset), offset, zone, self.in_full)
        return "".join(_FIELDS[part](printed, count) if count else part for part, count in self.parts)


def _is_letter(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _literal(pattern: str, at: int) -> tuple[str, int]:
    """Text from a place on, and where it ends: letters are text between quotation marks only."""
    text: list[str] = []
    quoted = False
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            if pattern[at + 1 : at + 2] == "'":
                text.append(letter)
                at += 1
            else:
                quoted = not quoted
        elif not quoted and _is_letter(letter):
            break
        else:
            text.append(letter)
        at += 1
    return "".join(text), at
