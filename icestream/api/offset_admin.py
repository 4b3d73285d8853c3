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


@dataclass(frozen=True)
class PartitionPosition:
    """All that is known of a sink's place in one partition."""

    topic: str
    partition: int
    beginning: int
    """The first offset that the topic still has."""
    end: int
    resumes: int
    """Where the job goes on: the earliest that any of its targets needs."""
    in_targets: int | None = None
    """The next offset by the targets' own word, the lowest; None: none of them knows the partition."""
    in_group: int | None = None
    """The next offset of the consumer group."""
    read: tuple[tuple[int, int], ...] = ()
    """What was ever read, as pairs of first and next, in the order of reading."""


class OffsetAdmin(Protocol):
    """Offsets of connectors whose jobs do not run. Each call opens what it needs and has a time limit.

    An entry that makes no sense is a `BadOffsets` that names it; nothing is changed then.
    """

    def read(self, name: str, config: Mapping[str, str]) -> list[OffsetEntry]: ...

    def positions(
        self, name: str, config: Mapping[str, str], entries: Sequence[OffsetEntry] = ()
    ) -> list[PartitionPosition] | None:
        """The partitions of a sink, and those of the entries, which must be such that `alter` would take
        them; None for a source, whose offsets only its plugin can read."""

    def alter(self, name: str, config: Mapping[str, str], entries: Sequence[OffsetEntry]) -> str:
        """Set the named offsets; returns what to tell the user."""

    def reset(self, name: str, config: Mapping[str, str]) -> str:
        """Forget all offsets: the connector begins again at the beginning."""
