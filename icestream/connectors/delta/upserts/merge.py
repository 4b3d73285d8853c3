"""Merges staged changes into the files of a table: files that have a row of a changed key are written again
without it, and the new rows are more files. Nobody sees them before the commit that takes the old files out
and the new ones in. Called by `table`; decision 033 tells why no engine does it.

One file after the other is read, first its keys, and only those that have a changed one whole: so memory does
not grow with the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.errors import FatalError
from icestream.connectors.delta.files.live import FileReader, LiveFile
from icestream.connectors.delta.files.stage import StagedFile, StageWriter, TablePlan
from icestream.connectors.delta.storage import storage_errors
from icestream.tables.upserts.changes import KIND, PUT, column_at

_BUFFER_BYTES: Final = 64 * 1024 * 1024
_MOST_THREADS: Final = 4
_ROW: Final = "row"


@dataclass(frozen=True)
class Merged:
    added: Sequence[StagedFile]
    removed: Sequence[LiveFile]


@dataclass(frozen=True)
class Merge:
    """One merge into the files of a table as one handle of it has them."""

    plan: TablePlan
    ids: Sequence[str]
    changes: pa.Table
    """The newest of each key."""
    truncates: bool
    """Whether all rows that the table has are to go."""
    batch: str

    def run(self, files: Sequence[LiveFile]) -> Merged:
        writers: list[StageWriter] = []
        try:
            return self._run(files, writers)
        except BaseException:  # nothing refers to the new files yet, whatever ended this
            for writer in writers:
                writer.discard()
            raise

    def _run(self, files: Sequence[LiveFile], writers: list[StageWriter]) -> Merged:
        removed = list(files) if self.truncates else []
        if not self.truncates and self.changes.num_rows:
            keys = self._keys(self.changes, range(self.changes.num_rows)).drop_columns([_ROW])
            pruning = Pruning.of(self.changes, self.ids, self.plan.partition_columns)
            candidates = [file for file in files if pruning.may_have(file)]
            threads = max(1, min(_MOST_THREADS, os.cpu_count() or 1, len(candidates)))
            shares = [candidates[at::threads] for at in range(threads)]
            writers += [self._writer() for _ in shares]
            with ThreadPoolExecutor(threads, thread_name_prefix="delta-merge") as pool:
                work = [
                    pool.submit(self._copy, share, keys, writer)
                    for share, writer in zip(shares, writers, strict=True)
                ]
                # All of them end before anything is discarded.
                errors = [error for one in work if (error := one.exception()) is not None]
                if errors:
                    raise errors[0]
                removed = [file for one in work for file in one.result()]
        puts = self.changes.filter(pc.equal(self.changes[KIND], PUT))
        if puts.num_rows:
            writer = self._writer()
            writers.append(writer)
            rows = puts.select(self.plan.arrow_schema.names)
            writer.write(pa.table(rows.columns, schema=self.plan.arrow_schema), None)
        return Merged([file for writer in writers for file in writer.close()], removed)

    def _writer(self) -> StageWriter:
        return StageWriter(self.plan, self.batch)

    def _copy(self, files: Iterable[LiveFile], keys: pa.Table, writer: StageWriter) -> list[LiveFile]:
        """Write the rows that stay of those files that have one that does not; these files."""
        touched = []
        for file in files:
            with storage_errors(f"merging into {self.plan.name}"):
                if self._copied(file, keys, writer):
                    touched.append(file)
        return touched

    def _copied(self, file: LiveFile, keys: pa.Table, writer: StageWriter) -> bool:
        reader = FileReader(self.plan.arrow_schema, self.plan.location, self.plan.storage)
        names = list(dict.fromkeys(one.partition(".")[0] for one in self.ids))
        with reader.open(file) as opened:
            count = opened.metadata.num_rows
            held, at = [], 0
            for rows in reader.rows(opened, file, names):
                held.append(self._keys(rows, range(at, at + rows.num_rows)))
                at += rows.num_rows
            gone = _rows_with(pa.concat_tables(held), keys) if held else np.empty(0, np.int64)
            if not len(gone):
                return False
            if file.has_vector:
                raise FatalError(
                    f"{self.plan.name}: rows of {file.path} were deleted by a deletion vector, which this "
                    "version cannot merge into; purge them with REORG TABLE … APPLY (PURGE), and switch "
                    "delta.enableDeletionVectors off"
                )
            keep = np.ones(count, np.bool_)
            keep[gone] = False
            at = 0
            for rows in reader.rows(opened, file) if keep.any() else ():
                kept = rows.filter(pa.array(keep[at : at + rows.num_rows]))
                at += rows.num_rows
                writer.write(kept, None)
                if writer.buffered_bytes >= _BUFFER_BYTES:
                    writer.flush()
        return True

    def _keys(self, rows: pa.Table, numbers: range) -> pa.Table:
        columns: dict[str, Any] = {
            f"k{at}": column_at(rows, name.split(".")) for at, name in enumerate(self.ids)
        }
        return pa.table({**columns, _ROW: pa.array(np.arange(numbers.start, numbers.stop))})


def _rows_with(held: pa.Table, keys: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which rows have one of the keys."""
    names = keys.column_names
    if len(names) == 1:
        found = pc.is_in(held[names[0]], value_set=keys[names[0]].combine_chunks(), skip_nulls=True)
        return np.flatnonzero(found.to_numpy())
    rows: np.ndarray[tuple[int], np.dtype[np.int64]] = held.join(
        keys, names, join_type="left semi", use_threads=False
    )[_ROW].to_numpy()
    return rows


@dataclass(frozen=True)
class Pruning:
    """Tells which files may have a changed key, by their partitions and by what the log says of their bounds.

    Bounds of whole numbers and dates only: those of other types are cut or rounded, each writer in its way.
    """

    values: Mapping[str, frozenset[Any]]
    bounds: Mapping[str, tuple[Any, Any]]

    @classmethod
    def of(cls, changes: pa.Table, ids: Sequence[str], partition_columns: Sequence[str]) -> Pruning:
        values: dict[str, frozenset[Any]] = {}
        bounds: dict[str, tuple[Any, Any]] = {}
        for name in ids:
            if name in partition_columns:
                values[name] = frozenset(pc.unique(changes[name]).to_pylist())
            elif name in changes.column_names and _has_exact_bounds(changes.schema.field(name).type):
                # Of days that Python's calendar has not, files tell no bounds either.
                with suppress(OverflowError, ValueError):
                    both = pc.min_max(changes[name]).as_py()
                    bounds[name] = (both["min"], both["max"])
        return cls(values, bounds)

    def may_have(self, file: LiveFile) -> bool:
        if any(file.values[name].as_py() not in wanted for name, wanted in self.values.items()):
            return False
        for name, (low, high) in self.bounds.items():
            least, greatest = file.bounds.get(name, (None, None))
            if least is not None and greatest is not None and (greatest < low or least > high):
                return False
        return True


def _has_exact_bounds(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_date32(kind))
