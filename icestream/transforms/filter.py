"""`Filter`: drops every record that its predicate lets through to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from icestream.records.records import Applied, Records
from icestream.transforms.groups import Side


@dataclass(frozen=True)
class Filter:
    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls()

    def apply(self, records: Records) -> Applied:
        return Applied([], dropped=records.rows.tolist())
