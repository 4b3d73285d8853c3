"""Removes files below a table's location that no snapshot of it has. Called by `steps`.

Files of dead batches are swept sooner and without being asked (`sweep`); this is for what others left behind,
and for what a process left that was killed while it expired snapshots. It looks at the table's own folders
for data and metadata only, at files of the kinds that tables are made of, and never touches what a live batch
may have staged.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.fs as pf
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.properties import property_as_bool

from icestream.api.errors import FatalError
from icestream.connectors.iceberg.commits import checkpoints
from icestream.connectors.iceberg.commits.sweep import file_prefix
from icestream.connectors.iceberg.maintenance.replace_commit import MADE_BY
from icestream.connectors.iceberg.write_properties import taken_properties
from icestream.tables.maintenance.steps import LEAST_ORPHAN_AGE

_log = logging.getLogger(__name__)

_CLOCKS: Final = dt.timedelta(hours=1)
"""By so much the clocks of catalog and storage may differ."""
_KINDS: Final = (".parquet", ".orc", ".avro", ".metadata.json", ".metadata.json.gz", ".stats", ".puffin")
_OURS: Final = re.compile(r"(icestream-[0-9a-f]{16}-)([0-9a-f-]{36})-")


@dataclass(frozen=True)
class OrphansResult:
    files: int
    """All files that were looked at."""
    orphans: int = 0
    bytes: int = 0
    left: int = 0
    """Orphans that could not be removed."""
    note: str = ""


@dataclass(frozen=True)
class _Found:
    path: str
    key: tuple[str, str]
    name: str
    size: int
    written: dt.datetime


def remove_orphans(
    table: Table,
    write_props: Mapping[str, str],
    older_than: dt.timedelta,
    now: dt.datetime,
    *,
    dry_run: bool = False,
) -> OrphansResult:
    metadata = table.metadata
    if not property_as_bool(metadata.properties, "gc.enabled", True):
        return OrphansResult(0, note="gc.enabled=false: files stay")
    if not isinstance(table.io, PyArrowFileIO):
        return OrphansResult(0, note="this storage cannot be listed")
    io = table.io
    places = load_location_provider(
        metadata.location, taken_properties({**metadata.properties, **write_props})
    )
    # A folder that the owner chose may be another table's as well: there only files with our names are ours.
    own = f"{metadata.location.rstrip('/')}/"
    folders = {path: path.startswith(own) for path in (places.data_path, places.metadata_path)}
    files = [
        file for path, is_own in folders.items() for file in _files(io, path) if is_own or _is_of(table, file)
    ]
    if not files:
        return OrphansResult(0)
    held = _referenced(table, io)
    if not held.intersection(file.key for file in files):
        raise FatalError(
            f"{'.'.join(table.name())}: none of the files below {metadata.location} is in the table; its "
            "metadata spells their paths otherwise, so nothing was removed"
        )
    before = now - max(older_than, LEAST_ORPHAN_AGE)
    live = _LiveBatches(metadata)
    orphans = [
        file
        for file in files
        if file.key not in held and file.written < before and not live.may_have(file.name, file.written)
    ]
    size = sum(file.size for file in orphans)
    if dry_run or not orphans:
        return OrphansResult(len(files), len(orphans), size)
    left = _removed(io, orphans)
    _log.info("removed %s orphans of %s", len(orphans) - left, ".".join(table.name()))
    return OrphansResult(len(files), len(orphans), size, left)


class _LiveBatches:
    """Which files a batch that has not landed yet may still commit, as far as the table tells."""

    def __init__(self, metadata: TableMetadata) -> None:
        key = checkpoints.key_of("")
        self._landed: dict[str, dt.datetime | None] = {
            file_prefix(name.removeprefix(key), metadata.table_uuid): None
            for name in metadata.properties
            if name.startswith(key)
        }
        for snapshot in metadata.snapshots:
            said = snapshot.summary.additional_properties if snapshot.summary else {}
            at = dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC)
            # A snapshot of ours that carries a checkpoint on is no commit of the job.
            for name in said if MADE_BY not in said else ():
                if name.startswith(key):
                    prefix = file_prefix(name.removeprefix(key), metadata.table_uuid)
                    newest = self._landed.get(prefix)
                    self._landed[prefix] = at if newest is None else max(at, newest)

    def may_have(self, name: str, written: dt.datetime) -> bool:
        """Whether the job that wrote the file has landed nothing since: then its batch may still be at work.

        A commit that landed later makes the catalog refuse what was under way before it. Files of jobs that
        the table has never heard of go by their age.
        """
        ours = _OURS.match(name)
        if ours is None or ours[1] not in self._landed:
            return False
        landed = self._landed[ours[1]]
        return landed is None or landed < written + _CLOCKS


def _is_of(table: Table, file: _Found) -> bool:
    """Whether the name has one of the jobs that the table knows."""
    ours = _OURS.match(file.name)
    key = checkpoints.key_of("")
    jobs = [name.removeprefix(key) for name in table.metadata.properties if name.startswith(key)]
    return ours is not None and ours[1] in {file_prefix(job, table.metadata.table_uuid) for job in jobs}


def _files(io: PyArrowFileIO, folder: str) -> Iterator[_Found]:
    scheme, netloc, path = PyArrowFileIO.parse_location(folder, io.properties)
    storage = io.fs_by_scheme(scheme, netloc)
    for info in storage.get_file_info(pf.FileSelector(path, allow_not_found=True, recursive=True)):
        if info.type is pf.FileType.File and info.mtime is not None and info.base_name.endswith(_KINDS):
            written = info.mtime if info.mtime.tzinfo else info.mtime.replace(tzinfo=dt.UTC)
            whole = f"{folder}{info.path.removeprefix(path)}"
            yield _Found(whole, _key(io, whole), info.base_name, int(info.size or 0), written)


def _key(io: PyArrowFileIO, path: str) -> tuple[str, str]:
    """A path without its scheme: `s3`, `s3a` and `s3n` are one store, and so are `file:` and none."""
    _, netloc, rest = PyArrowFileIO.parse_location(path, io.properties)
    return netloc, rest


def _referenced(table: Table, io: PyArrowFileIO) -> set[tuple[str, str]]:
    """All files that the table's metadata, or any manifest of any snapshot, names."""
    metadata = table.metadata
    pool = ExecutorFactory.get_or_create()
    manifests = {
        manifest.manifest_path: manifest
        for several in pool.map(lambda one: one.manifests(io), metadata.snapshots)
        for manifest in several
    }
    entries = pool.map(
        lambda one: one.fetch_manifest_entry(io, discard_deleted=False), list(manifests.values())
    )
    named = [
        table.metadata_location,
        *(entry.metadata_file for entry in metadata.metadata_log),
        *(one.manifest_list for one in metadata.snapshots),
        *manifests,
        *(entry.data_file.file_path for several in entries for entry in several),
        *(file.statistics_path for file in (*metadata.statistics, *metadata.partition_statistics)),
    ]
    return {_key(io, path) for path in named}


def _removed(io: PyArrowFileIO, files: Sequence[_Found]) -> int:
    """Remove files; how many could not be."""

    def remove(file: _Found) -> bool:
        try:
            io.delete(file.path)
        except FileNotFoundError:
            return True
        except Exception as error:  # the next run finds it again
            _log.warning("the orphan %s is left behind: %s", file.path, error)
            return False
        return True

    return list(ExecutorFactory.get_or_create().map(remove, files)).count(False)
