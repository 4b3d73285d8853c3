"""A job's checkpoint: how far it is in each partition, of which source, for which targets.

Every commit to a target (a table, a prefix, a file) stores one beside its rows; the sink manager resumes from
it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Final

from icestream.api.batch import Batch, Counts
from icestream.api.offsets import NOTHING, Offsets, Partition

_FORMAT: Final = 1
PRUNE_AFTER: Final = 100
"""Commits."""


@dataclass(frozen=True)
class TopicIds:
    """Of a Kafka cluster and of its topics: ids that change when one is created anew under the same name."""

    cluster: str
    topics: Mapping[str, str]


@dataclass(frozen=True)
class ReadSpan:
    """Offsets that the job read from `first` up to `next`, before somebody moved it elsewhere."""

    first: int
    next: int
    counts: Counts
    is_gone: bool = False
    """Of a topic that was deleted since: its offsets mean records that nobody can count again."""


@dataclass(frozen=True, slots=True)
class PartitionCheckpoint:
    """One partition. Counts are totals since the job's first batch, or since it was moved here by hand."""

    first: int
    """Where the job began to read."""
    start: int
    """Where the batch of this commit began."""
    next: int
    counts: Counts


@dataclass(frozen=True)
class Checkpoint:
    """What one commit says of the job, for all that the target has of it."""

    commit: str
    previous: str | None
    source: TopicIds
    """Ids of all topics that the checkpoint has positions of, also of those that the job no longer reads."""
    partitions: Mapping[Partition, PartitionCheckpoint] = field(default_factory=dict)
    earlier: Mapping[Partition, tuple[ReadSpan, ...]] = field(default_factory=dict)
    """What was read before offsets were altered or reset by hand. A partition that is only here was reset."""
    targets: Mapping[str, str] = field(default_factory=dict)
    """The targets that the batch was for, by name, with their ids; empty in checkpoints of older versions."""
    joining: frozenset[str] = frozenset()
    """Those of them that had no checkpoint before: this batch is their first."""
    gone: Mapping[str, int] = field(default_factory=dict)
    """Topics that did not exist any more, and for how many commits."""
    history: str = ""
    """The commit that last changed where partitions began (`first`, `earlier`)."""
    base: Counts | None = None
    """What was read before all partitions' counts begin, if only its sum is known: after a rollback over an
    offset that was moved by hand. Then nobody knows where the job began."""
    is_routed: bool = False
    """Of a job that routes: counts are of what was for this target, `start` is where the consumer group was,
    and `joining` has the targets that get rows of this batch, unless this one has more than the batch."""
    behind: Mapping[Partition, int] = field(default_factory=dict)
    """Of a job that routes: up to where the target lacks rows, because somebody rolled it back from there."""

    @property
    def offsets(self) -> Offsets:
        return Offsets({partition: at.next for partition, at in self.partitions.items()})

    @property
    def is_behind(self) -> bool:
        return bool(self.behind)

    @property
    def start(self) -> Offsets:
        return Offsets({partition: at.start for partition, at in self.partitions.items()})

    @property
    def pruned(self) -> frozenset[str]:
        """Topics that are gone for good; a target may keep them in one place only. Not at once: a
        broker that is behind may deny a topic for a moment, and a rollback to then must not forget it."""
        return frozenset(topic for topic, commits in self.gone.items() if commits >= PRUNE_AFTER)

    @property
    def topics(self) -> frozenset[str]:
        """All topics that it says something of."""
        return frozenset(partition.topic for partition in self.partitions).union(self.source.topics)

    @property
    def totals(self) -> Counts:
        counted = [at.counts for at in self.partitions.values()]
        counted += [span.counts for spans in self.earlier.values() for span in spans]
        if self.base is not None:
            counted.append(self.base)
        return Counts(
            sum(counts.read for counts in counted),
            sum(counts.written for counts in counted),
            sum(counts.rejected for counts in counted),
            sum(counts.filtered for counts in counted),
        )

    def spans(self) -> dict[Partition, list[ReadSpan]]:
        """All that was ever read, in the order of reading."""
        found = {partition: list(spans) for partition, spans in self.earlier.items()}
        for partition, at in self.partitions.items():
            found.setdefault(partition, []).append(ReadSpan(at.first, at.next, at.counts))
        return found


@dataclass(frozen=True)
class FoundCheckpoint:
    """What a target says of a job; `rolled_back_from` if it was rolled back to before the first commit."""

    checkpoint: Checkpoint | None
    rolled_back_from: Checkpoint | None = None
    target: str = ""
    """The target's name."""
    target_id: str = ""
    """Its own id: another one if it is dropped and created again."""
    follows_group: bool = False
    """Without a checkpoint it goes on where the consumer group is, as sinks of Kafka Connect do: it keeps
    none, or may lose it without losing rows."""
    is_missing: bool = False
    """The target does not exist yet, and `create` makes it."""
    lost: Checkpoint | None = None
    """A later checkpoint that the target once had: somebody rolled it back to `checkpoint`."""

    @property
    def offsets(self) -> Offsets:
        return self.checkpoint.offsets if self.checkpoint else NOTHING

    @property
    def lost_commit(self) -> str | None:
        """The last commit of the job that somebody rolled the target back from."""
        lost = self.lost or self.rolled_back_from
        return lost.commit if lost is not None else None


