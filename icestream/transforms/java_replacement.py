"""Java's replacements of what a pattern matched: `$1`, `${name}`, backslashes. For RegexRouter."""

from __future__ import annotations

import re
from typing import Final

from icestream.api.java_regex import JavaPattern, Match

ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
OUT_OF_BOUNDS: Final = "java.lang.IndexOutOfBoundsException"


class BadReplacement(ValueError):
    """Java finds out only when it replaces something."""

    def __init__(self, reason: str, exception: str = ILLEGAL_ARGUMENT) -> None:
        super().__init__(reason)
        self.exception = exception


def replaced_first(pattern: JavaPattern, text: str, replacement: str) -> str:
    """`Matcher.replaceFirst`."""
    match = pattern.search(text)
    if match is None:
        return text
    return text[: match.start()] + expanded(match, replacement) + text[match.end() :]


def expanded(match: Match, replacement: str) -> str:
    parts, at = [], 0
    while at < len(replacement):
        if replacement[at] == "\\":
            if at + 1 == len(replacement):
                raise BadReplacement("character to be escaped is missing")
            parts.append(replacement[at + 1])
            at += 2
        elif replacement[at] == "$":
            group, at = _group(match, replacement, at + 1)
            parts.append(group or "")
        else:
            parts.append(replacement[at])
            at += 1
    return "".join(parts)


def _group(match: Match, replacement: str, at: int) -> tuple[str | None, int]:
    """The text of the group that is referred to, and where the replacement goes on."""
    if at == len(replacement):
        raise BadReplacement("Illegal group reference: group index is missing")
    if replacement[at] == "{":
        return _named_group(match, replacement, at + 1)
    if not "0" <= replacement[at] <= "9":
        raise BadReplacement("Illegal group reference")
    number, end = int(replacement[at]), at + 1
    if number > match.re.groups:
        raise BadReplacement(f"No group {number}", OUT_OF_BOUNDS)
    while end < len(replacement) and "0" <= replacement[end] <= "9":
        longer = number * 10 + int(replacement[end])
        if longer > match.re.groups:
            break
        number, end = longer, end + 1
    return match[number], end


def _named_group(match: Match, replacement: str, at: int) -> tuple[str | None, int]:
    found = re.compile("[a-zA-Z0-9]*").match(replacement, at)
    assert found is not None
    name = found[0]
    if not name:
        raise BadReplacement("named capturing group has 0 length name")
    if replacement[found.end() : found.end() + 1] != "}":
        raise BadReplacement("named capturing group is missing trailing '}'")
    if name[0].isdigit():
        raise BadReplacement(f"capturing group name {{{name}}} starts with digit character")
    if name not in match.re.groupindex:
        raise BadReplacement(f"No group with name {{{name}}}")
    return match[name], found.end() + 1
