"""Expires old snapshots of a table, and removes the files that only they had. Called by `steps`.

What it never loses: the heads of branches and tags, what their own settings keep, and the checkpoint of any
job on any branch. Before anything expires, it is worked out what each job would find afterwards; if that
differs, a snapshot that carries all checkpoints on is committed first. PyIceberg's own expiry removes no
files.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
    TableRequirement,
)
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.properties import property_as_bool

from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import CommitConflict, CommitUnknown, FatalError
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits import checkpoints
from icestream.connectors.iceberg.maintenance.replace_commit import (
    Replacement,
    carried,
    replace_files,
    tells_all,
)
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 4
"""A commit of the job in between is the usual reason for the second."""
_OF_A_WRITE: Final = re.compile(r"icestream_[0-9a-f]{16}")
"""Branches of `branch_publish`."""


@dataclass(frozen=True)
class ExpiryLimits:
    older_than: dt.timedelta = dt.timedelta(days=5)
    retain_last: int = 20
    """So many of each branch stay, however old."""
    max_snapshots: int = 500
    """What a branch has more goes, however young."""


@dataclass(frozen=True)
class ExpiryResult:
    snapshots_before: int
    snapshots_after: int
    files_removed: int = 0
    files_left: int = 0
    """Files that could not be removed; nobody has them any more, so that they are orphans."""


def expire(
    load: Callable[[], Table],
    limits: ExpiryLimits,
    now: dt.datetime,
    *,
    least: int = 1,
    dry_run: bool = False,
    turn: AbstractContextManager[object] | None = None,
    reached: Callable[[str], None] = lambda point: None,
    known: Table | None = None,
) -> ExpiryResult:
    """Expire what the limits let go, if it is at least so many, in a commit within `turn`.

    `known` is the table as it was loaded a moment ago.

    CommitConflict: others have changed the table again and again meanwhile.
    """
    for _ in range(_ATTEMPTS):
        table, known = known or load(), None
        before = len(table.metadata.snapshots)
        if not dry_run and _tell_all(table, limits, now, turn, least):
            table = load()
        expired = to_expire(table.metadata, limits, now)
        if len(expired) < max(1, least):
            return ExpiryResult(before, before)
        with sink_errors(f"reading manifests of {_named(table)}"):
            unused = _unused_files(table, expired)
        if dry_run:
            return ExpiryResult(before, before - len(expired), len(unused))
        _carry_checkpoints(table, expired, turn)
        with turn or nullcontext():
            # Whoever has committed meanwhile may have made one of them current again.
            fresh = load()
            added = _added_since(table.metadata, fresh.metadata)
            if not expired <= to_expire(fresh.metadata, limits, now) or _any_loses(fresh.metadata, expired):
                continue
            used = _used_files(fresh, added) if unused else set()
            if not _remove_snapshots(fresh, expired):
                continue
        reached("expired")
        unused = [path for path in unused if path not in used]
        left = _removed(table, unused)
        _log.info("expired %s snapshots of %s, removed %s files", len(expired), _named(table), len(unused))
        after = len(fresh.metadata.snapshots) - len(expired)
        return ExpiryResult(before, after, len(unused) - left, left)
    raise CommitConflict(f"{_named(load())} changed again and again while snapshots were expired")


def _added_since(old: TableMetadata, new: TableMetadata) -> list[Snapshot]:
    known = {snapshot.snapshot_id for snapshot in old.snapshots}
    return [snapshot for snapshot in new.snapshots if snapshot.snapshot_id not in known]


def to_expire(
    metadata: TableMetadata, limits: ExpiryLimits, now: dt.datetime, *, keeps_tellers: bool = True
) -> frozenset[int]:
    """What the limits let go; less those that are needed to know where jobs were at what stays."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    now_ms = int(now.timestamp() * 1000)
    oldest_ms = now_ms - int(limits.older_than.total_seconds() * 1000)
    kept: set[int] = set()
    on_branches: set[int] = set()
    for ref in metadata.refs.values():
        kept.add(ref.snapshot_id)
        if ref.snapshot_ref_type != SnapshotRefType.BRANCH:
            continue
        least, oldest, most = _kept_of(ref, limits, now_ms, oldest_ms)
        for place, snapshot in enumerate(_ancestors(by_id, ref.snapshot_id)):
            on_branches.add(snapshot.snapshot_id)
            if place < least or (place < most and snapshot.timestamp_ms >= oldest):
                kept.add(snapshot.snapshot_id)
    # What no branch leads to may yet be published or rolled forward to.
    kept |= {id_ for id_, one in by_id.items() if id_ not in on_branches and one.timestamp_ms >= oldest_ms}
    needed = _needed_by(metadata, kept) if keeps_tellers else set()
    return frozenset(by_id.keys() - kept - needed)


