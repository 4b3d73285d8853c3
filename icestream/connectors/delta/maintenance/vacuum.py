"""Removes files that a Delta table no longer has, or never had. Called by `steps`.

Which these are delta-rs tells (a dry VACUUM); what goes is ours to say: never a file that a live batch may
have staged. Files of dead batches are swept sooner and without being asked (`sweep`).
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.fs as pf
from deltalake import DeltaTable

from icestream.connectors.delta.commits.log import FOLDER, TableLog
from icestream.connectors.delta.commits.marks import MADE_BY, key_of
from icestream.connectors.delta.commits.sweep import file_prefix
from icestream.connectors.delta.storage import Storage, file_path

_log = logging.getLogger(__name__)

_MOST_COMMITS: Final = 20_000
_CLOCKS: Final = dt.timedelta(hours=1)
"""By so much the clocks of the writers and of the storage may differ."""
_OURS: Final = re.compile(r"(icestream-[0-9a-f]{16}-)[0-9a-f-]{36}-")
_RETENTION: Final = "delta.deletedFileRetentionDuration"
_DEFAULT_RETENTION: Final = dt.timedelta(days=7)
_INTERVAL: Final = re.compile(r"(?:interval\s+)?(\d+)\s+(\w+?)s?", re.I)
_UNITS: Final = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")


@dataclass(frozen=True)
class VacuumResult:
    found: int
    removed: int = 0
    bytes: int = 0
    kept: int = 0
    """Files that a live batch may have staged."""


def retention(properties: Mapping[str, str]) -> dt.timedelta:
    """How long a table keeps files for readers of its earlier versions."""
    match = _INTERVAL.fullmatch(properties.get(_RETENTION, "").strip())
    if match is None or match[2].lower() not in _UNITS:
        return _DEFAULT_RETENTION
    return dt.timedelta(**{f"{match[2].lower()}s": int(match[1])})


def vacuum(
    table: DeltaTable,
    location: str,
    storage: Storage,
    older_than: dt.timedelta,
    now: dt.datetime,
    *,
    orphans: bool,
    dry_run: bool = False,
) -> VacuumResult:
    """Remove files that commits took out so long ago; with `orphans` also those that no commit ever had."""
    hours = math.ceil(older_than / dt.timedelta(hours=1))
    paths = [
        unquote(path)
        for path in table.vacuum(
            retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=orphans
        )
    ]
    files = storage.file_system(location)
    root = file_path(location)
    found = list(_there(files, [posixpath.join(root, path) for path in paths]))
    gone = found
    if orphans:
        live = _LiveBatches(table, TableLog.of(location, storage))
        others = _OtherTables(files, root)
        before = now - older_than
        gone = [
            one
            for one in found
            if _written(one) < before
            and not live.may_have(one.base_name, _written(one))
            and not others.have(one.path)
        ]
    removed = 0
    for one in () if dry_run else gone:
        try:
            files.delete_file(one.path)
            removed += 1
        except OSError as error:
            _log.warning("%s could not be removed: %s", one.path, error)
    return VacuumResult(
        len(gone),
        len(gone) if dry_run else removed,
        sum(int(one.size or 0) for one in gone),
        len(found) - len(gone),
    )


def _there(files: pf.FileSystem, paths: Sequence[str]) -> Iterator[Any]:
    for at in range(0, len(paths), 1_000):
        for one in files.get_file_info(list(paths[at : at + 1_000])):
            if one.type is pf.FileType.File:
                yield one


def _written(info: Any) -> dt.datetime:
    written: dt.datetime = info.mtime
    return written if written.tzinfo else written.replace(tzinfo=dt.UTC)


class _OtherTables:
    """Those in folders below the table's own: records may name both `a` and `a.b`."""

    def __init__(self, files: pf.FileSystem, root: str) -> None:
        self._files = files
        self._known = {root: False}

    def have(self, path: str) -> bool:
        folder = posixpath.dirname(path)
        if folder not in self._known:
            if len(folder) <= 1:
                return False
            log = self._files.get_file_info(pf.FileSelector(posixpath.join(folder, FOLDER), True))
            self._known[folder] = posixpath.basename(folder) == FOLDER or bool(log) or self.have(folder)
        return self._known[folder]


class _LiveBatches:
    """Which files a batch that has not landed yet may still commit, as far as the log tells."""

    def __init__(self, table: DeltaTable, log: TableLog) -> None:
        key, table_id = key_of(""), str(table.metadata().id)
        self._landed: dict[str, dt.datetime] = {}
        for entry in log.last_entries(table.version(), _MOST_COMMITS):
            at = dt.datetime.fromtimestamp(int(entry.get("timestamp", 0)) / 1000, dt.UTC)
            for name in entry:
                if name.startswith(key):
                    job = name.removeprefix(key).replace("%3A", ":").replace("%25", "%")
                    prefix = file_prefix(job, table_id)
                    self._landed[prefix] = max(at, self._landed.get(prefix, at))

    def may_have(self, name: str, written: dt.datetime) -> bool:
        """A file with the name of a job goes only if that job has landed a commit since it was written: then
        the log refuses what was under way before."""
        ours = _OURS.match(name)
        if ours is None:
            return False
        landed = self._landed.get(ours[1])
        return landed is None or written + _CLOCKS >= landed


def made_by(entry: Mapping[str, Any]) -> str:
    """Who made a commit, for people."""
    if MADE_BY in entry:
        return f"maintenance: {entry[MADE_BY]}"
    key = key_of("")
    jobs = [name.removeprefix(key) for name in entry if name.startswith(key)]
    return f"connector {jobs[0]}" if jobs else str(entry.get("engineInfo", ""))
