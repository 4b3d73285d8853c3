"""The rules of one schema: which values break them, and how that is said; used by `validator`."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import jsonschema_rs

from icestream.records.json_source import parsed
from icestream.validation.fast import FastCheck
from icestream.validation.looks import Looks, looks
from icestream.validation.schema import Document, Source, document

_TOLD: Final = 3
"""Of the errors of one record."""
_PARTS: Final = 5_000
"""Up to so many parts all errors of a value are collected; of a larger one only the first."""
_LONGEST: Final = 300
"""Characters of a message, which quotes the value, and of a pointer."""


@dataclass(frozen=True, eq=False)
class Rules:
    document: Document

    @functools.cached_property
    def _fast(self) -> FastCheck:
        return FastCheck.of(self.document)

    @functools.cached_property
    def looks(self) -> Looks | None:
        """At which fields; None: at all."""
        return looks(self.document)

    def broken_by_text(self, values: Sequence[bytes]) -> dict[int, str]:
        """Reasons by position, of JSON texts."""
        found = {}
        for at in self._fast.suspects(values):
            if reason := self._judged(values[at]):
                found[at] = reason
        return found

    def broken_by(self, values: Iterable[Any]) -> dict[int, str]:
        """The same of values that are decoded already."""
        is_valid = self.document.judge.is_valid
        return {at: self.reason(value) for at, value in enumerate(values) if not is_valid(value)}

    def _judged(self, text: bytes) -> str | None:
        try:
            return self.reason(parsed(text, _number)) or None
        except ValueError as error:
            return f"(root): {error}"

    def reason(self, value: Any) -> str:
        """The first errors, each with the place in the value and the rule; empty if there is none."""
        errors = (
            self._first_error(value) if _is_large(value) else list(self.document.judge.iter_errors(value))
        )
        told = [_in_words(error) for error in errors[:_TOLD]]
        return "; ".join([*told, "…"] if len(errors) > _TOLD else told)

    def _first_error(self, value: Any) -> list[jsonschema_rs.ValidationError]:
        try:
            self.document.judge.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


@functools.lru_cache(maxsize=256)
def rules_of(source: Source) -> Rules:
    """Kept as long as the process: the tasks of a batch come and go."""
    return Rules(document(source))


def _number(text: str) -> float | Decimal:
    """JSON Schema knows no largest number."""
    number = float(text)
    return number if math.isfinite(number) else Decimal(text)


def _is_large(value: Any) -> bool:
    """Whether it has so many parts that there could be more errors than memory."""
    waiting = [value]
    for _ in range(_PARTS):
        if not waiting:
            return False
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return True


def _in_words(error: jsonschema_rs.ValidationError) -> str:
    where = _pointer(error.instance_path) or "(root)"
    return (
        f"{_shortened(where)}: {_shortened(error.message)} (rule {_shortened(_pointer(error.schema_path))})"
    )


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _shortened(text: str) -> str:
    """What is wrong is said at the end, after the value."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 3]} … {text[-_LONGEST * 2 // 3 :]}"
