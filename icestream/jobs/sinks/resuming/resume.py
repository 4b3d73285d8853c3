"""Where a job resumes, from what its tables and its consumer group say. Pure. Called by the sink manager.

The tables decide. The group follows, and may lag behind by the last batch: then Kafka has missed the dead
letters and events of that batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from icestream.api.batch import Batch
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, TopicIds, behind_until
from icestream.api.errors import LostOffsets, SourceRecreated
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.topics import GroupOffset

NOTE_PREFIX = "icestream:"


@dataclass(frozen=True)
class ResumePoint:
    """Where a job goes on; `starts[i]` is where target i does."""

    found: Sequence[FoundCheckpoint]
    starts: Sequence[Offsets]
    published: Offsets | None = None
    """Of a job that routes: where its consumer group is, which no batch moves back. See `routed_resume`."""

    @functools.cached_property
    def start(self) -> Offsets:
        """Where the next batch starts: the earliest that any table needs."""
        starts = self.starts if self.published is None else [self.published, *self.starts]
        if len(starts) == 1:
            return starts[0]
        partitions = {partition for start in starts for partition in start}
        return Offsets({partition: min(start[partition] for start in starts) for partition in partitions})

    def after(self, batch: Batch, checkpoints: Sequence[Checkpoint | None]) -> ResumePoint:
        """Where the job resumes once every table has the batch."""
        found = [
            replace(item, checkpoint=checkpoint, rolled_back_from=None, lost=None)
            for item, checkpoint in zip(self.found, checkpoints, strict=True)
        ]
        starts = [_reached(start, batch.end) for start in self.starts]
        published = None if self.published is None else _reached(self.published, batch.end)
        return ResumePoint(found, starts, published)

    def published_after(self, batch: Batch) -> Offsets:
        """Where the group is after a batch: never further back than it was."""
        if self.published is None:
            return batch.end
        return Offsets({p: max(batch.end[p], self.published[p]) for p in batch.end})

    @property
    def checkpoints(self) -> list[Checkpoint]:
        return [found.checkpoint for found in self.found if found.checkpoint]

    @property
    def targets(self) -> dict[str, str]:
        """The ids of the targets, for their checkpoints."""
        return {found.target: found.target_id for found in self.found}

    @property
    def joining(self) -> frozenset[str]:
        """The tables whose first batch is the next one."""
        return frozenset(found.target for found in self.found if found.checkpoint is None)


def _reached(start: Offsets, end: Offsets) -> Offsets:
    return Offsets({p: max(start[p], end[p]) if p in end else start[p] for p in start})


def resume_point(
    job: str, found: Sequence[FoundCheckpoint], group: Mapping[Partition, GroupOffset], fresh: Offsets
) -> ResumePoint:
    """`fresh` is where a job begins that nobody knows anything of."""
    known = [item.checkpoint for item in found if item.checkpoint]
    rolled_back = [item.rolled_back_from for item in found if item.rolled_back_from]
    forgets = all(item.follows_group for item in found)
    if not known and not rolled_back and not forgets and any(map(is_ours, group.values())):
        raise LostOffsets(
            f"group '{job}' has committed offsets of this job, but no table says how far it is: was the "
            "table dropped and created again? To read everything again, reset the connector's offsets; "
            "to go on, restore the table."
        )
    return ResumePoint(found, [_target_start(job, item, known, group, fresh) for item in found])


def is_ours(offset: GroupOffset) -> bool:
    return offset.note.startswith(NOTE_PREFIX)


def _target_start(
    job: str,
    found: FoundCheckpoint,
    known: Sequence[Checkpoint],
    group: Mapping[Partition, GroupOffset],
    fresh: Offsets,
) -> Offsets:
    """Where one table goes on."""
    if found.checkpoint:
        resume = _reached_by(found.checkpoint, behind_until(found), group)
        return Offsets({p: resume[p] if p in resume else fresh[p] for p in fresh})
    if found.rolled_back_from:
        return _where_it_began(job, found.rolled_back_from, fresh)
    if known:
        _refuse_lost_table(found, known)
        return _lowest([_start_for(found, checkpoint, known, group) for checkpoint in known], fresh)
    return Offsets(
        {partition: group[partition].next if partition in group else fresh[partition] for partition in fresh}
    )


def _where_it_began(job: str, checkpoint: Checkpoint, fresh: Offsets) -> Offsets:
    if checkpoint.base is not None:
        raise LostOffsets(
            f"a table of group '{job}' was rolled back to before the job's first commit, and an earlier "
            "rollback has lost where the job began. To read everything again, reset the connector's offsets; "
            "to go on, roll the table forward again."
        )
    first = {partition: at.first for partition, at in checkpoint.partitions.items()}
    return Offsets({partition: first.get(partition, fresh[partition]) for partition in fresh})


def _refuse_lost_table(found: FoundCheckpoint, known: Sequence[Checkpoint]) -> None:
    """Stop when a table without a checkpoint is, by the checkpoints of the others, not new."""
    for checkpoint in known:
        id_then = checkpoint.targets.get(found.target)
        if id_then is None:
            continue
        if id_then != found.target_id:
            why = f"was dropped and created again (its id was {id_then} and is {found.target_id})"
        elif found.target not in checkpoint.joining:
            why = "has lost what it knew of this job (its snapshots and its table property)"
        else:
            continue
        raise LostOffsets(
            f"table '{found.target}' {why}, so the rows that it had may be missing. To go on, restore it. To "
            "read everything again into all tables, reset the connector's offsets. To have this table begin "
            "where the others are, take it out of the config until the next commit, then add it again."
        )


def _start_for(
    found: FoundCheckpoint,
    checkpoint: Checkpoint,
    known: Sequence[Checkpoint],
    group: Mapping[Partition, GroupOffset],
) -> Offsets:
    """Where a table without a checkpoint begins, by the checkpoint of another."""
    if _missed_first(found, checkpoint, known):
        return checkpoint.start
    return _reached_by(checkpoint, checkpoint.behind, group)


def _reached_by(
    checkpoint: Checkpoint, behind: Mapping[Partition, int], group: Mapping[Partition, GroupOffset]
) -> Offsets:
    """How far a table is. One that had few records for it while the job routed has all that were, up to where
    the group is: see `routed_resume`. What was for others then does not become its own afterwards."""
    if not checkpoint.is_routed:
        return checkpoint.offsets
    ours = {p: at.next for p, at in group.items() if is_ours(at)}
    return Offsets(
        {
            p: max(at, ours.get(p, at)) if at >= behind.get(p, 0) else at
            for p, at in checkpoint.offsets.positions.items()
        }
    )


def _missed_first(found: FoundCheckpoint, checkpoint: Checkpoint, known: Sequence[Checkpoint]) -> bool:
    """Whether the batch of a sibling's checkpoint is the first one of this table, which did not get it."""
    if checkpoint.targets:
        return found.target in checkpoint.joining
    # Checkpoints of older versions do not tell their siblings.
    return all(one.previous is None for one in known)