def checkpoint_after(
    before: Checkpoint | None,
    batch: Batch,
    counts: Mapping[Partition, Counts],
    source: TopicIds,
    targets: Mapping[str, str] | None = None,
    joining: frozenset[str] = frozenset(),
) -> Checkpoint:
    """The checkpoint of the commit of a batch. Partitions that the batch does not touch keep their at.

    `source` has the ids of the topics that exist, of those that are read and those that were.
    """
    partitions = {
        partition: PartitionCheckpoint(at.first, at.next, at.next, at.counts)
        for partition, at in (before.partitions.items() if before else ())
    }
    for partition, until in batch.end.positions.items():
        start, old = batch.start[partition], partitions.get(partition)
        total = (old.counts if old else Counts()) + counts.get(partition, Counts())
        # A table that was ahead of the job's other tables stays where it is.
        reached = max(old.next, until) if old else until
        partitions[partition] = PartitionCheckpoint(old.first if old else start, start, reached, total)
    if before is None:
        return Checkpoint(
            batch.id, None, source, partitions, targets=targets or {}, joining=joining, history=batch.id
        )
    return replace(
        before,
        commit=batch.id,
        previous=before.commit,
        source=TopicIds(source.cluster, _ids({p.topic for p in before.partitions}, before.source, source)),
        partitions=partitions,
        targets=targets or {},
        joining=joining,
        gone=_gone(before, partitions, source),
    )


def behind_until(found: FoundCheckpoint) -> dict[Partition, int]:
    """Up to where a target lacks rows that it once had, or that it was to get again."""
    lost = found.lost or found.rolled_back_from
    known = [one for one in (found.checkpoint, lost) if one is not None]
    until: dict[Partition, int] = {}
    for partition, position in (
        *(item for one in known for item in one.behind.items()),
        *(lost.offsets.positions.items() if lost else ()),
    ):
        until[partition] = max(position, until.get(partition, 0))
    return until


def routed_checkpoint_after(
    found: FoundCheckpoint,
    batch: Batch,
    counts: Mapping[Partition, Counts],
    source: TopicIds,
    targets: Mapping[str, str],
    getting_rows: frozenset[str],
    floor: Offsets,
    published: Offsets,
    leaderless: Collection[Partition] = (),
) -> Checkpoint:
    """The checkpoint of one target of a job that routes. Its counts are of what was routed to it.

    `floor` is from where on the target takes rows: it has all that is for it before. `published` is where the
    consumer group is: before that, every target has all that is for it, but those that are behind.
    `leaderless` are read by the job, and not in the batch.
    """
    before = found.checkpoint
    after = checkpoint_after(before, batch, counts, source, targets, getting_rows)
    partitions = {}
    for partition, at in after.partitions.items():
        old = before.partitions.get(partition) if before else None
        if partition not in floor:
            # Without a leader, so not in the batch: it stays as it was.
            partitions[partition] = old or at
            continue
        partitions[partition] = PartitionCheckpoint(
            old.first if old else floor[partition],
            published[partition],
            max(at.next, floor[partition]),
            at.counts,
        )
    behind = {
        partition: until
        for partition, until in behind_until(found).items()
        if partition not in partitions or partitions[partition].next < until
    }
    if any(partitions[partition].next > batch.end[partition] for partition in batch.end):
        # Where it is does not tell where the batch ended: it had this from an attempt that died.
        getting_rows = frozenset()
    if any(p in partitions and partitions[p].start < partitions[p].next for p in leaderless):
        # What it says of these is of an earlier batch: whether all have that, those of this one do not tell.
        getting_rows = frozenset()
    return replace(after, partitions=partitions, joining=getting_rows, is_routed=True, behind=behind)


def _ids(kept: set[str], before: TopicIds, now: TopicIds) -> dict[str, str]:
    """Topic ids: of those with positions that are `kept` the ids that these are of, of others today's."""
    ids = {topic: id_ for topic, id_ in now.topics.items() if id_ and topic not in kept}
    return ids | {topic: before.topics[topic] for topic in kept if topic in before.topics}


def _gone(
    before: Checkpoint, partitions: Mapping[Partition, PartitionCheckpoint], now: TopicIds
) -> dict[str, int]:
    """Topics with positions that do not exist, and for how many commits."""
    absent = {partition.topic for partition in partitions}.difference(now.topics)
    return {topic: before.gone.get(topic, 0) + 1 for topic in sorted(absent)}


