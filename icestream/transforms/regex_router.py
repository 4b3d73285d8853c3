"""`RegexRouter`: another topic for records of topics whose whole name matches a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from icestream.api.java_regex import JavaPattern, JavaRegexError, java_pattern
from icestream.records.records import Applied, Failure, Records
from icestream.transforms.java_replacement import BadReplacement, replaced_first
from icestream.transforms.refusals import invalid_setting
from icestream.transforms.side import Side, all_failed


@dataclass(frozen=True)
class RegexRouter:
    pattern: JavaPattern
    replacement: str

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        regex = settings["regex"]
        try:
            return cls(java_pattern(regex), settings["replacement"])
        except JavaRegexError as error:
            raise invalid_setting("regex", regex, f"Invalid regex: {error}") from None

    def apply(self, records: Records) -> Applied:
        if self.pattern.fullmatch(records.topic) is None:
            return Applied([records])
        try:
            topic = replaced_first(self.pattern, records.topic, self.replacement)
        except BadReplacement as error:
            return all_failed(records, Failure(str(error), error.exception))
        return Applied([replace(records, topic=topic)])
