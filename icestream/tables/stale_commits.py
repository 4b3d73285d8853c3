"""The half of a commit's compare-and-set that is the same for every kind of table: the job must be where it
was when the batch was planned. Called by the sinks of tables, on the state that they commit to."""

from __future__ import annotations

from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import CommitConflict
from icestream.api.offsets import NOTHING
from icestream.api.sink import Commit


def refuse_other_offsets(table: str, found: FoundCheckpoint, commit: Commit) -> None:
    """CommitConflict unless the job is where it was when the batch was planned."""
    expect = commit.expect.offsets if commit.expect else NOTHING
    if found.offsets != expect:
        raise CommitConflict(
            f"{table} is at {found.offsets.to_json()}, not at {expect.to_json()}: somebody else committed"
        )
    # Offsets alone do not tell: after a reset the job comes by the same ones again.
    refuse_other_commit(table, found, commit)
    if commit.checkpoint.is_routed and found.lost_commit != commit.expect_lost:
        raise CommitConflict(f"{table} was rolled back while a batch was written")


def refuse_other_commit(table: str, found: FoundCheckpoint, commit: Commit) -> None:
    """CommitConflict unless the job's last commit is the one before this."""
    if (found.checkpoint.commit if found.checkpoint else None) != commit.checkpoint.previous:
        raise CommitConflict(f"{table} has another commit of the job: somebody else committed")
