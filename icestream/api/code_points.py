"""Sets of characters as ranges of code points, with the names that Java's patterns have for some. For
`java_regex`, which writes them out for RE2."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Chars:
    """Ranges in ascending order, ends included, with gaps between them."""

    ranges: tuple[tuple[int, int], ...] = ()

    def __or__(self, other: Chars) -> Chars:
        return _merged([*self.ranges, *other.ranges])

    def __and__(self, other: Chars) -> Chars:
        return ~(~self | ~other)

    def __invert__(self) -> Chars:
        gaps, start = [], 0
        for low, high in self.ranges:
            if start < low:
                gaps.append((start, low - 1))
            start = high + 1
        if start <= sys.maxunicode:
            gaps.append((start, sys.maxunicode))
        return Chars(tuple(gaps))

    def in_both_cases(self) -> Chars:
        """With the other case of its letters; of ASCII only, as Java without UNICODE_CASE."""
        upper = [(low - 32, high - 32) for low, high in (self & _LOWER).ranges]
        lower = [(low + 32, high + 32) for low, high in (self & _UPPER).ranges]
        return _merged([*self.ranges, *upper, *lower])

    def pattern(self) -> str:
        """As a class of RE2."""
        if not self.ranges:
            return f"[^{_range(0, sys.maxunicode)}]"
        return f"[{''.join(_range(low, high) for low, high in self.ranges)}]"


def _merged(ranges: Iterable[tuple[int, int]]) -> Chars:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return Chars(tuple(joined))


def _range(low: int, high: int) -> str:
    return f"\\x{{{low:x}}}" if low == high else f"\\x{{{low:x}}}-\\x{{{high:x}}}"


def chars(*spans: str) -> Chars:
    """Each span is one character, or a first and a last one."""
    return _merged((ord(span[0]), ord(span[-1])) for span in spans)


_LOWER, _UPPER, _DIGIT = chars("az"), chars("AZ"), chars("09")
_ALPHA = _LOWER | _UPPER
_PUNCT = chars("!/", ":@", "[`", "{~")
_POSIX: Final[Mapping[str, Chars]] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": chars("\0\x7f"),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALPHA | _DIGIT,
    "Punct": _PUNCT,
    "Graph": _ALPHA | _DIGIT | _PUNCT,
    "Print": chars(" ~"),
    "Blank": chars(" ", "\t"),
    "Cntrl": chars("\0\x1f", "\x7f"),
    "XDigit": _DIGIT | chars("af", "AF"),
    "Space": chars(" ", "\t\r"),
}
_WORD = _ALPHA | _DIGIT | chars("_")
ESCAPES: Final[Mapping[str, Chars]] = {
    "d": _DIGIT,
    "w": _WORD,
    "s": _POSIX["Space"],
    "D": ~_DIGIT,
    "W": ~_WORD,
    "S": ~_POSIX["Space"],
}
"""What a backslash and the letter stand for."""
_BINARY: Final[Mapping[str, Callable[[str], bool]]] = {
    "alphabetic": str.isalpha,
    "letter": str.isalpha,
    "lowercase": str.islower,
    "uppercase": str.isupper,
    "digit": str.isdecimal,
    "white_space": str.isspace,
}
_ASCII: Final = [chr(point) for point in range(128)]


def named_class(name: str) -> Chars | None:
    r"""What `\p{name}` stands for, of ASCII only: names of topics have no other characters. None: we do not
    have it."""
    if name in _POSIX:
        return _POSIX[name]
    bare = name.removeprefix("Is")
    if bare != name and bare.lower() in _BINARY:
        return chars(*filter(_BINARY[bare.lower()], _ASCII))
    for prefix in ("general_category=", "gc="):
        bare = bare.removeprefix(prefix)
    found = [char for char in _ASCII if bare and unicodedata.category(char).startswith(bare)]
    return chars(*found) if found else None
