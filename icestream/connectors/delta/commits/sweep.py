"""Removes files of batches that never landed: of a process that was killed, of a lost Spark job.

Called by the job manager after a commit of its own has landed. From then on the log refuses every commit that
was under way before, so what is not in the table by now will never be. docs/exactly-once.md has the rules.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.fs as pf
from deltalake import DeltaTable

from icestream.connectors.delta.commits.log import FOLDER, TableLog
from icestream.connectors.delta.commits.marks import checkpoint_of, key_of
from icestream.connectors.delta.storage import Storage, file_path
from icestream.tables.upserts.change_files import CHANGES_SUFFIX

_log = logging.getLogger(__name__)

_UUID_CHARS: Final = 36
_YOUNGEST: Final = dt.timedelta(hours=1)
"""Younger files are left alone: a task that nobody waits for any more may still be at work."""
MERGED: Final = "merged-"
"""Follows the id in the names of files that compaction writes. They are left to maintenance: no mark in the
log tells which of them have landed, and readers of earlier versions may need those that are out of it."""
_MOST_COMMITS: Final = 2_000
"""Of the log. Files of before these are left to VACUUM, which every table needs anyway."""


@dataclass(frozen=True)
class _Found:
    path: str
    """As the file system names it."""
    name: str
    batch: str
    written: dt.datetime


def file_prefix(job: str, table_id: str) -> str:
    """How the names of a job's files in a table begin; the id of the batch follows."""
    digest = hashlib.sha256(f"{job}\0{table_id}".encode()).hexdigest()
    return f"icestream-{digest[:16]}-"


def sweep(table: DeltaTable, location: str, storage: Storage, job: str, landed: str, now: dt.datetime) -> int:
    """Remove the files of the job's dead batches, and tell how many; `landed` is its last commit."""
    entries = TableLog.of(location, storage).last_entries(table.version(), _MOST_COMMITS)
    key = key_of(job)
    commits = {mark.commit for entry in entries if (mark := checkpoint_of(entry, key)) is not None}
    if landed not in commits:
        return 0
    moments = [int(one["timestamp"]) for one in entries if "timestamp" in one]
    since = dt.datetime.fromtimestamp(min(moments) / 1000, dt.UTC)
    files = storage.file_system(location)
    prefix = file_prefix(job, str(table.metadata().id))
    found = list(_files(files, file_path(location), prefix))
    # By the clock of the storage, too: ours may be wrong, and the next batch is on its way by now.
    before = min((one.written for one in found if one.batch == landed), default=since)
    suspects = [
        one
        for one in found
        if _is_of_no_use(one, commits, landed) and since < one.written < min(before, now - _YOUNGEST)
    ]
    if not suspects:
        return 0
    held = {
        posixpath.basename(path) for path in pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()
    }
    dead = [one for one in suspects if one.name not in held]
    for one in dead:
        files.delete_file(one.path)
    if dead:
        _log.info("removed %s files of batches of %s that never landed in it", len(dead), location)
    return len(dead)


def _is_of_no_use(file: _Found, commits: set[str], landed: str) -> bool:
    """Files of a batch that never landed, and changes that were merged and not removed."""
    is_merged = file.name.endswith(CHANGES_SUFFIX) and file.batch != landed
    return is_merged or file.batch not in commits


def _files(files: pf.FileSystem, root: str, prefix: str) -> Iterator[_Found]:
    for info in files.get_file_info(pf.FileSelector(root, allow_not_found=True, recursive=True)):
        name = info.base_name
        if info.type is not pf.FileType.File or not name.startswith(prefix) or f"/{FOLDER}/" in info.path:
            continue
        written: dt.datetime | None = info.mtime
        rest = name.removeprefix(prefix)
        if written is not None and not rest[_UUID_CHARS + 1 :].startswith(MERGED):
            batch = rest[:_UUID_CHARS]
            yield _Found(
                info.path, name, batch, written if written.tzinfo else written.replace(tzinfo=dt.UTC)
            )
