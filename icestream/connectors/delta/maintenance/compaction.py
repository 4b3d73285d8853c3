"""Merges small data files of a Delta table into larger ones; the rows stay the same.

The rewrite is our own, and not that of delta-rs: its merged files do not tell which source offsets their rows
are from, its bounds of decimals are floats, and its commit does not look whether somebody else has merged the
same files meanwhile, which repeats their rows (docs/decisions/033-delta-merge.md). Called by `steps`.
"""

from __future__ import annotations

import logging
import posixpath
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from icestream.api.errors import CommitConflict, CommitUnknown, FatalError, SinkUnavailable
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.commits.marks import MADE_BY
from icestream.connectors.delta.commits.sweep import MERGED
from icestream.connectors.delta.files.live import FileReader, LiveFile, live_files
from icestream.connectors.delta.files.partitions import Partitioner, PartitionValue, folder
from icestream.connectors.delta.files.stage import StagedFile, parquet_options
from icestream.connectors.delta.files.statistics import (
    FloatFacts,
    float_columns,
    indexed_columns,
    statistics_json,
)
from icestream.connectors.delta.files.table_folder import TableFolder
from icestream.connectors.delta.new_table import WITHOUT_HOOKS
from icestream.connectors.delta.opening import delta_errors
from icestream.connectors.delta.schemas import arrow_schema
from icestream.connectors.delta.storage import Storage, storage_errors, told
from icestream.tables.file_origins import Origins
from icestream.tables.maintenance.row_groups import row_groups
from icestream.tables.maintenance.small_files import growing, packed

_log = logging.getLogger(__name__)

