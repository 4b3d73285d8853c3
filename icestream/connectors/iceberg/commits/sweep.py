"""Removes files of batches that never landed: of a process that was killed, of a lost Spark job.

Called by the job manager after a commit of its own has landed. From then on the catalog refuses every commit
that was under way before, so what is not in the table by now will never be. docs/exactly-once.md has the
rules.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow.fs as pf
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.utils.properties import property_as_bool

from icestream.tables.upserts.change_files import CHANGES_SUFFIX

_log = logging.getLogger(__name__)

_COMMIT_ID: Final = "kafka.connect.commit-id"
_UUID_CHARS: Final = 36
_YOUNGEST: Final = dt.timedelta(hours=1)
"""Younger files are left alone: a task that nobody waits for any more may still be at work."""
MERGED: Final = "merged-"
"""Follows the id in the names of files that compaction writes, where those of a batch have the task's."""
_YOUNGEST_MERGED: Final = dt.timedelta(days=1)
"""No commit of the job refuses a compaction that was under way before it: these must be too old for one."""


@dataclass(frozen=True)
class _Found:
    path: str
    """As the file system names it."""
    name: str
    batch: str
    written: dt.datetime
    youngest: dt.timedelta

    @property
    def is_of_changes(self) -> bool:
        """No snapshot ever has such a file: what landed batches had of them is left over."""
        return self.name.endswith(CHANGES_SUFFIX)


def file_prefix(job: str, table_uuid: object) -> str:
    """How the names of a job's files in a table begin; the id of the batch follows."""
    digest = hashlib.sha256(f"{job}\0{table_uuid}".encode()).hexdigest()
    return f"icestream-{digest[:16]}-"


def sweep(table: Table, data_path: str, job: str, landed: str, now: dt.datetime) -> int:
    """Remove the files of the job's dead batches, and tell how many; `landed` is its last commit."""
    metadata = table.metadata
    keeps_files = not property_as_bool(metadata.properties, "gc.enabled", True)
    if keeps_files or not isinstance(table.io, PyArrowFileIO):
        # Its owner wants files to stay that no snapshot has; or we cannot list them.
        return 0
    commits = {snapshot.summary[_COMMIT_ID] for snapshot in metadata.snapshots if snapshot.summary}
    if landed not in commits:
        return 0
    # What is older than all snapshots may have been in one that has expired.
    since = dt.datetime.fromtimestamp(min(one.timestamp_ms for one in metadata.snapshots) / 1000, dt.UTC)
    prefix = file_prefix(job, metadata.table_uuid)
    scheme, netloc, folder = PyArrowFileIO.parse_location(data_path, table.io.properties)
    storage = table.io.fs_by_scheme(scheme, netloc)
    files = [
        file
        for file in _files(storage, folder, prefix)
        if file.batch == landed or file.batch not in commits or file.is_of_changes
    ]
    # By the clock of the storage, too: ours may be wrong, and the next batch is on its way by now.
    before = min((file.written for file in files if file.batch == landed), default=None)
    if before is None:
        # A batch of changes leaves no file of its own, nor does one whose records were all set aside.
        before = _manifests_written(table, storage, landed) or since
    suspects = [
        file
        for file in files
        if file.batch != landed
        and (file.is_of_changes or since < file.written)
        and file.written < min(before, now - file.youngest)
    ]
    held = _referenced(table, prefix) if suspects else set()
    dead = [file for file in suspects if file.name not in held]
    for file in dead:
        storage.delete_file(file.path)
    if dead:
        _log.info("removed %s files of batches of %s that never landed in it", len(dead), table.name()[-1])
    return len(dead)


def _manifests_written(table: Table, storage: pf.FileSystem, commit: str) -> dt.datetime | None:
    """When the storage took the manifest list of a commit; None: nobody knows."""
    for snapshot in reversed(table.metadata.snapshots):
        if snapshot.summary and snapshot.summary[_COMMIT_ID] == commit:
            _, _, path = PyArrowFileIO.parse_location(snapshot.manifest_list, table.io.properties)
            return _mtime(storage.get_file_info(path))
    return None


def _mtime(info: pf.FileInfo) -> dt.datetime | None:
    written: dt.datetime | None = info.mtime
    return written if written is None or written.tzinfo else written.replace(tzinfo=dt.UTC)


def _files(storage: pf.FileSystem, folder: str, prefix: str) -> Iterator[_Found]:
    for info in storage.get_file_info(pf.FileSelector(folder, allow_not_found=True, recursive=True)):
        name = info.base_name
        written = _mtime(info)
        if info.type is pf.FileType.File and name.startswith(prefix) and written is not None:
            batch, rest = name.removeprefix(prefix)[:_UUID_CHARS], name.removeprefix(prefix)[_UUID_CHARS:]
            youngest = _YOUNGEST_MERGED if rest.startswith(f"-{MERGED}") else _YOUNGEST
            yield _Found(info.path, name, batch, written, youngest)


def _referenced(table: Table, prefix: str) -> set[str]:
    """The names of all files of the job that any snapshot has, or has removed."""
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in table.metadata.snapshots
        for manifest in snapshot.manifests(table.io)
    }
    return {
        name
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        if (name := entry.data_file.file_path.rsplit("/", 1)[-1]).startswith(prefix)
    }
