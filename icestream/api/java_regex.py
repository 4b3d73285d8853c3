"""Java's regular expressions on RE2, which takes time in proportion to the text, never more.

For every pattern that a user writes: `topics.regex`, `RegexRouter`, predicates, `topic.creation.*`. What an
engine without backtracking cannot do is refused (docs/decisions/019-patterns.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import re2

from icestream.api.java_regex_in_re2 import JavaRegexError, Translation

__all__ = ["JavaPattern", "JavaRegexError", "Match", "java_pattern", "pattern_problem"]

_LONGEST: Final = 10_000


class Match(Protocol):
    """What RE2 found; of Python's own the part that is used here."""

    def start(self) -> int: ...
    def end(self) -> int: ...
    def __getitem__(self, group: int | str) -> str | None: ...


class _Engine(Protocol):
    groups: int
    groupindex: Mapping[str, int]

    def fullmatch(self, text: str) -> Match | None: ...
    def match(self, text: str) -> Match | None: ...
    def search(self, text: str) -> Match | None: ...


@dataclass(frozen=True)
class JavaPattern:
    """A pattern that matches what Java's does, in linear time."""

    text: str
    _main: _Engine = field(repr=False, compare=False)
    _ahead: Sequence[tuple[bool, _Engine]] = field(default=(), repr=False, compare=False)
    """What must begin the text, or must not: look-aheads at the pattern's own beginning."""

    @property
    def groups(self) -> int:
        return int(self._main.groups)

    @property
    def names(self) -> Mapping[str, int]:
        """The numbers of the groups that have a name."""
        return dict(self._main.groupindex)

    def fullmatch(self, text: str) -> Match | None:
        """Java's `matches`."""
        return self._main.fullmatch(text) if self._begins(text) else None

    def search(self, text: str) -> Match | None:
        """Java's `find`, for texts that match as a whole."""
        if self._ahead:
            return self._main.match(text) if self._begins(text) else None
        return self._main.search(text)

    def _begins(self, text: str) -> bool:
        return all((other.match(text) is not None) is wanted for wanted, other in self._ahead)

    def __reduce__(self) -> tuple[Callable[[str], JavaPattern], tuple[str]]:
        return java_pattern, (self.text,)


@functools.lru_cache(maxsize=256)
def java_pattern(text: str) -> JavaPattern:
    """Raises JavaRegexError, which says why a pattern cannot be used."""
    if len(text) > _LONGEST:
        raise JavaRegexError(f"the pattern has {len(text)} characters; at most {_LONGEST} can be used")
    translation = Translation(text)
    main = translation.whole()
    ahead = [(wanted, _compiled(text, other)) for wanted, other in translation.ahead]
    return JavaPattern(text, _compiled(text, main), tuple(ahead))


def pattern_problem(text: str) -> str | None:
    """Why a pattern cannot be used; None if it can."""
    try:
        java_pattern(text)
    except JavaRegexError as error:
        return str(error)
    return None


def _compiled(text: str, translated: str) -> _Engine:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: _Engine = re2.compile(translated, options)
    except re2.error as error:
        told = error.args[0] if error.args else ""
        reason = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        if "repetition operator" in reason:
            reason += (
                " (possessive repetitions are not there: patterns run in an engine without backtracking)"
            )
        raise JavaRegexError(f"the pattern '{text[:200]}' cannot be used: {reason[:200]}") from None
    return compiled