def _needed_by(metadata: TableMetadata, kept: Collection[int]) -> set[int]:
    """Ancestors of what stays, back to one that tells of all jobs: the table may be rolled back to any."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    telling = tells_all(metadata)
    needed: set[int] = set()
    for id_ in kept:
        snapshot = by_id[id_]
        while snapshot.snapshot_id not in telling:
            parent = by_id.get(snapshot.parent_snapshot_id or -1)
            if parent is None or parent.snapshot_id in kept or parent.snapshot_id in needed:
                break
            needed.add(parent.snapshot_id)
            snapshot = parent
    return needed


def _kept_of(ref: SnapshotRef, limits: ExpiryLimits, now_ms: int, oldest_ms: int) -> tuple[int, int, int]:
    """How many stay at least, from when on, and how many at most; a branch's own settings come first."""
    least = ref.min_snapshots_to_keep or limits.retain_last
    if ref.max_snapshot_age_ms is not None:
        return least, now_ms - ref.max_snapshot_age_ms, 2**31
    return least, oldest_ms, max(limits.max_snapshots, least)


def _ancestors(by_id: dict[int, Snapshot], id_: int | None) -> Iterable[Snapshot]:
    while id_ is not None and (snapshot := by_id.get(id_)) is not None:
        yield snapshot
        id_ = snapshot.parent_snapshot_id


# -- checkpoints --


def _tell_all(
    table: Table,
    limits: ExpiryLimits,
    now: dt.datetime,
    turn: AbstractContextManager[object] | None,
    least: int,
) -> bool:
    """If more could go once the heads of branches tell of all jobs, let them; whether that took a commit.

    In a table of several jobs each commit tells of one, and the others are told of further back.
    """
    held = len(to_expire(table.metadata, limits, now, keeps_tellers=False))
    if held < max(1, least) or held == len(to_expire(table.metadata, limits, now)):
        return False
    telling = tells_all(table.metadata)
    silent = [
        name for name in _branches(table.metadata) if table.metadata.refs[name].snapshot_id not in telling
    ]
    for branch in silent:
        replace_files(table, Replacement("checkpoints"), branch, turn)
    return bool(silent)


def _carry_checkpoints(
    table: Table, expired: Collection[int], turn: AbstractContextManager[object] | None
) -> None:
    """See to it that every job finds afterwards what it finds now."""
    for branch in _branches(table.metadata):
        if not _loses(table.metadata, branch, expired):
            continue
        replace_files(table, Replacement("checkpoints"), branch, turn)
        again = table.catalog.load_table(table.name()).metadata
        if _loses(again, branch, expired):
            raise FatalError(
                f"{_named(table)}: expiring {len(expired)} snapshots would lose where a job is on branch "
                f"{branch}, which was rolled back; nothing was expired: let the job commit first"
            )


def _any_loses(metadata: TableMetadata, expired: Collection[int]) -> bool:
    return any(_loses(metadata, branch, expired) for branch in _branches(metadata))


def _branches(metadata: TableMetadata) -> list[str]:
    """Where jobs commit to: not those on which Spark writes, which become another's head or nothing."""
    return [
        name
        for name, ref in metadata.refs.items()
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH and not _OF_A_WRITE.fullmatch(name)
    ]


def _loses(metadata: TableMetadata, branch: str, expired: Collection[int]) -> bool:
    """Whether a job or a Java sink would find something else once these are gone, whoever removes them."""
    found, marks = _known(metadata, branch)
    return any(_known(after, branch) != (found, marks) for after in _afterwards(metadata, expired))


def _known(metadata: TableMetadata, branch: str) -> tuple[dict[str, FoundCheckpoint], dict[str, str]]:
    marks = carried(metadata, metadata.snapshot_by_name(branch))
    jobs = {
        key.removeprefix(checkpoints.key_of(""))
        for key in (*metadata.properties, *marks)
        if key.startswith(checkpoints.key_of(""))
    }
    return {job: checkpoints.find(metadata, job, branch) for job in jobs}, marks


def _afterwards(metadata: TableMetadata, expired: Collection[int]) -> Iterable[TableMetadata]:
    """The metadata without these snapshots: as Java leaves it, and as PyIceberg does, which cuts it off."""
    left = [one for one in metadata.snapshots if one.snapshot_id not in expired]
    yield metadata.model_copy(update={"snapshots": left})
    cut = [
        one.model_copy(update={"parent_snapshot_id": None}) if one.parent_snapshot_id in expired else one
        for one in left
    ]
    yield metadata.model_copy(update={"snapshots": cut})


