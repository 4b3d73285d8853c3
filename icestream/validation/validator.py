"""Validates values of records by the JSON Schema of their topic; the pipeline's worker calls it between the
value converter and the transforms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Records
from icestream.records.values import Fields, Listing, Text, Typed
from icestream.validation.as_json import as_json
from icestream.validation.rules import Rules, rules_of
from icestream.validation.schema import Source


@dataclass(frozen=True)
class Schemas:
    """JSON Schemas: one for topics that have none of their own, if there is one, and theirs."""

    general: Source | None = None
    of_topic: Mapping[str, Source] = field(default_factory=dict)

    def of(self, topic: str) -> Source | None:
        return self.of_topic.get(topic, self.general)


@dataclass(frozen=True)
class Validator:
    schemas: Schemas

    def check(self, records: Records) -> Applied:
        """Those that are valid, and those that are not; tombstones are nobody's business."""
        schema = self.schemas.of(records.topic)
        if schema is None or records.value is None or not len(records):
            return Applied([records])
        broken = _broken(rules_of(schema), records.value)
        if not broken:
            return Applied([records])
        valid = np.setdiff1d(np.arange(len(records)), np.fromiter(broken, np.int64, len(broken)))
        failed = {int(records.rows[at]): Failure(reason) for at, reason in broken.items()}
        return Applied([records.take(valid)] if len(valid) else [], failed)


def _broken(rules: Rules, value: Typed) -> Mapping[int, str]:
    text = _text(value)
    if text is not None:
        return rules.broken_by_text(text)
    broken = rules.broken_by(as_json(value, rules.looks))
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
