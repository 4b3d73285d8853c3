"""Where a job that routes resumes: one whose targets get a part of the records each. Pure. Called by
`resume_finder`.

A target that got no rows in a batch is not committed, so its checkpoint alone does not say how far it is. Two
things hold after every step, and a crash between any two of them leaves both true:

1. a target has every record that is for it before its own checkpoint;
2. all targets have every record that is for them before the consumer group's offsets, which are published
   after the commits of a batch; except a target that somebody rolled back.

So a target takes rows from the later of the two on, and the job reads from where the group is. A target that
somebody rolled back begins at its checkpoint, wherever the group is, until it has again what it has lost: its
own checkpoints say up to where. The group could not: a manager that was fenced may take an old position of it
for the last one. docs/exactly-once.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, behind_until
from icestream.api.errors import LostOffsets
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.resuming.resume import ResumePoint
from icestream.kafka.topics import GroupOffset


def routed_resume_point(
    job: str, found: Sequence[FoundCheckpoint], group: Mapping[Partition, GroupOffset], fresh: Offsets
) -> ResumePoint:
    """`fresh` is where a partition begins that nobody knows anything of."""
    published = Offsets({p: group[p].next if p in group else _landed(p, found, fresh[p]) for p in fresh})
    refuse_lost_targets(found)
    return ResumePoint(found, [floor_of(job, item, published) for item in found], published)


def _landed(partition: Partition, found: Sequence[FoundCheckpoint], fresh: int) -> int:
    """Up to where all targets certainly have what is for them, of a partition that the group has lost.

    Each commit notes where the group was. If all targets of the newest batch have it, it is where that ends;
    but not of the job's first batch, of which Kafka may have missed the dead letters.
    """
    known = [item.checkpoint for item in found if item.checkpoint and partition in item.checkpoint.partitions]
    if not known:
        return fresh
    newest = max(known, key=lambda one: (one.partitions[partition].start, one.partitions[partition].next))
    at = newest.partitions[partition]
    commits = {item.target: item.checkpoint.commit for item in found if item.checkpoint}
    is_whole = bool(newest.joining) and all(commits.get(name) == newest.commit for name in newest.joining)
    is_first = at.start == min(one.partitions[partition].first for one in known)
    return at.start if is_first or newest.is_behind or not is_whole else max(at.start, at.next)


def floor_of(job: str, found: FoundCheckpoint, published: Offsets) -> Offsets:
    """From where on a target takes rows: it has all that is for it before."""
    if found.checkpoint is None:
        lost = found.rolled_back_from
        if lost is None:
            return published
        if lost.base is not None:
            raise LostOffsets(
                f"table '{found.target}' of '{job}' was rolled back to before the job's first commit, and an "
                "earlier rollback has lost where the job began. To go on, roll the table forward again; to "
                "read everything again, reset the connector's offsets."
            )
        return Offsets({p: _first(lost, p, published[p]) for p in published})
    offsets, behind = found.checkpoint.offsets, behind_until(found)
    floors = {}
    for p in published:
        began = published[p] if found.lost is None else _first(found.lost, p, published[p])
        at = _at(offsets, p, began)
        # What it has lost ends where it was: after that, it has all that is for it up to where the group is.
        floors[p] = at if at < behind.get(p, 0) else max(at, published[p])
    return Offsets(floors)


def _first(lost: Checkpoint, partition: Partition, otherwise: int) -> int:
    """Where a target began to take rows of a partition."""
    return lost.partitions[partition].first if partition in lost.partitions else otherwise


def _at(offsets: Offsets, partition: Partition, otherwise: int) -> int:
    at = offsets.get(partition)
    return otherwise if at is None else at


def refuse_lost_targets(found: Sequence[FoundCheckpoint]) -> None:
    """Stop when a target without a checkpoint is, by what the others knew of it, not the one that it was."""
    known = [item.checkpoint for item in found if item.checkpoint]
    for item in found:
        if item.checkpoint is not None or item.rolled_back_from is not None:
            continue
        for checkpoint in known:
            id_then = checkpoint.targets.get(item.target, item.target_id)
            if id_then != item.target_id:
                raise LostOffsets(
                    f"table '{item.target}' was dropped and created again (its id was {id_then} and is "
                    f"{item.target_id}), so the rows that it had may be missing. To go on, restore it. To "
                    "read everything again into all tables, reset the connector's offsets."
                )


def waits_for_leader(found: Iterable[FoundCheckpoint], leaderless: Iterable[Partition]) -> list[Partition]:
    """Partitions without a leader of which a table that was rolled back must know where it began: its next
    commit takes the place of what tells that."""
    lost = [item.lost or item.rolled_back_from for item in found]
    return sorted(p for p in leaderless if any(one is not None and p in one.partitions for one in lost))