# -- the commit --


def _remove_snapshots(table: Table, expired: Collection[int]) -> bool:
    """False: somebody else has committed in between; nothing landed."""
    metadata = table.metadata
    # No branch or tag may have moved: one could lead to an expired snapshot by now.
    unmoved: list[TableRequirement] = [
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in metadata.refs.items()
    ]
    requirements = (AssertTableUUID(uuid=metadata.table_uuid), *unmoved)
    updates = (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(expired)}),)
    try:
        with waiting_for(f"catalog: expiry of {_named(table)}"):
            table.catalog.commit_table(table, requirements, updates)
    except Exception as error:  # whatever the catalog's client raises: the table is asked what happened
        try:
            now = table.catalog.load_table(table.name()).metadata
        except Exception as unavailable:
            raise CommitUnknown(f"{_named(table)}: an expiry may have landed: {unavailable}") from error
        if not any(now.snapshot_by_id(id_) for id_ in expired):
            return True
        if not isinstance(error, CommitFailedException):
            raise CommitConflict(f"{_named(table)}: nothing was expired: {error}", certain=False) from error
        return False
    return True


# -- files --


def _unused_files(table: Table, expired: Collection[int]) -> list[str]:
    """Paths of all files that only these snapshots have: lists, manifests, data and delete files."""
    if not property_as_bool(table.metadata.properties, "gc.enabled", True):
        # Its owner wants them to stay: other tables may have them, too.
        return []
    goes = [one for one in table.metadata.snapshots if one.snapshot_id in expired]
    stays = _neighbours(table.metadata, expired)
    kept = _manifests(table, stays)
    gone = {path: one for path, one in _manifests(table, goes).items() if path not in kept}
    files = _files(table, gone.values())
    if files:
        files -= _files(table, kept.values())
    lists = {one.manifest_list for one in goes}
    return [*sorted(files), *sorted(gone), *sorted(lists)]


def _neighbours(metadata: TableMetadata, expired: Collection[int]) -> list[Snapshot]:
    """Of the snapshots that stay, those that may have a file of one that goes.

    Along one line of snapshots a file is there from when it was added until it was removed. So what one that
    goes and any other have, the one that stays beside it has, too. Where there are several lines (branches,
    what was rolled back or never published), all snapshots count.
    """
    stays = [one for one in metadata.snapshots if one.snapshot_id not in expired]
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    heads = {one.snapshot_id for one in stays} - {one.parent_snapshot_id for one in metadata.snapshots}
    line = {one.snapshot_id for head in heads for one in _ancestors(by_id, head)}
    if len(heads) != 1 or len(line) != len(by_id):
        return stays
    parents_of_expired = {one.parent_snapshot_id for one in metadata.snapshots if one.snapshot_id in expired}
    return [
        one for one in stays if one.parent_snapshot_id in expired or one.snapshot_id in parents_of_expired
    ]


def _used_files(table: Table, snapshots: Sequence[Snapshot]) -> set[str]:
    """Paths of all files that these snapshots have."""
    manifests = _manifests(table, snapshots)
    return {*_files(table, manifests.values()), *manifests, *(one.manifest_list for one in snapshots)}


def _manifests(table: Table, snapshots: Sequence[Snapshot]) -> dict[str, ManifestFile]:
    pool = ExecutorFactory.get_or_create()
    return {
        manifest.manifest_path: manifest
        for manifests in pool.map(lambda one: one.manifests(table.io), snapshots)
        for manifest in manifests
    }


def _files(table: Table, manifests: Iterable[ManifestFile]) -> set[str]:
    """What manifests have, less what they say is gone."""
    pool = ExecutorFactory.get_or_create()
    return {
        entry.data_file.file_path
        for entries in pool.map(
            lambda one: one.fetch_manifest_entry(table.io, discard_deleted=False), manifests
        )
        for entry in entries
        if entry.status != ManifestEntryStatus.DELETED
    }


def _removed(table: Table, paths: Sequence[str]) -> int:
    """Remove files; how many could not be."""

    def remove(path: str) -> bool:
        try:
            table.io.delete(path)
        except FileNotFoundError:
            return True
        except Exception as error:  # an orphan: removed later
            _log.warning("%s, which no snapshot has any more, is left behind: %s", path, error)
            return False
        return True

    return list(ExecutorFactory.get_or_create().map(remove, paths)).count(False)


def _named(table: Table) -> str:
    return ".".join(table.name())
