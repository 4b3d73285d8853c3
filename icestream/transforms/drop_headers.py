"""`DropHeaders`: headers go, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from icestream.records.records import Applied, Records
from icestream.transforms.groups import Side


@dataclass(frozen=True)
class DropHeaders:
    names: frozenset[str]

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(frozenset(settings["headers"]))

    def apply(self, records: Records) -> Applied:
        headers = tuple(header for header in records.headers if header.name not in self.names)
        return Applied([replace(records, headers=headers)])
