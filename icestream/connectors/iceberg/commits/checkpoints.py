"""The checkpoint that a job leaves in a table with every commit: how far it is, and of which source.

It is in the summary of the snapshot that makes the rows visible, and in a table property of the same commit,
because other people's `expire_snapshots` can remove the snapshot. docs/exactly-once.md tells the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from icestream.api.checkpoint import FoundCheckpoint
from icestream.connectors.iceberg.commits.checkpoint_text import (
    TableCheckpoint,
    checkpoint_from_property,
    checkpoint_from_summary,
)

if TYPE_CHECKING:
    # For their names alone: PyIceberg is slow to import.
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_PREFIX = "icestream.job."
_JAVAS = "kafka.connect.offsets."
JAVA_SINCE = "icestream.maintenance.java-since"
"""Summary key of a snapshot that carries on what others say: which offsets of Java's sink are newer than the
checkpoint of a job, by the keys of both."""


def key_of(job: str) -> str:
    """Summary key and table property of a job's checkpoint."""
    return f"{_PREFIX}{job}"


def head_of(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """What a branch has; one that does not exist begins where the main branch is, as with Java's sink."""
    if branch in metadata.refs:
        return metadata.snapshot_by_name(branch)
    return metadata.current_snapshot()


def find(metadata: TableMetadata, job: str, branch: str) -> FoundCheckpoint:
    """The checkpoint of the nearest ancestor that has one; the table property if the history is cut."""
    key = key_of(job)
    snapshot = head_of(metadata, branch)
    noted = metadata.properties.get(key)
    remembered = checkpoint_from_property(noted) if noted else None
    by_id: dict[int, Snapshot] | None = None
    while snapshot is not None:
        text = snapshot.summary.additional_properties.get(key) if snapshot.summary else None
        if text:
            found = checkpoint_from_summary(text, remembered)
            is_last = remembered is None or remembered.commit == found.commit
            return FoundCheckpoint(found, lost=None if is_last else remembered)
        if snapshot.parent_snapshot_id is None:
            return _without_checkpoint(remembered, snapshot)
        by_id = by_id or {one.snapshot_id: one for one in metadata.snapshots}
        snapshot = by_id.get(snapshot.parent_snapshot_id)
        if snapshot is None:
            return FoundCheckpoint(remembered)
    # No snapshot on this branch: a rollback leaves one, so only expiry or a fresh table can be the reason.
    return FoundCheckpoint(remembered)


def has_java_since(metadata: TableMetadata, job: str, branch: str, group: str) -> bool:
    """Whether Java's workers with this group have committed after the job did: it had them take over again,
    and goes on where their group is."""
    snapshot = metadata.snapshot_by_name(branch)
    by_id: dict[int, Snapshot] | None = None
    is_since = False
    while snapshot is not None:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if key_of(job) in summary:
            newer = java_since(summary).get(key_of(job), ())
            return is_since or is_of_java(dict.fromkeys(newer, ""), group)
        is_since = is_since or is_of_java(summary, group)
        by_id = by_id or {one.snapshot_id: one for one in metadata.snapshots}
        snapshot = by_id.get(snapshot.parent_snapshot_id or -1)
    return is_since and key_of(job) in metadata.properties


def java_since(summary: Mapping[str, str]) -> dict[str, list[str]]:
    """What a snapshot that carries on both says of their order."""
    return dict(json.loads(summary.get(JAVA_SINCE, "{}")))


def is_of_java(summary: Mapping[str, str], group: str) -> bool:
    """Whether a snapshot is of Java's workers with this group."""
    return any(key.startswith(_JAVAS) and key.endswith(f".{group}") for key in summary)


def _without_checkpoint(remembered: TableCheckpoint | None, oldest: Snapshot) -> FoundCheckpoint:
    """What a history without a checkpoint means, by its oldest snapshot, which has no parent."""
    if remembered is None or remembered.began is None or remembered.began.covers(oldest):
        # It reaches back to before the job, and the job is not in it: somebody rolled the table back.
        return FoundCheckpoint(None, rolled_back_from=remembered)
    # PyIceberg's expiry takes the parent away from the oldest snapshot that it leaves: the history is cut.
    return FoundCheckpoint(remembered)