_ID: Final = "icestream.maintenance.id"
_MOST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Of files that one commit replaces."""
_MOST_SECONDS: Final = 1800.0
_ATTEMPTS: Final = 20
"""Of the commit, if others commit first; each takes no longer than to read the log again."""


@dataclass(frozen=True)
class CompactionLimits:
    min_files: int = 10
    target_bytes: int = 128 * 1024 * 1024


@dataclass(frozen=True)
class CompactionResult:
    files_before: int
    files_after: int
    files_removed: int = 0
    files_added: int = 0
    bytes_read: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Compaction:
    """Of one table."""

    name: str
    load: Callable[[], DeltaTable]
    location: str
    storage: Storage
    file_prefix: str
    write_props: Mapping[str, str]
    reached: Callable[[str], None] = lambda point: None
    clock: Callable[[], float] = time.monotonic

    def run(
        self, limits: CompactionLimits, turn: AbstractContextManager[object], *, dry_run: bool = False
    ) -> CompactionResult:
        """Merge what is small, in one commit within `turn`; nothing to do is no commit.

        CommitConflict: somebody else has replaced the files meanwhile; nothing is changed.
        """
        started = self.clock()
        table = self.load()
        schema = arrow_schema(table.schema().to_json())
        with delta_errors(f"reading the files of {self.name}"):
            files = live_files(table, schema)
        bins = _bins(files, limits)
        removed = [file for one in bins for file in one]
        read = sum(file.size for file in removed)
        after = len(files) - len(removed) + len(bins)
        if not bins or dry_run:
            rows = sum(file.rows or 0 for file in removed)
            return CompactionResult(len(files), after, len(removed), len(bins), read, rows)
        writer = _Rewriter(self, table, schema)
        try:
            for one in bins:
                writer.rewrite(one)
                if self.clock() - started > _MOST_SECONDS:
                    raise CommitConflict(
                        f"{self.name}: to merge {len(removed)} files took longer than {_MOST_SECONDS:.0f} s"
                    )
        except BaseException:  # nothing refers to the new files yet, whatever ended this
            writer.discard()
            raise
        self.reached("rewritten")
        try:
            with turn:
                self._replace(table, removed, writer.files)
        except CommitConflict as conflict:
            # Whatever else was raised, the commit may have landed or may land yet.
            if conflict.certain:
                writer.discard()
            raise
        self.reached("compacted")
        rows = sum(file.rows for file in writer.files)
        return CompactionResult(len(files), after, len(removed), len(writer.files), read, rows)

    def _replace(self, planned: DeltaTable, removed: Sequence[LiveFile], added: Sequence[StagedFile]) -> None:
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            *(
                AddAction(one.path, one.size, dict(one.partition), now, False, one.statistics)
                for one in added
            ),
            *(RemoveAction(one.path, False, now, one.size, dict(one.partition)) for one in removed),
        ]
        id_ = str(uuid.uuid4())
        said = {MADE_BY: "compaction", _ID: id_}
        shape = _shape(planned)
        for left in reversed(range(_ATTEMPTS)):
            table = self.load()
            if _shape(table) != shape:
                raise CommitConflict(f"{self.name} was changed while its files were merged")
            with delta_errors(f"reading the files of {self.name}"):
                held = {file.path: file for file in live_files(table, arrow_schema(table.schema().to_json()))}
            if any(file.path not in held or held[file.path].has_vector for file in removed):
                raise CommitConflict(f"{self.name}: others have replaced files, or deleted rows, meanwhile")
            try:
                # Without a retry of its own, which would not look again whether the files are still there: it
                # lands on the version of this handle, or not at all.
                table.create_write_transaction(
                    actions,
                    "append",
                    table.schema(),
                    table.metadata().partition_columns,
                    commit_properties=CommitProperties(custom_metadata=said, max_commit_retries=0),
                    post_commithook_properties=WITHOUT_HOOKS,
                )
                return
            except (DeltaError, OSError) as error:
                if self._landed(id_, table.version(), error):
                    return
                if not isinstance(error, DeltaError) or not left:
                    raise CommitConflict(
                        f"{self.name}: {told(error)}", certain=isinstance(error, DeltaError)
                    ) from error

    def _landed(self, id_: str, before: int, error: Exception) -> bool:
        """Any error may hide a commit that landed: ask the table."""
        try:
            table = self.load()
            with delta_errors(f"reading the log of {self.name}"):
                version = table.version()
                log = TableLog.of(self.location, self.storage)
                entries = log.last_entries(version, max(1, version - before))
        except SinkUnavailable as unavailable:
            raise CommitUnknown(
                f"{self.name}: a compaction may have landed and the storage does not answer: {unavailable}"
            ) from error
        return any(entry.get(_ID) == id_ for entry in entries)


def _shape(table: DeltaTable) -> tuple[str, str, list[str]]:
    metadata = table.metadata()
    return str(metadata.id), table.schema().to_json(), list(metadata.partition_columns)


def _bins(files: Sequence[LiveFile], limits: CompactionLimits) -> list[list[LiveFile]]:
    """Files that are worth merging, each group for one file."""
    by_partition: dict[PartitionValue, list[LiveFile]] = defaultdict(list)
    for file in files:
        # Of a file with a deletion vector a remove action cannot tell which vector it had.
        if file.size < limits.target_bytes * 3 // 4 and not file.has_vector:
            by_partition[file.partition].append(file)
    left = _MOST_BYTES
    bins: list[list[LiveFile]] = []
    for members in by_partition.values():
        merged = growing(members, lambda file: file.size)
        if len(merged) < max(2, limits.min_files):
            continue
        for one in packed(merged, lambda file: file.size, limits.target_bytes):
            left -= sum(file.size for file in one)
            if left < 0 and bins:
                return bins
            bins.append(one)
    return bins


class _Rewriter:
    """Writes merged files, which nobody references yet."""

    def __init__(self, job: Compaction, table: DeltaTable, schema: pa.Schema) -> None:
        metadata = table.metadata()
        properties = {**metadata.configuration, **job.write_props}
        self._job = job
        self._reader = FileReader(schema, job.location, job.storage)
        self._folder = TableFolder(job.location, job.storage)
        self._schema = Partitioner(schema, metadata.partition_columns).file_schema()
        self._indexed = indexed_columns(self._schema, properties)
        self._floats = float_columns(self._schema) & self._indexed
        self._options = parquet_options(properties, self._schema)
        self._prefix = f"{job.file_prefix}{uuid.uuid4()}-{MERGED}"
        self._paths: list[str] = []
        self.files: list[StagedFile] = []

    def rewrite(self, files: Sequence[LiveFile]) -> None:
        partition = files[0].partition
        path = posixpath.join(folder(partition), f"{self._prefix}{uuid.uuid4()}.parquet")
        with storage_errors(f"rewriting files of {self._job.name}"):
            self._paths.append(path)
            stream = self._folder.create(path)
            facts = FloatFacts(self._floats)
            try:
                footer = self._written(stream, files, facts)
                size = int(stream.tell())
            finally:
                stream.close()
        statistics = statistics_json(footer, self._schema, self._indexed, facts)
        self.files.append(StagedFile(path, partition, footer.num_rows, size, statistics))

    def _written(self, stream: Any, files: Sequence[LiveFile], facts: FloatFacts) -> pq.FileMetaData:
        origins: list[Origins] = []
        rows = 0
        with pq.ParquetWriter(stream, self._schema, store_decimal_as_integer=True, **self._options) as writer:
            for group in row_groups(self._rows(files, origins)):
                writer.write_table(group, row_group_size=max(1, group.num_rows))
                facts.add(group)
                rows += group.num_rows
            known = sum(one.rows for one in origins)
            writer.add_key_value_metadata(Origins.merged(origins, rows - known).to_footer())
        return writer.writer.metadata

    def _rows(self, files: Sequence[LiveFile], origins: list[Origins]) -> Iterator[pa.Table]:
        for file in files:
            with self._reader.open(file) as opened:
                count = opened.metadata.num_rows
                if file.rows is not None and file.rows != count:
                    raise FatalError(
                        f"{self._job.name}: {file.path} has {count} rows, {file.rows} by the log; nothing "
                        "was replaced: look at this file with another engine"
                    )
                found = Origins.from_footer(opened.metadata)
                if found is not None and found.rows == count:
                    origins.append(found)
                for rows in self._reader.rows(opened, file):
                    yield rows.select(self._schema.names)

    def discard(self) -> None:
        for path in self._paths:
            with suppress(Exception):  # it is swept later
                self._folder.delete(path)
