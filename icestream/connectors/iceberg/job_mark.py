"""The facts of a job's mark: how far it is in each partition, of which source, for which tables.

`marks` says how one follows from another and finds them in a table; `mark_text` writes them down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from icestream.api.batch import Counts
from icestream.api.offsets import Offsets, Partition

if TYPE_CHECKING:
    # For their names alone: jobs without tables start sooner.
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

PRUNE_AFTER: Final = 100
"""Commits."""


@dataclass(frozen=True)
class Source:
    """Which Kafka cluster and which topics, by the ids that change when they are created anew."""

    cluster: str
    topics: Mapping[str, str]


@dataclass(frozen=True)
class Span:
    """Offsets that the job read from `first` up to `next`, before somebody moved it elsewhere."""

    first: int
    next: int
    counts: Counts
    is_gone: bool = False
    """Of a topic that was deleted since: its offsets mean records that nobody can count again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One partition in a mark. Counts are totals since the job's first batch, or since it was moved here."""

    first: int
    """Where the job began to read."""
    start: int
    """Where the batch of this commit began."""
    next: int
    counts: Counts


@dataclass(frozen=True)
class Age:
    """How far a table's history went at some moment: every snapshot of then has no more than this."""

    sequence: int
    ms: int

    @classmethod
    def of(cls, metadata: TableMetadata) -> Age:
        sequence = 0 if metadata.format_version == 1 else metadata.last_sequence_number
        return cls(sequence, metadata.last_updated_ms)

    def covers(self, snapshot: Snapshot) -> bool:
        # Snapshots of format 1 have no sequence number.
        if snapshot.sequence_number:
            return snapshot.sequence_number <= self.sequence
        return snapshot.timestamp_ms <= self.ms


@dataclass(frozen=True)
class JobMark:
    commit: str
    previous: str | None
    source: Source
    """Ids of all topics that the mark has positions of, also of those that the job no longer reads."""
    standings: Mapping[Partition, Standing] = field(default_factory=dict)
    began: Age | None = None
    """The table's age before the first commit of the job."""
    earlier: Mapping[Partition, tuple[Span, ...]] = field(default_factory=dict)
    """What was read before offsets were altered or reset by hand. A partition that is only here was reset."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """The tables that the batch was for, by name, with their ids; empty in marks of older versions."""
    joining: frozenset[str] = frozenset()
    """Those of them that had no mark before: this batch is their first."""
    gone: Mapping[str, int] = field(default_factory=dict)
    """Topics that did not exist any more, and for how many commits."""
    history: str = ""
    """The commit that last changed where partitions began (`first`, `earlier`)."""
    base: Counts | None = None
    """What was read before all partitions' counts begin, if only its sum is known: after a rollback over an
    offset that was moved by hand. Then nobody knows where the job began."""

    @property
    def offsets(self) -> Offsets:
        return Offsets({partition: standing.next for partition, standing in self.standings.items()})

    @property
    def start(self) -> Offsets:
        return Offsets({partition: standing.start for partition, standing in self.standings.items()})

    @property
    def pruned(self) -> frozenset[str]:
        """Topics that are gone for good; their positions are in the table property only. Not at once: a
        broker that is behind may deny a topic for a moment, and a rollback to then must not forget it."""
        return frozenset(topic for topic, commits in self.gone.items() if commits >= PRUNE_AFTER)

    @property
    def topics(self) -> frozenset[str]:
        """All topics that it says something of."""
        return frozenset(partition.topic for partition in self.standings).union(self.source.topics)

    @property
    def totals(self) -> Counts:
        counted = [at.counts for at in self.standings.values()]
        counted += [span.counts for spans in self.earlier.values() for span in spans]
        if self.base is not None:
            counted.append(self.base)
        return Counts(
            sum(counts.read for counts in counted),
            sum(counts.written for counts in counted),
            sum(counts.rejected for counts in counted),
            sum(counts.filtered for counts in counted),
        )

    def spans(self) -> dict[Partition, list[Span]]:
        """All that was ever read, in the order of reading."""
        found = {partition: list(spans) for partition, spans in self.earlier.items()}
        for partition, at in self.standings.items():
            found.setdefault(partition, []).append(Span(at.first, at.next, at.counts))
        return found
