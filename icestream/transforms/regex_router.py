"""`RegexRouter`: another topic for records of topics whose whole name matches a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from icestream.api.java_regex import JavaPattern, JavaRegexError, java_pattern
from icestream.records.records import Applied, Records
from icestream.transforms.failures import invalid_setting
from icestream.transforms.groups import Side

_PIECES: Final = re.compile(r"\\(.)|\$([0-9]+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|([^\\$]+)|(.)", re.DOTALL)


@dataclass(frozen=True)
class RegexRouter:
    pattern: JavaPattern
    replacement: Sequence[str | int]
    """Texts and the numbers of groups."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        regex, replacement = settings["regex"], settings["replacement"]
        try:
            pattern = java_pattern(regex)
        except JavaRegexError as error:
            raise invalid_setting("regex", regex, f"Invalid regex: {error}") from None
        try:
            return cls(pattern, parsed_replacement(pattern, replacement))
        except ValueError as error:
            raise invalid_setting("replacement", replacement, str(error)) from None

    def apply(self, records: Records) -> Applied:
        if self.pattern.fullmatch(records.topic) is None:
            return Applied([records])
        return Applied([replace(records, topic=self._renamed(records.topic))])

    def _renamed(self, topic: str) -> str:
        """As `Matcher.replaceFirst` does it."""
        match = self.pattern.search(topic)
        if match is None:
            return topic
        parts = [one if isinstance(one, str) else match[one] or "" for one in self.replacement]
        return f"{topic[: match.start()]}{''.join(parts)}{topic[match.end() :]}"


def parsed_replacement(pattern: JavaPattern, text: str) -> list[str | int]:
    r"""`$1`, `${name}` and `\$`. Raises ValueError where Java would fail each record that matches."""
    parts: list[str | int] = []
    for escaped, digits, name, plain, wrong in _PIECES.findall(text):
        if digits:
            parts += _group(pattern, digits)
        elif name:
            if name not in pattern.names:
                raise ValueError(f"The regex has no group {name}")
            parts.append(pattern.names[name])
        elif wrong:
            raise ValueError(f"'{wrong}' must be followed by a group or be written as \\{wrong}")
        else:
            parts.append(escaped or plain)
    return parts


def _group(pattern: JavaPattern, digits: str) -> list[str | int]:
    """As many digits as make the number of a group; the others are text."""
    number, length = int(digits[0]), 1
    while length < len(digits) and number * 10 + int(digits[length]) <= pattern.groups:
        number, length = number * 10 + int(digits[length]), length + 1
    if number > pattern.groups:
        raise ValueError(f"The regex has no group {number}")
    return [number, digits[length:]]
