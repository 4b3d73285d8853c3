"""Offsets of a connector as REST shows and changes them. The service asks, the jobs package answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class OffsetEntry:
    """One part of a source, and how far the connector is in it; an offset of None means the beginning."""

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None


class OffsetAdmin(Protocol):
    """Offsets of connectors whose jobs do not run. Each call opens what it needs and has a time limit.

    An entry that makes no sense is a `BadOffsets` that names it; nothing is changed then.
    """

    def read(self, name: str, config: Mapping[str, str]) -> list[OffsetEntry]: ...

    def alter(self, name: str, config: Mapping[str, str], entries: Sequence[OffsetEntry]) -> str:
        """Set the named offsets; returns what to tell the user."""

    def reset(self, name: str, config: Mapping[str, str]) -> str:
        """Forget all offsets: the connector begins again at the beginning."""
