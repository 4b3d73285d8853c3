"""Writes a Java pattern in RE2's words, or says why it cannot be. For `java_regex.py`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.api.code_points import ESCAPES, Chars, chars, named_class

_TERMINATORS: Final = chars("\n", "\r", "\x85", "\u2028\u2029")
_END: Final = r"\z"
_PLAIN_ESCAPES: Final[Mapping[str, str]] = {
    "b": r"\b",
    "B": r"\B",
    "A": r"\A",
    "z": _END,
    "Z": _END,
}
_REPETITION: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}", re.ASCII)
_MOST_REPETITIONS: Final = 1000
_DEEPEST: Final = 100
_AHEAD: Final = {"(?=": True, "(?!": False}
_BACKTRACKS: Final = ("(?<=", "(?<!", "(?>", *_AHEAD)
_NAMED: Final = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_HEX: Final = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})")
_PROPERTY: Final = re.compile(r"[pP](?:\{([^}]*)\}|(.))")
_NO_BACKTRACKING: Final = "and patterns run in an engine that does not backtrack"


class JavaRegexError(ValueError):
    """The pattern is no pattern in Java, or one that Python has nothing for."""


@dataclass
class _Level:
    """An open group and the flags in it. `ahead` is where a look-ahead begins in the output, and its kind."""

    flags: frozenset[str]
    ahead: tuple[int, bool] | None = None


@dataclass
class Translation:
    text: str
    at: int = 0
    out: list[str] = field(default_factory=list)
    groups: int = 0
    groups_before: int = 0
    depth: int = 0
    levels: list[_Level] = field(default_factory=lambda: [_Level(frozenset())])
    ahead: list[tuple[bool, str]] = field(default_factory=list)

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
        return "".join(self.out)

    def _wrong(self, why: str) -> JavaRegexError:
        shown = self.text if len(self.text) <= 200 else f"{self.text[:200]}…"
        return JavaRegexError(f"the pattern '{shown}' {why}")

    def _cased(self, found: Chars) -> Chars:
        return found.in_both_cases() if "i" in self.levels[-1].flags else found

    def _literal(self, char: str) -> str:
        return self._cased(chars(char)).pattern()

    def _char(self) -> None:
        char = self.text[self.at]
        self.at += 1
        if char == ".":
            self.out.append("(?s:.)" if "s" in self.levels[-1].flags else (~_TERMINATORS).pattern())
        elif char == "$":
            self.out.append(_END)
        else:
            self.out.append(char if char in "^*+?" else self._literal(char))

    def _repetition(self) -> None:
        found = _REPETITION.match(self.text, self.at)
        if found is None:
            raise self._wrong(
                f"has a {{ at position {self.at} that is no repetition; write \\{{ for the character"
            )
        if any(len(number) > 4 or int(number) > _MOST_REPETITIONS for number in filter(None, found.groups())):
            raise self._wrong(f"repeats something more than {_MOST_REPETITIONS} times, which cannot be used")
        self.out.append(found[0])
        self.at = found.end()

    def _alternative(self) -> None:
        if self.ahead and len(self.levels) == 1:
            raise self._wrong("has a | behind a look-ahead; put the alternatives into a group: (?!…)(?:a|b)")
        self.out.append("|")
        self.at += 1

    def _open(self) -> None:
        level = _Level(self.levels[-1].flags)
        named = _NAMED.match(self.text, self.at)
        backtracks = next((one for one in _BACKTRACKS if self.text.startswith(one, self.at)), None)
        if backtracks is not None:
            self._look_ahead(backtracks, level)
        elif self.text.startswith("(?:", self.at):
            self._opened("(?:", 3, level)
        elif named is not None:
            self.groups += 1
            self._opened(f"(?P<{named[1]}>", len(named[0]), level)
        elif self.text.startswith("(?", self.at):
            self._flags()
        else:
            self.groups += 1
            self._opened("(", 1, level)

    def _look_ahead(self, opening: str, level: _Level) -> None:
        """At the beginning it is a question about the text of its own; elsewhere there is nothing for it."""
        if opening not in _AHEAD or len(self.levels) > 1 or "".join(self.out) not in ("", "^"):
            raise self._wrong(
                f"has a {opening}…) at position {self.at}, {_NO_BACKTRACKING}; write it without, or with "
                "(?!…) at the very beginning"
            )
        level.ahead = len(self.out), _AHEAD[opening]
        self.groups_before = self.groups
        self._opened("", len(opening), level)

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
        flags = (self.levels[-1].flags | set(found[1])) - set(found[2] or "")
        if found[3] == ":":
            self._opened("(?:", len(found[0]), _Level(flags))
            return
        # They hold to the end of the group, in the alternatives that follow, too.
        self.levels[-1].flags = flags
        self.at = found.end()

    def _close(self) -> None:
        if len(self.levels) == 1:
            raise self._wrong(
                f"has a ) at position {self.at} that ends no group; write \\) for the character"
            )
        self.at += 1
        ahead = self.levels.pop().ahead
        if ahead is None:
            self.out.append(")")
            return
        if self.groups > self.groups_before:
            raise self._wrong("has a group in a look-ahead; write (?:…) there")
        begin, wanted = ahead
        self.ahead.append((wanted, f"(?:{''.join(self.out[begin:])})"))
        del self.out[begin:]

    def _escape(self) -> None:
        self.at += 1
        letter = self.text[self.at : self.at + 1]
        if letter == "Q":
            self.out += [self._literal(char) for char in self._quoted()]
        elif letter in _PLAIN_ESCAPES and letter:
            self.out.append(_PLAIN_ESCAPES[letter])
            self.at += 1
            if letter == "b" and self.text.startswith("{", self.at):
                raise self._wrong("has \\b{…}, which cannot be translated")
        elif letter == "k" or (letter.isdigit() and letter != "0"):
            raise self._wrong(
                f"refers to a group again at position {self.at - 1}, {_NO_BACKTRACKING}; write it without"
            )
        else:
            self.out.append(self._cased(self._escaped_chars()).pattern())

    def _quoted(self) -> str:
        r"""What is between \Q and \E, or the end."""
        end = self.text.find("\\E", self.at)
        quoted = self.text[self.at + 1 : end if end >= 0 else None]
        self.at = end + 2 if end >= 0 else len(self.text)
        return quoted

    def _escaped_chars(self) -> Chars:
        """What the letters after a backslash stand for."""
        letter = self.text[self.at : self.at + 1]
        if letter in ESCAPES and letter:
            self.at += 1
            return ESCAPES[letter]
        if letter in ("p", "P"):
            return self._property(letter)
        found = _HEX.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return self._char_of(int(next(filter(None, found.groups())), 16))
        if not letter or (letter.isascii() and letter.isalnum()):
            raise self._wrong(f"has \\{letter}, which cannot be translated")
        self.at += 1
        return chars(letter)

    def _char_of(self, point: int) -> Chars:
        if point > sys.maxunicode:
            raise self._wrong(f"names the character {point:x}, which does not exist")
        return chars(chr(point))

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
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._wrong(f"has more than {_DEEPEST} classes of characters in each other")
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
                self.depth -= 1
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
            return self._cased(chars(*self._quoted()))
        low = self._single()
        ends = self.text[self.at + 1 : self.at + 2]
        if not self.text.startswith("-", self.at) or ends in ("]", "[", ""):
            return self._cased(low)
        self.at += 1
        high = self._single()
        first, last = low.ranges[0], high.ranges[0]
        if first[0] != first[1] or last[0] != last[1] or first[0] > last[0]:
            raise self._wrong(f"has a range before position {self.at} that is none")
        return self._cased(Chars(((first[0], last[0]),)))

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
