"""The mark that a job leaves in a table with every commit: how far it is, and of which source.

It is in the summary of the snapshot that makes the rows visible, and in a table property of the same commit,
because other people's `expire_snapshots` can remove the snapshot. docs/exactly-once.md tells the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from icestream.api.batch import Batch, Counts
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.connectors.iceberg.job_mark import Age, JobMark, Source, Span, Standing
from icestream.connectors.iceberg.mark_text import (
    mark_from_property,
    mark_from_summary,
    property_text,
    summary_text,
)

if TYPE_CHECKING:
    # For their names alone: jobs without tables start sooner.
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

__all__ = [
    "Age",
    "Found",
    "JobMark",
    "Source",
    "Span",
    "Standing",
    "find",
    "key_of",
    "mark_after",
    "mark_moved",
    "property_text",
    "summary_text",
]

_PREFIX = "icestream.job."


def key_of(job: str) -> str:
    """Summary key and table property of a job's mark."""
    return f"{_PREFIX}{job}"


def mark_after(
    before: JobMark | None,
    batch: Batch,
    counts: Mapping[Partition, Counts],
    source: Source,
    tables: Mapping[str, str] | None = None,
    joining: frozenset[str] = frozenset(),
) -> JobMark:
    """The mark of the commit of a batch. Partitions that the batch does not touch keep their standing.

    `source` has the ids of the topics that exist, of those that are read and those that were.
    """
    standings = {
        partition: Standing(at.first, at.next, at.next, at.counts)
        for partition, at in (before.standings.items() if before else ())
    }
    for partition, until in batch.end.positions.items():
        start, old = batch.start[partition], standings.get(partition)
        total = (old.counts if old else Counts()) + counts.get(partition, Counts())
        # A table that was ahead of the job's other tables stays where it is.
        reached = max(old.next, until) if old else until
        standings[partition] = Standing(old.first if old else start, start, reached, total)
    if before is None:
        return JobMark(
            batch.id, None, source, standings, tables=tables or {}, joining=joining, history=batch.id
        )
    return replace(
        before,
        commit=batch.id,
        previous=before.commit,
        source=Source(source.cluster, _ids({p.topic for p in before.standings}, before.source, source)),
        standings=standings,
        tables=tables or {},
        joining=joining,
        gone=_gone(before, standings, source),
    )


def _ids(kept: set[str], before: Source, now: Source) -> dict[str, str]:
    """Topic ids: of those with positions that are `kept` the ids that these are of, of others today's."""
    ids = {topic: id_ for topic, id_ in now.topics.items() if id_ and topic not in kept}
    return ids | {topic: before.topics[topic] for topic in kept if topic in before.topics}


def _gone(before: JobMark, standings: Mapping[Partition, Standing], now: Source) -> dict[str, int]:
    """Topics with positions that do not exist, and for how many commits."""
    absent = {partition.topic for partition in standings}.difference(now.topics)
    return {topic: before.gone.get(topic, 0) + 1 for topic in sorted(absent)}


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
    anew = _moved_anew(before, moves, source)
    # A topic that was created anew may have fewer partitions: what was read of the others is told as well.
    lost = dict.fromkeys(partition for partition in standings if partition.topic in anew)
    for partition, target in {**lost, **moves}.items():
        old = standings.get(partition) or _begun(floor[partition])
        if target == old.next and partition in standings and partition.topic not in anew:
            continue
        if old.next > old.first:
            earlier[partition] = (*earlier.get(partition, ()), Span(old.first, old.next, old.counts))
        elif target is not None and target > old.next and partition not in earlier:
            # Nothing was read yet: only this will tell from where on records were skipped.
            earlier[partition] = (Span(old.next, old.next, Counts()),)
        standings.pop(partition, None)
        if target is not None:
            standings[partition] = _begun(target)
    if before is None or not before.joining:
        standings = {partition: replace(at, start=at.next) for partition, at in standings.items()}
    if before is None:
        return JobMark(commit, None, source, standings, earlier=earlier, history=commit)
    kept = {partition.topic for partition in standings}.difference(partition.topic for partition in moves)
    return replace(
        before,
        commit=commit,
        previous=before.commit,
        source=Source(source.cluster, _ids(kept, before.source, source)),
        standings=standings,
        earlier=_told_gone(earlier, before.source, source),
        gone=_gone(before, standings, source),
        history=commit,
    )


def _moved_anew(
    before: JobMark | None, moves: Mapping[Partition, int | None], source: Source
) -> frozenset[str]:
    """Topics among those that are moved that are not the ones whose offsets the mark has."""
    known = before.source.topics if before else {}
    topics = {partition.topic for partition in moves if partition.topic in known}
    return frozenset(topic for topic in topics if source.topics.get(topic) != known[topic])


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
    name: str = ""
    """The table's."""
    table_id: str = ""
    """Iceberg's own id of the table: another one if it is dropped and created again."""

    @property
    def offsets(self) -> Offsets:
        return self.mark.offsets if self.mark else NOTHING


def find(metadata: TableMetadata, job: str, branch: str) -> Found:
    """The mark of the nearest ancestor that has one; the table property if the history is cut."""
    key = key_of(job)
    snapshot = metadata.snapshot_by_name(branch)
    noted = metadata.properties.get(key)
    remembered = mark_from_property(noted) if noted else None
    by_id: dict[int, Snapshot] | None = None
    while snapshot is not None:
        text = snapshot.summary.additional_properties.get(key) if snapshot.summary else None
        if text:
            return Found(mark_from_summary(text, remembered))
        if snapshot.parent_snapshot_id is None:
            return _without_mark(remembered, snapshot)
        by_id = by_id or {one.snapshot_id: one for one in metadata.snapshots}
        snapshot = by_id.get(snapshot.parent_snapshot_id)
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
