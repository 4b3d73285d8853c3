"""What a Delta table can prove of its rows, for `icestream verify`. Called by `table`."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyroaring import BitMap64

from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.offsets import Partition
from icestream.api.sink import RowOffsets, TargetAudit, layered
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.commits.marks import CHANGES, MADE_BY
from icestream.connectors.delta.opening import delta_errors
from icestream.connectors.delta.storage import Storage, file_path, storage_errors
from icestream.tables.file_origins import Origins

_CHANGES_NO_ROWS: Final = frozenset(
    {
        *("OPTIMIZE", "CREATE TABLE", "ADD COLUMN", "ADD COLUMNS", "CHANGE COLUMN", "DROP COLUMN NOT NULL"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "VACUUM START", "VACUUM END", "RESTORE", "ADD FEATURE"),
        *("UPDATE TABLE METADATA", "UPDATE FIELD METADATA", "UPGRADE PROTOCOL", "FSCK"),
    }
)
_MOST_COMMITS: Final = 20_000
"""That are looked at for those of other writers."""


def audit(
    table: DeltaTable, found: FoundCheckpoint, key: str, location: str, storage: Storage
) -> TargetAudit:
    with delta_errors("reading the files of the table"):
        files = pa.table(table.get_add_actions(flatten=True))
        entries = TableLog.of(location, storage).last_entries(table.version(), _MOST_COMMITS)
        deleted = pa.table(table.deletion_vectors()) if _has_vectors(table) else None
    if any(key in entry and CHANGES in entry for entry in entries):
        # A change may replace a row, remove one, or come to nothing: rows prove nothing of changes.
        return TargetAudit(found)
    counts = files.column("num_records").to_pylist()
    rows = None if None in counts or (deleted is not None and deleted.num_rows) else sum(counts)
    others = any(key not in entry and not _changes_no_row(entry) for entry in entries)
    paths = [unquote(path) for path in files.column("path").to_pylist()]
    return TargetAudit(found, rows, others, functools.partial(_row_offsets, paths, location, storage))


def _changes_no_row(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") in _CHANGES_NO_ROWS or MADE_BY in entry


def _has_vectors(table: DeltaTable) -> bool:
    return "deletionVectors" in (table.protocol().writer_features or ())


def _row_offsets(paths: list[str], location: str, storage: Storage) -> RowOffsets:
    """From the footer of every live data file."""
    found: dict[Partition, list[BitMap64]] = {}
    foreign = 0
    files = storage.file_system(location)
    for path in paths:
        with storage_errors(f"reading {path}"), files.open_input_file(_whole(path, location)) as stream:
            metadata: Any = pq.read_metadata(stream)
        origins = Origins.from_footer(metadata)
        if origins is None:
            foreign += metadata.num_rows
            continue
        foreign += origins.unknown_rows
        for partition, layers in origins.layers.items():
            found[partition] = layered([*found.get(partition, []), *layers])
    return RowOffsets(found, foreign)


def _whole(path: str, location: str) -> str:
    return posixpath.join(file_path(location), path)