def _lowest(candidates: Sequence[Offsets], fresh: Offsets) -> Offsets:
    return Offsets(
        {
            partition: min(
                (one[partition] for one in candidates if partition in one), default=fresh[partition]
            )
            for partition in fresh
        }
    )


def places_told_by_others(
    found: Sequence[FoundCheckpoint], group: Mapping[Partition, GroupOffset], partitions: Iterable[Partition]
) -> list[Partition]:
    """The partitions whose start a table without a checkpoint takes from the group, or from another table."""
    if all(item.checkpoint for item in found):
        return []
    checkpoints = [
        checkpoint for item in found for checkpoint in (item.checkpoint, item.rolled_back_from) if checkpoint
    ]
    return sorted(
        p for p in partitions if p in group or any(p in checkpoint.partitions for checkpoint in checkpoints)
    )


def has_all(found: Sequence[FoundCheckpoint]) -> bool:
    """Whether every table that the last batch was for has a checkpoint: those without one came later."""
    known = [item.checkpoint for item in found if item.checkpoint]
    return bool(known) and not any(
        item.rolled_back_from or any(_missed_first(item, checkpoint, known) for checkpoint in known)
        for item in found
        if item.checkpoint is None
    )


def moved_by_others(
    found: Sequence[FoundCheckpoint], group: Mapping[Partition, GroupOffset]
) -> dict[Partition, int]:
    """Where a group that targets follow was set by somebody else."""
    if not any(item.follows_group for item in found):
        return {}
    return {p: at.next for p, at in group.items() if not is_ours(at)}


