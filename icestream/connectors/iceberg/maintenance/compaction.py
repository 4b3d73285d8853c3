"""Merges small data files of a table into larger ones, and applies position deletes; the rows stay the same.

The rewrite is our own, because the footers of our files tell which source offsets their rows are from: a
merged file tells those of all that it replaces, so that `verify --deep` proves each record as before
(docs/decisions/025-maintenance.md). Called by `steps`, and by whoever writes deletes.

A file is merged with others that are as large together: so a row is written again only as often as its file
doubles, whatever the size of the table.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, FileFormat, ManifestContent
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.table.refs import MAIN_BRANCH

from icestream.api.errors import CommitConflict, FatalError
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits.sweep import MERGED
from icestream.connectors.iceberg.files.partitions import PartitionValue
from icestream.connectors.iceberg.files.stage import (
    StagedFile,
    TablePlan,
    data_file,
    parquet_options,
    staged_file,
)
from icestream.connectors.iceberg.maintenance.replace_commit import Replacement, replace_files
from icestream.connectors.iceberg.write_properties import taken_properties
from icestream.tables.file_origins import Origins
from icestream.tables.maintenance.row_groups import row_groups
from icestream.tables.maintenance.small_files import growing, packed

_log = logging.getLogger(__name__)

_MOST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Of files that one commit replaces."""
_MOST_SECONDS: Final = 1800.0
"""For all files of one commit."""
_MOST_WAIT_SECONDS: Final = 6 * 3600.0
"""From the first file that is written to the commit, which may have to wait for one of the job. After a day
the sweep takes merged files for dead."""


@dataclass(frozen=True)
class CompactionLimits:
    """Which files are worth writing again."""

    min_files: int = 10
    """So many small files of a partition are merged; so many delete files of a data file are applied."""
    target_bytes: int = 128 * 1024 * 1024
    """The size of merged files. One of three quarters of it is no longer small."""
    deletes_percent: int = 10
    """A file of which so many rows are deleted is written again, whatever its size."""


@dataclass(frozen=True)
class CompactionResult:
    files_before: int
    """Data files of the whole table."""
    files_after: int
    files_removed: int = 0
    files_added: int = 0
    deletes_removed: int = 0
    """Delete files that were applied, and deleted nothing else."""
    bytes_read: int = 0
    bytes_written: int = 0
    rows: int = 0
    snapshot_id: int | None = None


@dataclass(frozen=True)
class _Bin:
    """Files of one partition that become one file."""

    tasks: Sequence[FileScanTask]

    @property
    def size(self) -> int:
        return sum(task.file.file_size_in_bytes for task in self.tasks)


def compact(
    table: Table,
    limits: CompactionLimits,
    *,
    file_prefix: str = "",
    write_props: Mapping[str, str] | None = None,
    branch: str = MAIN_BRANCH,
    merge_manifests: int | None = None,
    dry_run: bool = False,
    turn: AbstractContextManager[object] | None = None,
    reached: Callable[[str], None] = lambda point: None,
    clock: Callable[[], float] = time.monotonic,
) -> CompactionResult:
    """Merge what is small and apply what is deleted, in one commit within `turn`; nothing to do is no commit.

    CommitConflict: somebody else has replaced the files or deleted from them meanwhile; nothing is changed.
    """
    name = ".".join(table.name())
    started = clock()
    with sink_errors(f"planning the compaction of {name}"):
        tasks = _tasks(table, branch)
    bins = _bins(tasks, limits, table.metadata.default_spec_id)
    if not bins:
        return CompactionResult(len(tasks), len(tasks))
    chosen = [task for one in bins for task in one.tasks]
    removed = frozenset(task.file.file_path for task in chosen)
    known, dangling = _deletes(table, branch, tasks, removed)
    read = sum(task.file.file_size_in_bytes for task in chosen)
    if dry_run:
        after = len(tasks) - len(removed) + len(bins)
        return CompactionResult(
            len(tasks), after, len(removed), len(bins), len(dangling), read, 0, _rows(chosen)
        )
    writer = _Rewriter(table, file_prefix, write_props or {})
    try:
        with sink_errors(f"rewriting files of {name}"):
            for one in bins:
                writer.rewrite(one)
                if clock() - started > _MOST_SECONDS:
                    raise CommitConflict(
                        f"{name}: the rewrite of {len(removed)} files took longer than {_MOST_SECONDS:.0f} s"
                    )
    except Exception:
        writer.discard()
        raise
    reached("rewritten")
    replacement = Replacement(
        what="compaction",
        removed=removed,
        removed_deletes=dangling,
        known_deletes=known,
        added=[data_file(file) for file in writer.files],
        merge_manifests=merge_manifests,
    )
    try:
        with turn or nullcontext():
            if clock() - started > _MOST_WAIT_SECONDS:
                raise CommitConflict(f"{name}: merged files waited too long to be committed")
            replaced = replace_files(table, replacement, branch)
    except CommitConflict as conflict:
        # Whatever else was raised, the commit may have landed or may land yet.
        if conflict.certain:
            writer.discard()
        raise
    reached("compacted")
    written = sum(file.size for file in writer.files)
    _log.info(
        "compacted %s: %s data files are %s now, %s bytes are %s",
        *(name, len(removed), len(writer.files), read, written),
    )
    return CompactionResult(
        len(tasks),
        len(tasks) - len(removed) + len(writer.files),
        len(removed),
        len(writer.files),
        len(dangling),
        read,
        written,
        sum(file.rows for file in writer.files),
        replaced.snapshot_id,
    )


