"""Validates values of records by the JSON Schema of their topic; `pipeline.record_path` calls it between the
value converter and the transforms.

jsonschema-rs decides. Of JSON text only the fields that the schema is about are decoded for it
(docs/decisions/021-json-schema.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import jsonschema_rs
import msgspec
import numpy as np

from icestream.api.nesting import is_too_deep
from icestream.records.column import Column
from icestream.records.json_source import parsed
from icestream.records.records import Applied, Failure, Records
from icestream.records.values import Fields, Listing, Text, Typed
from icestream.validation.as_json import as_json
from icestream.validation.schema import Document, SchemaText, document
from icestream.validation.used_fields import UsedFields, type_with, used_fields

_TOLD: Final = 3
"""Of the errors of one record."""
_PARTS: Final = 5_000
"""Up to so many parts all errors of a value are collected; of a larger one only the first."""
_LONGEST: Final = 300
"""Characters of a message, which quotes the value, and of a pointer."""


@dataclass(frozen=True)
class TopicSchemas:
    """JSON Schemas: one for topics that have none of their own, if there is one, and theirs."""

    general: SchemaText | None = None
    of_topic: Mapping[str, SchemaText] = field(default_factory=dict)

    def of(self, topic: str) -> SchemaText | None:
        return self.of_topic.get(topic, self.general)


@dataclass(frozen=True)
class SchemaValidator:
    schemas: TopicSchemas

    def check(self, records: Records) -> Applied:
        """Those that are valid, and those that are not; tombstones are not checked."""
        schema = self.schemas.of(records.topic)
        if schema is None or records.value is None or not len(records):
            return Applied([records])
        broken = _broken(rules_of(schema), records.value)
        if not broken:
            return Applied([records])
        valid = np.setdiff1d(np.arange(len(records)), np.fromiter(broken, np.int64, len(broken)))
        failed = {int(records.rows[at]): Failure(reason, breaks_schema=True) for at, reason in broken.items()}
        return Applied([records.take(valid)] if len(valid) else [], failed)


@dataclass(frozen=True, eq=False)
class Rules:
    """One schema: which values break it, and in which words that is said."""

    document: Document

    @functools.cached_property
    def used(self) -> UsedFields | None:
        """The fields that the schema is about; None: all."""
        return used_fields(self.document)

    @functools.cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(type_with(self.used))

    def broken_by_text(self, values: Sequence[bytes]) -> dict[int, str]:
        """Reasons by position, of JSON texts."""
        decode, is_valid = self._decoder.decode, self.document.validator.is_valid
        found = {}
        for at, text in enumerate(values):
            try:
                if not is_too_deep(text) and is_valid(decode(text)):
                    continue
            except ValueError:  # numbers that no float holds, for example
                pass
            if reason := self._reason_of_text(text):
                found[at] = reason
        return found

    def broken_by(self, values: Iterable[Any]) -> dict[int, str]:
        """The same of values that are decoded already."""
        is_valid = self.document.validator.is_valid
        return {at: self.reason(value) for at, value in enumerate(values) if not is_valid(value)}

    def _reason_of_text(self, text: bytes) -> str | None:
        try:
            return self.reason(parsed(text, _number)) or None
        except ValueError as error:
            return f"(root): {error}"

    def reason(self, value: Any) -> str:
        """The first errors, each with the place in the value and the rule; empty if there is none."""
        validator = self.document.validator
        errors = self._first_error(value) if _is_large(value) else list(validator.iter_errors(value))
        told = [_in_words(error) for error in errors[:_TOLD]]
        return "; ".join([*told, "…"] if len(errors) > _TOLD else told)

    def _first_error(self, value: Any) -> list[jsonschema_rs.ValidationError]:
        try:
            self.document.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []


@functools.lru_cache(maxsize=256)
def rules_of(source: SchemaText) -> Rules:
    """Kept as long as the process: the tasks of a batch come and go."""
    return Rules(document(source))


def _broken(rules: Rules, value: Typed) -> Mapping[int, str]:
    text = _text(value)
    if text is not None:
        return rules.broken_by_text(text)
    broken = rules.broken_by(as_json(value, rules.used))
    if isinstance(value, Column) and value.values.null_count:
        return {at: reason for at, reason in broken.items() if not value.nulls[at]}
    return broken


def _text(value: Typed) -> list[bytes] | None:
    """The JSON of each row, if that is all there is."""
    if isinstance(value, Fields):
        return _whole(value.rest) if value.rest and not value.named else None
    return _whole(value.text) if isinstance(value, Listing) else None


def _whole(text: Text) -> list[bytes] | None:
    if text.path:
        return None
    values = text.source.values
    return list(values) if text.rows is None else [values[row] for row in text.rows.tolist()]


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
