"""Which targets of a batch are committed, and with which checkpoint, where not every target gets every
record. Pure. Called by the sink manager."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from icestream.api.checkpoint import (
    Checkpoint,
    FoundCheckpoint,
    TopicIds,
    behind_until,
    checkpoint_after,
    routed_checkpoint_after,
)
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Routing
from icestream.jobs.sinks.batches.staging import StagedBatch
from icestream.jobs.sinks.resuming.resume import ResumePoint


def needs_commit(staged: StagedBatch, found: FoundCheckpoint, start: Offsets, resume: ResumePoint) -> bool:
    """Whether a target gets a commit of the batch."""
    if resume.published is None:
        # A target may be ahead of the others and have all of it.
        return any(staged.batch.end[p] > start[p] for p in staged.batch.end)
    mine = staged.staged(found.target)
    is_behind = found.checkpoint is not None and found.checkpoint.is_behind
    was_rolled_back = found.lost is not None or found.rolled_back_from is not None
    # One that is behind says with each commit how far it is: the group does not tell.
    return bool(mine.rows) or is_behind or was_rolled_back


def checkpoint_of(
    found: FoundCheckpoint,
    start: Offsets,
    staged: StagedBatch,
    resume: ResumePoint,
    ids: TopicIds,
    routing: Routing | None,
    leaderless: Collection[Partition] = (),
) -> Checkpoint:
    """The checkpoint of a target's commit."""
    counts = staged.staged(found.target).counts
    if resume.published is None:
        after = checkpoint_after(found.checkpoint, staged.batch, counts, ids, resume.targets, resume.joining)
        return _still_behind(after, found) if after.is_routed else after
    getting = frozenset(name for name, one in staged.result.staged.items() if one.rows)
    named_by_config = routing is not None and not routing.grows
    known = {
        item.target: item.target_id
        for item in resume.found
        if item.target in getting or (named_by_config and item.checkpoint)
    }
    return routed_checkpoint_after(
        found, staged.batch, counts, ids, known, getting, start, resume.published, leaderless
    )


def _still_behind(after: Checkpoint, found: FoundCheckpoint) -> Checkpoint:
    """Of a job that routed once: what a target that was rolled back lacks is not taken for read."""
    offsets = after.offsets
    behind = {p: until for p, until in behind_until(found).items() if (offsets.get(p) or 0) < until}
    return replace(after, behind=behind)


def not_published_yet(staged: StagedBatch, resume: ResumePoint) -> StagedBatch:
    """Without the rejected records that the group is past: their dead letters are published. A batch begins
    before the group where a target was rolled back."""
    published = resume.published
    if published is None or not staged.result.rejected:
        return staged
    left = [one for one in staged.result.rejected if one.offset >= published[one.partition]]
    return replace(staged, result=replace(staged.result, rejected=left))