def _rows(tasks: Iterable[FileScanTask]) -> int:
    return sum(task.file.record_count for task in tasks)


def _tasks(table: Table, branch: str) -> list[FileScanTask]:
    if table.metadata.snapshot_by_name(branch) is None:
        return []
    try:
        return list(table.scan().use_ref(branch).plan_files())
    except ValueError as error:
        # PyIceberg's word for tables with equality deletes, which it cannot apply.
        raise FatalError(
            f"{'.'.join(table.name())} cannot be compacted here: {error}; compact it with the engine that "
            "writes these deletes"
        ) from error


# -- which files --


def _bins(tasks: Sequence[FileScanTask], limits: CompactionLimits, spec: int) -> list[_Bin]:
    """Files that are worth merging, each group for one file; those of the current partition spec only."""
    by_partition: dict[tuple[Any, ...], list[FileScanTask]] = defaultdict(list)
    for task in tasks:
        if task.file.spec_id == spec and task.file.file_format == FileFormat.PARQUET:
            by_partition[_values(task.file)].append(task)
    deleted = _deleted_shares(tasks)
    left = _MOST_BYTES
    bins: list[_Bin] = []
    for members in by_partition.values():
        for one in _bins_of(members, deleted, limits):
            left -= one.size
            if left < 0 and bins:
                return bins
            bins.append(one)
    return bins


def _bins_of(
    tasks: Sequence[FileScanTask], deleted: Mapping[str, float], limits: CompactionLimits
) -> Iterator[_Bin]:
    small_bytes = limits.target_bytes * 3 // 4
    small = [task for task in tasks if task.file.file_size_in_bytes < small_bytes]
    merged = growing(small, _size)
    if len(merged) < max(2, limits.min_files):
        merged = []
    worn = [task for task in tasks if task not in merged and _is_worn(task, deleted, limits)]
    # In the order in which they were written, as far as names and sizes tell: oldest rows first.
    merged.sort(key=lambda task: task.file.file_path)
    for members in packed(merged, _size, limits.target_bytes):
        yield _Bin(members)
    for members in packed(worn, _size, limits.target_bytes, alone=True):
        yield _Bin(members)


def _size(task: FileScanTask) -> int:
    return int(task.file.file_size_in_bytes)


def _is_worn(task: FileScanTask, deleted: Mapping[str, float], limits: CompactionLimits) -> bool:
    share = sum(deleted[file.file_path] for file in task.delete_files)
    return bool(task.delete_files) and (
        len(task.delete_files) >= limits.min_files or share * 100 >= limits.deletes_percent
    )


def _deleted_shares(tasks: Iterable[FileScanTask]) -> dict[str, float]:
    """Of each delete file: what part of the rows that it may be about it deletes."""
    about: Counter[str] = Counter()
    counts: dict[str, int] = {}
    for task in tasks:
        for file in task.delete_files:
            about[file.file_path] += task.file.record_count
            counts[file.file_path] = file.record_count
    return {path: count / max(1, about[path]) for path, count in counts.items()}