def unpublished_batch(
    checkpoints: Sequence[Checkpoint], group: Mapping[Partition, GroupOffset], current: Iterable[Partition]
) -> Batch | None:
    """The batch that is in all tables and whose Kafka transaction is missing, if any."""
    if not checkpoints:
        return None
    # Partitions of a topic that the connector no longer reads have nothing to publish.
    partitions = set(current).intersection(*(set(checkpoint.partitions) for checkpoint in checkpoints))
    offsets = [_reached_by(checkpoint, checkpoint.behind, group) for checkpoint in checkpoints]
    reached = {partition: min(one[partition] for one in offsets) for partition in partitions}
    began = {
        partition: min(checkpoint.partitions[partition].start for checkpoint in checkpoints)
        for partition in partitions
    }
    if not group:
        # Nothing was published yet, or somebody deleted the offsets since. A batch before which the job had
        # read nothing is its first, also if it took several attempts to land in all tables.
        if any(at.start != at.first for checkpoint in checkpoints for at in checkpoint.partitions.values()):
            return None
        start = began
    else:
        start = {
            partition: group[partition].next if partition in group else began[partition]
            for partition in reached
        }
    if any(start[partition] < began[partition] for partition in reached):
        # Somebody moved the group's offsets by hand. The tables decide; nothing is repeated.
        return None
    start = {partition: min(start[partition], reached[partition]) for partition in reached}
    batch = Batch(checkpoints[0].commit, Offsets(start), Offsets(reached))
    return batch if batch.span else None


def refuse_other_source(
    job: str, checkpoints: Sequence[Checkpoint], source: TopicIds, reads: Iterable[str]
) -> None:
    """Stop when the cluster or a topic that is read is not the one whose offsets the tables hold."""
    refuse_other_cluster(checkpoints, source)
    for topic in reads:
        if (why := strange_topic(checkpoints, source, topic)) is not None:
            number = max(
                (p.number for checkpoint in checkpoints for p in checkpoint.partitions if p.topic == topic),
                default=0,
            )
            raise SourceRecreated(
                f"{why} To read all that the topic has now, set its offsets (`icestream connector offsets "
                f"set {job} {topic}:0=beginning`, and so on up to partition {number}), or reset the "
                "connector's offsets to read all topics again; to go on, restore the old topic."
            )


def refuse_other_cluster(checkpoints: Sequence[Checkpoint], source: TopicIds) -> None:
    for checkpoint in checkpoints:
        if checkpoint.source.cluster != source.cluster:
            raise SourceRecreated(
                f"the table has offsets of Kafka cluster {checkpoint.source.cluster}, and this is cluster "
                f"{source.cluster}. To read from this cluster, reset the connector's offsets; "
                "to go on, point bootstrap.servers at the old one."
            )


def strange_topic(checkpoints: Sequence[Checkpoint], source: TopicIds, topic: str) -> str | None:
    """Why the offsets that tables hold of a topic may mean other records than those that it has."""
    id_now = source.topics.get(topic)
    if id_now is None:
        return None
    for checkpoint in checkpoints:
        id_then = checkpoint.source.topics.get(topic, id_now)
        if id_then != id_now:
            return (
                f"topic '{topic}' was deleted and created again (its id was {id_then} and is {id_now}): its "
                "offsets mean other records."
            )
        if topic not in checkpoint.source.topics and any(p.topic == topic for p in checkpoint.partitions):
            return (
                f"the table has offsets of topic '{topic}' from when an older version read it, which kept no "
                "id of a topic that it stopped reading: whether this is the same topic cannot be told."
            )
    return None
