"""The mark that a job leaves in a table with every commit: how far it is, and of which source.

It is in the summary of the snapshot that makes the rows visible, and in a table property of the same commit,
because other people's `expire_snapshots` can remove the snapshot. docs/exactly-once.md tells the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from icestream.api.batch import Batch, Counts
from icestream.api.offsets import NOTHING, Offsets, Partition

if TYPE_CHECKING:
    # For their names alone: jobs without tables start sooner.
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_PREFIX = "icestream.job."


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


@dataclass(frozen=True)
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
    standings: Mapping[Partition, Standing] = field(default_factory=dict)
    began: Age | None = None
    """The table's age before the first commit of the job."""
    earlier: Mapping[Partition, tuple[Span, ...]] = field(default_factory=dict)
    """What was read before offsets were altered or reset by hand. A partition that is only here was reset."""

    @property
    def offsets(self) -> Offsets:
        return Offsets({partition: standing.next for partition, standing in self.standings.items()})

    @property
    def start(self) -> Offsets:
        return Offsets({partition: standing.start for partition, standing in self.standings.items()})

    @property
    def totals(self) -> Counts:
        return sum((span.counts for spans in self.spans().values() for span in spans), Counts())

    def spans(self) -> dict[Partition, list[Span]]:
        """All that was ever read, in the order of reading."""
        found = {partition: list(spans) for partition, spans in self.earlier.items()}
        for partition, at in self.standings.items():
            found.setdefault(partition, []).append(Span(at.first, at.next, at.counts))
        return found

    def to_json(self) -> str:
        partitions: dict[str, dict[str, list[int]]] = {}
        for partition, standing in sorted(self.standings.items()):
            partitions.setdefault(partition.topic, {})[str(partition.number)] = [
                standing.first,
                standing.start,
                standing.next,
                *_numbers(standing.counts),
            ]
        body: dict[str, Any] = {
            "commit": self.commit,
            "previous": self.previous,
            "cluster": self.source.cluster,
            "topics": dict(self.source.topics),
            "partitions": partitions,
            "began": [self.began.sequence, self.began.ms] if self.began else None,
        }
        earlier: dict[str, dict[str, list[list[int]]]] = {}
        for partition, spans in sorted(self.earlier.items()):
            earlier.setdefault(partition.topic, {})[str(partition.number)] = [
                [span.first, span.next, int(span.is_gone), *_numbers(span.counts)] for span in spans
            ]
        if earlier:
            body["earlier"] = earlier
        return json.dumps(body, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> JobMark:
        body = json.loads(text)
        standings = {
            Partition(topic, int(number)): Standing(values[0], values[1], values[2], Counts(*values[3:]))
            for topic, partitions in body["partitions"].items()
            for number, values in partitions.items()
        }
        source = Source(body["cluster"], body["topics"])
        began = Age(*body["began"]) if body.get("began") else None
        earlier = {
            Partition(topic, int(number)): tuple(
                Span(first, next_, Counts(*counts), bool(gone)) for first, next_, gone, *counts in spans
            )
            for topic, partitions in body.get("earlier", {}).items()
            for number, spans in partitions.items()
        }
        return cls(body["commit"], body["previous"], source, standings, began, earlier)


def _numbers(counts: Counts) -> list[int]:
    return [counts.read, counts.written, counts.rejected, counts.filtered]


def key_of(job: str) -> str:
    """Summary key and table property of a job's mark."""
    return f"{_PREFIX}{job}"


def mark_after(
    before: JobMark | None, batch: Batch, counts: Mapping[Partition, Counts], source: Source
) -> JobMark:
    """The mark of the commit of a batch. Partitions that the batch does not touch keep their standing."""
    standings = {
        partition: replace(standing, start=standing.next)
        for partition, standing in (before.standings.items() if before else ())
    }
    for partition in batch.end:
        start, until = batch.start[partition], batch.end[partition]
        old = standings.get(partition)
        total = (old.counts if old else Counts()) + counts.get(partition, Counts())
        # A table that was ahead of the job's other tables stays where it is.
        reached = max(old.next, until) if old else until
        standings[partition] = Standing(old.first if old else start, start, reached, total)
    if before is None:
        return JobMark(batch.id, None, source, standings)
    return JobMark(batch.id, before.commit, source, standings, before.began, before.earlier)


def mark_moved(
    before: JobMark | None,
    commit: str,
    moves: Mapping[Partition, int | None],
    source: Source,
    floor: Offsets,
) -> JobMark:
    """The mark of a commit without rows: somebody moved these partitions. None: to their beginning, wherever
    that will be when the job goes on. `floor` is where the table would have gone on."""
    standings = dict(before.standings) if before else {p: _begun(floor[p]) for p in floor}
    earlier = dict(before.earlier) if before else {}
    for partition, target in moves.items():
        old = standings.get(partition) or _begun(floor[partition])
        if target == old.next and partition in standings:
            continue
        if old.next > old.first:
            earlier[partition] = (*earlier.get(partition, ()), Span(old.first, old.next, old.counts))
        elif target is not None and target > old.next and partition not in earlier:
            # Nothing was read yet: only this will tell from where on records were skipped.
            earlier[partition] = (Span(old.next, old.next, Counts()),)
        standings.pop(partition, None)
        if target is not None:
            standings[partition] = _begun(target)
    standings = {partition: replace(at, start=at.next) for partition, at in standings.items()}
    if before is None:
        return JobMark(commit, None, source, standings, earlier=earlier)
    return JobMark(
        commit, before.commit, source, standings, before.began, _told_gone(earlier, before.source, source)
    )


def _begun(at: int) -> Standing:
    return Standing(at, at, at, Counts())


def _told_gone(
    earlier: Mapping[Partition, tuple[Span, ...]], before: Source, now: Source
) -> dict[Partition, tuple[Span, ...]]:
    """The spans, with those marked whose topic does not exist any more or was created anew."""
    return {
        partition: spans
        if before.cluster == now.cluster
        and before.topics.get(partition.topic) in (None, now.topics.get(partition.topic))
        else tuple(replace(span, is_gone=True) for span in spans)
        for partition, spans in earlier.items()
    }


@dataclass(frozen=True)
class Found:
    """What a table says of a job; `rolled_back_from` if it was rolled back to before the first commit."""

    mark: JobMark | None
    rolled_back_from: JobMark | None = None

    @property
    def offsets(self) -> Offsets:
        return self.mark.offsets if self.mark else NOTHING


def find(metadata: TableMetadata, job: str, branch: str) -> Found:
    """The mark of the nearest ancestor that has one; the table property if the history is cut."""
    key = key_of(job)
    snapshot = metadata.snapshot_by_name(branch)
    noted = metadata.properties.get(key)
    remembered = JobMark.from_json(noted) if noted else None
    while snapshot is not None:
        text = snapshot.summary.additional_properties.get(key) if snapshot.summary else None
        if text:
            return Found(JobMark.from_json(text))
        if snapshot.parent_snapshot_id is None:
            return _without_mark(remembered, snapshot)
        snapshot = metadata.snapshot_by_id(snapshot.parent_snapshot_id)
        if snapshot is None:
            return Found(remembered)
    # No snapshot on this branch: a rollback leaves one, so only expiry or a fresh table can be the reason.
    return Found(remembered)


def _without_mark(remembered: JobMark | None, oldest: Snapshot) -> Found:
    """What a history without a mark means, by its oldest snapshot, which has no parent."""
    if remembered is None or remembered.began is None or remembered.began.covers(oldest):
        # It reaches back to before the job, and the job is not in it: somebody rolled the table back.
        return Found(None, rolled_back_from=remembered)
    # PyIceberg's expiry takes the parent away from the oldest snapshot that it leaves: the history is cut.
    return Found(remembered)
