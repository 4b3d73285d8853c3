"""The predicates of Kafka Connect: which records a transform is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from icestream.api.java_regex import JavaPattern, JavaRegexError, java_pattern
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.rows import Flags
from icestream.transforms.failures import invalid_setting


def _all(records: Records, answer: bool) -> Flags:
    return np.full(len(records), answer, np.bool_)


@dataclass(frozen=True)
class HasHeaderKey:
    name: str

    @classmethod
    def configured(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["name"])

    def test(self, records: Records) -> Flags:
        return _all(records, any(header.name == self.name for header in records.headers))


@dataclass(frozen=True)
class RecordIsTombstone:
    @classmethod
    def configured(cls, settings: Mapping[str, Any]) -> Self:
        return cls()

    def test(self, records: Records) -> Flags:
        if isinstance(records.value, Column):
            return records.value.nulls
        return _all(records, records.value is None)


@dataclass(frozen=True)
class TopicNameMatches:
    pattern: JavaPattern

    @classmethod
    def configured(cls, settings: Mapping[str, Any]) -> Self:
        pattern = settings["pattern"]
        try:
            return cls(java_pattern(pattern))
        except JavaRegexError as error:
            raise invalid_setting("pattern", pattern, f"Invalid regex: {error}") from None

    def test(self, records: Records) -> Flags:
        return _all(records, self.pattern.fullmatch(records.topic) is not None)
