"""Java's regular expressions in Python's terms. For RegexRouter, and for predicates and
settings that have a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.transforms.code_points import ESCAPES, Chars, chars, named_class

_TERMINATORS: Final = chars("\n", "\r", "\x85", "\u2028\u2029")
_LAST_LINE_END: Final = rf"(?=(?:\r\n|{_TERMINATORS.pattern()})?\Z)"
_PLAIN_ESCAPES: Final[Mapping[str, str]] = {
    "b": r"\b",
    "B": r"\B",
    "A": r"\A",
    "z": r"\Z",
    "Z": _LAST_LINE_END,
    "R": rf"(?:\r\n|{ESCAPES['v'].pattern()})",
}
_CONTROLS: Final[Mapping[str, str]] = {
    "t": "\t",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    "a": "\a",
    "e": "\x1b",
}
_REPETITION: Final = re.compile(r"\{\d+(,\d*)?\}")
_OPENINGS: Final = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_NAMED: Final = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_HEX: Final = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL: Final = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_GROUP_NAME: Final = re.compile(r"k<([a-zA-Z][a-zA-Z0-9]*)>")
_PROPERTY: Final = re.compile(r"[pP](?:\{([^}]*)\}|(.))")


class JavaRegexError(ValueError):
    """The pattern is no pattern in Java, or one that Python has nothing for."""


def java_pattern(text: str) -> re.Pattern[str]:
    """A pattern that matches what Java's does, with `fullmatch` for Java's `matches`."""
    translated = _Translation(text).whole()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise JavaRegexError(f"the pattern '{text}' cannot be used: {error}") from None


@dataclass
class _Level:
    """An open group: which flags are on in it, and what was opened for flags in its middle."""

    flags: frozenset[str]
    opened: list[str] = field(default_factory=list)


@dataclass
class _Translation:
    text: str
    at: int = 0
    out: list[str] = field(default_factory=list)
    groups: int = 0
    levels: list[_Level] = field(default_factory=lambda: [_Level(frozenset())])

    def whole(self) -> str:
        steps: Mapping[str, Callable[[], None]] = {
            "\\": self._escape,
            "[": self._class,
            "(": self._open,
            ")": self._close,
            "|": self._alternative,
            "{": self._repetition,
        }
        while self.at < len(self.text):
            steps.get(self.text[self.at], self._char)()
        if len(self.levels) > 1:
            raise self._wrong("has a group that does not end")
        self._end_flags()
        return "".join(self.out)

    def _wrong(self, why: str) -> JavaRegexError:
        return JavaRegexError(f"the pattern '{self.text}' {why}")

    def _char(self) -> None:
        char = self.text[self.at]
        self.at += 1
        if char == ".":
            self.out.append("(?s:.)" if "s" in self.levels[-1].flags else (~_TERMINATORS).pattern())
        elif char == "$":
            self.out.append(_LAST_LINE_END)
        else:
            self.out.append(char if char in "^*+?" else re.escape(char))

    def _repetition(self) -> None:
        found = _REPETITION.match(self.text, self.at)
        if found is None:
            raise self._wrong(
                f"has a {{ at position {self.at} that is no repetition; write \\{{ for the character"
            )
        self.out.append(found[0])
        self.at = found.end()

    def _alternative(self) -> None:
        """Flags set in the middle hold in the alternatives that follow, too."""
        opened = self.levels[-1].opened
        self.out.append(")" * len(opened) + "|" + "".join(opened))
        self.at += 1

    def _open(self) -> None:
        level = _Level(self.levels[-1].flags)
        named = _NAMED.match(self.text, self.at)
        opening = next((one for one in _OPENINGS if self.text.startswith(one, self.at)), None)
        if opening is not None:
            self._opened(opening, len(opening), level)
        elif named is not None:
            self.groups += 1
            self._opened(f"(?P<{named[1]}>", len(named[0]), level)
        elif self.text.startswith("(?", self.at):
            self._flags()
        else:
            self.groups += 1
            self._opened("(", 1, level)

    def _opened(self, opening: str, length: int, level: _Level) -> None:
        self.out.append(opening)
        self.levels.append(level)
        self.at += length

    def _flags(self) -> None:
        found = _FLAGS.match(self.text, self.at)
        if found is None:
            raise self._wrong(f"has an unknown kind of group at position {self.at}")
        strange = set(found[1] + (found[2] or "")) - {"i", "s"}
        if strange:
            raise self._wrong(f"has the flag '{min(strange)}', and only i and s can be translated")
        before = self.levels[-1].flags
        flags = (before | set(found[1])) - set(found[2] or "")
        opening = "(?:"
        if ("i" in flags) != ("i" in before):
            opening = "(?i:" if "i" in flags else "(?-i:"
        if found[3] == ":":
            self._opened(opening, len(found[0]), _Level(flags))
            return
        self.levels[-1].flags = flags
        self.levels[-1].opened.append(opening)
        self.out.append(opening)
        self.at = found.end()

    def _close(self) -> None:
        if len(self.levels) == 1:
            raise self._wrong(
                f"has a ) at position {self.at} that ends no group; write \\) for the character"
            )
        self._end_flags()
        self.levels.pop()
        self.out.append(")")
        self.at += 1

    def _end_flags(self) -> None:
        self.out.append(")" * len(self.levels[-1].opened))

    def _escape(self) -> None:
        self.at += 1
        letter = self.text[self.at : self.at + 1]
        if letter == "Q":
            self.out.append(re.escape(self._quoted()))
        elif letter in _PLAIN_ESCAPES and letter:
            self.out.append(_PLAIN_ESCAPES[letter])
            self.at += 1
            if letter == "b" and self.text.startswith("{", self.at):
                raise self._wrong("has \\b{…}, which cannot be translated")
        elif letter == "k":
            found = _GROUP_NAME.match(self.text, self.at)
            if found is None:
                raise self._wrong("has a \\k without the name of a group")
            self.out.append(f"(?P={found[1]})")
            self.at = found.end()
        elif letter.isdigit() and letter != "0":
            self.out.append(f"(?:\\{self._group_number()})")
        else:
            self.out.append(self._escaped_chars().pattern())

    def _quoted(self) -> str:
        r"""What is between \Q and \E, or the end."""
        end = self.text.find("\\E", self.at)
        quoted = self.text[self.at + 1 : end if end >= 0 else None]
        self.at = end + 2 if end >= 0 else len(self.text)
        return quoted

    def _group_number(self) -> int:
        """As many digits as there are groups for."""
        number = int(self.text[self.at])
        self.at += 1
        while self.text[self.at : self.at + 1].isdigit():
            longer = number * 10 + int(self.text[self.at])
            if longer > self.groups:
                break
            number = longer
            self.at += 1
        return number

    def _escaped_chars(self) -> Chars:
        """What the letters after a backslash stand for."""
        letter = self.text[self.at : self.at + 1]
        if letter in ESCAPES and letter:
            self.at += 1
            return ESCAPES[letter]
        if letter in ("p", "P"):
            return self._property(letter)
        for spelling, base in ((_HEX, 16), (_OCTAL, 8)):
            found = spelling.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                return chars(chr(int(next(filter(None, found.groups())), base)))
        if letter == "c" and self.at + 1 < len(self.text):
            self.at += 2
            return chars(chr(ord(self.text[self.at - 1]) ^ 64))
        if letter in _CONTROLS and letter:
            self.at += 1
            return chars(_CONTROLS[letter])
        if not letter or (letter.isascii() and letter.isalnum()):
            raise self._wrong(f"has \\{letter}, which cannot be translated")
        self.at += 1
        return chars(letter)

    def _property(self, letter: str) -> Chars:
        found = _PROPERTY.match(self.text, self.at)
        name = "" if found is None else found[1] or found[2]
        known = named_class(name)
        if found is None or known is None:
            raise self._wrong(f"has \\{letter}{{{name}}}, which cannot be translated")
        self.at = found.end()
        return known if letter == "p" else ~known

    def _class(self) -> None:
        self.at += 1
        self.out.append(self._union().pattern())

    def _union(self) -> Chars:
        """The characters of a class, from after its [ to after its ]."""
        negated = self.text.startswith("^", self.at)
        self.at += negated
        operands, current, empty = [], Chars(), True
        while self.at < len(self.text):
            if self.text.startswith("&&", self.at):
                self.at += 2
                if not empty:
                    operands.append(current)
                current, empty = Chars(), True
            elif self.text[self.at] == "]" and (operands or not empty):
                self.at += 1
                if not empty:
                    operands.append(current)
                return _negated(operands, negated)
            else:
                current, empty = current | self._member(), False
        raise self._wrong("has a [ without its ]")

    def _member(self) -> Chars:
        if self.text[self.at] == "[":
            self.at += 1
            return self._union()
        if self.text.startswith("\\Q", self.at):
            self.at += 1
            return chars(*self._quoted())
        low = self._single()
        ends = self.text[self.at + 1 : self.at + 2]
        if not self.text.startswith("-", self.at) or ends in ("]", "[", ""):
            return low
        self.at += 1
        high = self._single()
        first, last = low.ranges[0], high.ranges[0]
        if first[0] != first[1] or last[0] != last[1] or first[0] > last[0]:
            raise self._wrong(f"has a range before position {self.at} that is none")
        return Chars(((first[0], last[0]),))

    def _single(self) -> Chars:
        if self.text[self.at] == "\\":
            self.at += 1
            return self._escaped_chars()
        self.at += 1
        return chars(self.text[self.at - 1])


def _negated(operands: Sequence[Chars], negated: bool) -> Chars:
    both = operands[0]
    for operand in operands[1:]:
        both = both & operand
    return ~both if negated else both