def _deletes(
    table: Table, branch: str, tasks: Iterable[FileScanTask], removed: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """All delete files, and those that are about no file but removed ones."""
    head = table.metadata.snapshot_by_name(branch)
    known = {
        entry.data_file.file_path
        for manifest in (head.manifests(table.io) if head is not None else [])
        if manifest.content == ManifestContent.DELETES
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    needed = {
        file.file_path for task in tasks if task.file.file_path not in removed for file in task.delete_files
    }
    return frozenset(known), frozenset(known - needed)


def _values(file: DataFile) -> tuple[Any, ...]:
    return tuple(file.partition[at] for at in range(len(file.partition)))


# -- writing --


class _Rewriter:
    """Writes merged files, which nobody references yet."""

    def __init__(self, table: Table, file_prefix: str, write_props: Mapping[str, str]) -> None:
        metadata = table.metadata
        self._table = table
        self._plan = TablePlan(
            name=".".join(table.name()),
            location=metadata.location,
            schema_json=metadata.schema().model_dump_json(),
            spec_json=metadata.spec().model_dump_json(),
            properties=taken_properties({**metadata.properties, **write_props}),
            io_properties={},
        )
        self._prefix = f"{file_prefix}{uuid.uuid4()}-{MERGED}"
        self._places: LocationProvider = load_location_provider(
            metadata.location, dict(self._plan.properties)
        )
        self._scan = ArrowScan(metadata, table.io, metadata.schema(), AlwaysTrue())
        self._paths: list[str] = []
        self.files: list[StagedFile] = []

    def rewrite(self, one: _Bin) -> None:
        metadata = self._table.metadata
        first = one.tasks[0].file
        folder = None
        if len(first.partition):
            path = metadata.spec().partition_to_path(first.partition, metadata.schema())
            folder = PartitionValue(_values(first), path)
        path = self._places.new_data_location(f"{self._prefix}{uuid.uuid4()}.parquet", cast(Any, folder))
        self._paths.append(path)
        stream: OutputStream = self._table.io.new_output(path).create(overwrite=True)
        try:
            footer, rows = self._written(stream, one)
            size = int(stream.tell())
        finally:
            stream.close()
        if rows:
            self.files.append(staged_file(self._plan, path, _values(first), footer, size))
        else:
            self._table.io.delete(self._paths.pop())

    def _written(self, stream: OutputStream, one: _Bin) -> tuple[pq.FileMetaData, int]:
        """Write the rows of a bin with their origins; what the file says of itself, and how many they are."""
        reader = _BinReader(self._table, self._plan.arrow_schema, self._scan)
        rows = 0
        with pq.ParquetWriter(
            stream,
            self._plan.arrow_schema,
            store_decimal_as_integer=True,
            **parquet_options(self._plan.properties, self._plan.arrow_schema),
        ) as writer:
            for group in row_groups(reader.rows(one.tasks)):
                writer.write_table(group, row_group_size=max(1, group.num_rows))
                rows += group.num_rows
            self._refuse_lost(one, rows)
            writer.add_key_value_metadata(reader.origins(rows).to_footer())
        return writer.writer.metadata, rows

    def _refuse_lost(self, one: _Bin, rows: int) -> None:
        has_deletes = any(task.delete_files for task in one.tasks)
        expected = _rows(one.tasks)
        if rows > expected or (rows < expected and not has_deletes):
            raise FatalError(
                f"{self._plan.name}: {len(one.tasks)} files with {expected} rows were read as {rows}; "
                "nothing was replaced: look at these files with another engine"
            )

    def discard(self) -> None:
        for path in self._paths:
            with suppress(Exception):  # it is swept later
                self._table.io.delete(path)


@dataclass
class _BinReader:
    """Reads the rows of files as the table has them now, and gathers where they are from."""

    table: Table
    schema: pa.Schema
    scan: ArrowScan
    _origins: list[Origins] = field(default_factory=list)
    _told: int = 0
    """Rows of files that tell where all their rows are from."""

    def rows(self, tasks: Sequence[FileScanTask]) -> Iterator[pa.Table]:
        for task in tasks:
            if task.delete_files:
                # Which offsets were those of the deleted rows nobody knows.
                yield from self._scanned(task)
                continue
            with self.table.io.new_input(task.file.file_path).open() as stream:
                file = pq.ParquetFile(stream)
                origins = Origins.from_footer(file.metadata)
                if origins is not None and origins.rows == task.file.record_count:
                    self._origins.append(origins)
                    self._told += origins.rows
                if file.schema_arrow.remove_metadata().equals(self.schema, check_metadata=True):
                    for number in range(file.num_row_groups):
                        yield file.read_row_group(number)
                    continue
            yield from self._scanned(task)

    def _scanned(self, task: FileScanTask) -> Iterator[pa.Table]:
        """By PyIceberg: of older schemas, of other engines, or with deletes."""
        for batch in self.scan.to_record_batches([task]):
            yield pa.Table.from_batches([batch]).cast(self.schema)

    def origins(self, rows: int) -> Origins:
        return Origins.merged(self._origins, rows - self._told)
