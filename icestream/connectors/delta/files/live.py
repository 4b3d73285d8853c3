"""The data files that a table has, and their rows in the table's columns. Read by the manager where files are
written again: by merges of changes and by compaction."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from icestream.connectors.delta.files.partitions import PartitionValue, texts
from icestream.connectors.delta.storage import Storage, file_path

_ROWS_A_BATCH: Final = 64 * 1024


@dataclass(frozen=True)
class LiveFile:
    """A data file of a table, as its log has it."""

    path: str
    """Below the table's folder, not encoded."""
    size: int
    rows: int | None
    """None: the log does not tell."""
    partition: PartitionValue
    values: Mapping[str, pa.Scalar] = field(repr=False, default_factory=dict)
    """Of the partition columns."""
    bounds: Mapping[str, tuple[Any, Any]] = field(repr=False, default_factory=dict)
    """Least and greatest value of columns, as far as the log tells them."""
    has_vector: bool = False
    """Whether another engine has deleted rows of it by a deletion vector."""


def live_files(table: DeltaTable, schema: pa.Schema) -> list[LiveFile]:
    """All files of a table that is open, in the order of its log."""
    actions = pa.table(table.get_add_actions(flatten=False))
    columns = list(table.metadata().partition_columns)
    partition = {name: _inner(actions, "partition", name).cast(schema.field(name).type) for name in columns}
    as_text = {name: texts(column) for name, column in partition.items()}
    low, high = (_bounds(actions, which) for which in ("min", "max"))
    vectors = _with_vectors(table)
    sizes, counts = actions["size_bytes"].to_pylist(), actions["num_records"].to_pylist()
    found = []
    for at, encoded in enumerate(actions["path"].to_pylist()):
        path = unquote(encoded)
        found.append(
            LiveFile(
                path,
                sizes[at],
                counts[at],
                tuple((name, as_text[name][at].as_py()) for name in columns),
                {name: partition[name][at] for name in columns},
                {name: (low[name][at], high[name][at]) for name in low if name in high},
                any(one.endswith(f"/{path}") for one in vectors),
            )
        )
    return found


def _bounds(actions: pa.Table, which: str) -> dict[str, list[Any]]:
    found = {}
    for name in _fields(actions, which):
        # Python has no dates after the year 9999, and Arrow has.
        with suppress(OverflowError, ValueError):
            found[name] = _inner(actions, which, name).to_pylist()
    return found


def _fields(actions: pa.Table, which: str) -> list[str]:
    if which not in actions.column_names:
        return []
    kind = actions.schema.field(which).type
    return [kind.field(at).name for at in range(kind.num_fields)]


def _inner(actions: pa.Table, which: str, name: str) -> pa.Array:
    column = actions.column(which).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.field(name)


def _with_vectors(table: DeltaTable) -> list[str]:
    if "deletionVectors" not in (table.protocol().writer_features or ()):
        return []
    vectors = pa.table(table.deletion_vectors())
    return [unquote(urlsplit(uri).path) for uri in vectors["filepath"].to_pylist()]


@dataclass(frozen=True)
class FileReader:
    """Reads files of one table in the columns that it has now."""

    schema: pa.Schema
    location: str
    storage: Storage

    def open(self, file: LiveFile) -> pq.ParquetFile:
        files = self.storage.file_system(self.location)
        stream = files.open_input_file(posixpath.join(file_path(self.location), file.path))
        # Spark's own times are of 96 bits unless it is told otherwise.
        return pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")

    def rows(
        self, opened: pq.ParquetFile, file: LiveFile, names: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Some rows at a time, in the order of the file."""
        wanted = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        held = set(opened.schema_arrow.names)
        columns = [one.name for one in wanted if one.name in held and one.name not in file.values]
        for batch in opened.iter_batches(_ROWS_A_BATCH, columns=columns):
            yield self._fitted(batch, wanted, file)

    def _fitted(self, batch: pa.RecordBatch, wanted: pa.Schema, file: LiveFile) -> pa.Table:
        held = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = []
        for one in wanted:
            if one.name in file.values:
                columns.append(pa.repeat(file.values[one.name], batch.num_rows))
            elif one.name in held:
                column = held[one.name]
                columns.append(column if column.type == one.type else column.cast(one.type))
            else:
                columns.append(pa.nulls(batch.num_rows, one.type))
        return pa.table(columns, schema=wanted)