def checkpoint_moved(
    before: Checkpoint | None,
    commit: str,
    moves: Mapping[Partition, int | None],
    source: TopicIds,
    start: Offsets,
) -> Checkpoint:
    """The checkpoint of a commit without rows: somebody moved these partitions.

    None: to their beginning, wherever that will be when the job goes on. `start` is where the target would
    have gone on."""
    partitions = dict(before.partitions) if before else {p: _begun(start[p]) for p in start}
    earlier = dict(before.earlier) if before else {}
    anew = _moved_anew(before, moves, source)
    # A topic that was created anew may have fewer partitions: what was read of the others is told as well.
    lost = dict.fromkeys(partition for partition in partitions if partition.topic in anew)
    for partition, target in {**lost, **moves}.items():
        old = partitions.get(partition) or _begun(start[partition])
        if target == old.next and partition in partitions and partition.topic not in anew:
            continue
        if old.next > old.first:
            earlier[partition] = (*earlier.get(partition, ()), ReadSpan(old.first, old.next, old.counts))
        elif target is not None and target > old.next and partition not in earlier:
            # Nothing was read yet: only this will tell from where on records were skipped.
            earlier[partition] = (ReadSpan(old.next, old.next, Counts()),)
        partitions.pop(partition, None)
        if target is not None:
            partitions[partition] = _begun(target)
    if before is None or not before.joining:
        partitions = {partition: replace(at, start=at.next) for partition, at in partitions.items()}
    if before is None:
        return Checkpoint(commit, None, source, partitions, earlier=earlier, history=commit)
    kept = {partition.topic for partition in partitions}.difference(partition.topic for partition in moves)
    return replace(
        before,
        commit=commit,
        previous=before.commit,
        source=TopicIds(source.cluster, _ids(kept, before.source, source)),
        partitions=partitions,
        earlier=_told_gone(earlier, before.source, source),
        behind={p: until for p, until in before.behind.items() if p not in moves and p not in lost},
        gone=_gone(before, partitions, source),
        history=commit,
    )


def _moved_anew(
    before: Checkpoint | None, moves: Mapping[Partition, int | None], source: TopicIds
) -> frozenset[str]:
    """Topics among those that are moved that are not the ones whose offsets the checkpoint has."""
    known = before.source.topics if before else {}
    topics = {partition.topic for partition in moves if partition.topic in known}
    return frozenset(topic for topic in topics if source.topics.get(topic) != known[topic])


def _begun(at: int) -> PartitionCheckpoint:
    return PartitionCheckpoint(at, at, at, Counts())


def _told_gone(
    earlier: Mapping[Partition, tuple[ReadSpan, ...]], before: TopicIds, now: TopicIds
) -> dict[Partition, tuple[ReadSpan, ...]]:
    """The spans, with those marked whose topic does not exist any more or was created anew."""
    return {
        partition: spans
        if before.cluster == now.cluster
        and before.topics.get(partition.topic) in (None, now.topics.get(partition.topic))
        else tuple(replace(span, is_gone=True) for span in spans)
        for partition, spans in earlier.items()
    }


def to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as plain JSON, for targets that have no shorter form of their own."""
    return {
        "format": _FORMAT,
        "commit": checkpoint.commit,
        "previous": checkpoint.previous,
        "cluster": checkpoint.source.cluster,
        "topics": dict(checkpoint.source.topics),
        "partitions": [
            [*partition, at.first, at.start, at.next, *astuple(at.counts)]
            for partition, at in sorted(checkpoint.partitions.items())
        ],
        "earlier": [
            [*partition, [[one.first, one.next, one.is_gone, *astuple(one.counts)] for one in spans]]
            for partition, spans in sorted(checkpoint.earlier.items())
        ],
        "targets": dict(checkpoint.targets),
        "joining": sorted(checkpoint.joining),
        "gone": dict(checkpoint.gone),
        "history": checkpoint.history,
        "base": list(astuple(checkpoint.base)) if checkpoint.base is not None else None,
        "routed": checkpoint.is_routed,
        "behind": [[*partition, until] for partition, until in sorted(checkpoint.behind.items())],
    }


def from_json(stored: Mapping[str, Any]) -> Checkpoint:
    """What `to_json` wrote; ValueError if a newer version did."""
    if stored["format"] != _FORMAT:
        raise ValueError(f"the checkpoint has format {stored['format']}, and this version reads {_FORMAT}")
    return Checkpoint(
        stored["commit"],
        stored["previous"],
        TopicIds(stored["cluster"], stored["topics"]),
        {
            Partition(topic, number): PartitionCheckpoint(first, start, next_, Counts(*counts))
            for topic, number, first, start, next_, *counts in stored["partitions"]
        },
        {
            Partition(topic, number): tuple(
                ReadSpan(first, next_, Counts(*counts), gone) for first, next_, gone, *counts in spans
            )
            for topic, number, spans in stored["earlier"]
        },
        stored["targets"],
        frozenset(stored["joining"]),
        stored["gone"],
        stored["history"],
        Counts(*stored["base"]) if stored["base"] is not None else None,
        stored.get("routed", False),
        {Partition(topic, number): until for topic, number, until in stored.get("behind", ())},
    )
