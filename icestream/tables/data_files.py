"""Writes rows as Parquet data files that no table references yet; runs inside the pipeline's worker.

Rows are clustered by partition and buffered; when the caller says so, each partition's rows become one row
group of that partition's open file. So an open file holds no rows, however many partitions there are. Where
files are, and what a table says of them, is each format's own.
"""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icestream.records.origins import RowOrigins
from icestream.tables.file_origins import Origins
from icestream.tables.hidden_nulls import may_hide_nulls, without_hidden_nulls

_log = logging.getLogger(__name__)

_Key = TypeVar("_Key")
_File = TypeVar("_File")

_OPEN_LOCAL = 200
_OPEN_REMOTE = 24
"""An open file of an object store holds a part of itself in memory until the part is sent."""


@dataclass(frozen=True, eq=False)
class Group(Generic[_Key]):
    """Rows of one partition. `order` tells their places in the table that was split; None: all of it."""

    value: _Key
    rows: pa.Table
    order: np.ndarray[tuple[int], np.dtype[np.int64]] | None


@dataclass(frozen=True)
class FileLimits:
    target_bytes: int
    row_group_bytes: int
    most_open: int
    most_open_of_all: int
    """Where several writers share what a task may have open."""

    @classmethod
    def of(cls, location: str, most_open: int, target_bytes: int, row_group_bytes: int) -> FileLimits:
        is_local = urlsplit(location).scheme in ("", "file")
        of_all = _OPEN_LOCAL if is_local else _OPEN_REMOTE
        return cls(
            target_bytes,
            min(target_bytes, row_group_bytes),
            most_open if is_local else min(most_open, _OPEN_REMOTE),
            of_all,
        )


@dataclass(frozen=True)
class ClosedFile(Generic[_Key]):
    """A file that is whole."""

    path: str
    key: _Key
    metadata: pq.FileMetaData
    size: int
    facts: Any
    """What `new_facts` has seen."""


@dataclass(frozen=True)
class Piece:
    """Rows of one partition, and where each is from."""

    rows: pa.Table
    origins: RowOrigins | None
    """None: nobody knows."""
    size: int
    """About how many bytes it takes in memory."""

    def cut(self, limit: int) -> Iterator[Piece]:
        """Pieces of about `limit` bytes."""
        if self.size <= limit:
            yield self
            return
        step = max(1, self.rows.num_rows * limit // self.size)
        for at in range(0, self.rows.num_rows, step):
            rows = self.rows.slice(at, step)
            mine = self.origins.take(slice(at, at + step)) if self.origins is not None else None
            yield Piece(rows, mine, rows.nbytes)


class _OpenFile(Generic[_Key]):
    def __init__(
        self, path: str, stream: Any, key: _Key, schema: pa.Schema, options: Mapping[str, Any], facts: Any
    ) -> None:
        self.path = path
        self.key = key
        self.origins = Origins()
        self._facts = facts
        self._stream = stream
        self._writer = pq.ParquetWriter(stream, schema, store_decimal_as_integer=True, **options)

    def write(self, pieces: Sequence[Piece]) -> None:
        """Write pieces as one row group."""
        rows = pa.concat_tables(piece.rows for piece in pieces)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        if self._facts is not None:
            self._facts.add(rows)
        for piece in pieces:
            if piece.origins is None:
                self.origins.unknown_rows += piece.rows.num_rows
            else:
                self.origins.add(piece.origins)

    @property
    def size(self) -> int:
        return int(self._stream.tell())

    def close(self) -> ClosedFile[_Key]:
        self._writer.add_key_value_metadata(self.origins.to_footer())
        self._writer.close()
        size = self.size
        self._stream.close()
        return ClosedFile(self.path, self.key, self._writer.writer.metadata, size, self._facts)


class DataFileWriter(ABC, Generic[_Key, _File]):
    """Takes rows in any order of partitions; `close` tells the files that were written."""

    def __init__(
        self,
        table: str,
        schema: pa.Schema,
        options: Mapping[str, Any],
        limits: FileLimits,
        prefix: str,
    ) -> None:
        self._table = table
        self._schema = schema
        """Of the files."""
        self._options = options
        self._limits = limits
        self._prefix = prefix
        self._may_hide_nulls = any(may_hide_nulls(one.type) for one in schema)
        self._buffered: dict[_Key, list[Piece]] = {}
        self.buffered_bytes = 0
        self._open: dict[_Key, _OpenFile[_Key]] = {}
        self._staged: list[_File] = []
        self._paths: list[str] = []

    @abstractmethod
    def split(self, rows: pa.Table) -> Iterator[Group[_Key]]:
        """The rows of each partition value, with the columns that files have."""

    @abstractmethod
    def new_path(self, name: str, key: _Key) -> str: ...

    @abstractmethod
    def create(self, path: str) -> Any:
        """A stream to write to, which can `tell` its size."""

    @abstractmethod
    def delete(self, path: str) -> None: ...

    @abstractmethod
    def errors(self, doing: str) -> AbstractContextManager[None]:
        """Raises SinkUnavailable for what the storage raises."""

    @abstractmethod
    def described(self, file: ClosedFile[_Key]) -> _File:
        """What the table is told of a file."""

    def new_facts(self) -> Any:
        """What looks (`add`) at the rows of a file while it is written; None: nothing does."""
        return None

    def write(self, rows: pa.Table, origins: RowOrigins | None) -> None:
        """`origins` None: nobody knows where these rows are from."""
        if not rows.num_rows:
            return
        if self._may_hide_nulls:
            rows = without_hidden_nulls(rows)
        size = rows.nbytes
        for group in self.split(rows):
            mine = origins if origins is None or group.order is None else origins.take(group.order)
            # In proportion: the columns of a group are many and short, and measuring them takes its time.
            share = size * group.rows.num_rows // rows.num_rows
            self._buffered.setdefault(group.value, []).append(Piece(group.rows, mine, share))
        self.buffered_bytes += size

    @property
    def open_files(self) -> int:
        return len(self._open)

    @property
    def most_open_of_all(self) -> int:
        return self._limits.most_open_of_all

    def close(self) -> list[_File]:
        """All files that were written; more may be written after it."""
        self.flush()
        with self.errors(f"writing data files of {self._table}"):
            for key in list(self._open):
                self._finish(key)
        return self._staged

    def discard(self) -> None:
        """Remove all files of this writer, as far as the storage lets us."""
        for file in self._open.values():
            with suppress(Exception):  # a storage that is away may have been the reason
                file.close()
        self._open.clear()
        self._staged.clear()
        for path in self._paths:
            try:
                self.delete(path)
            except Exception as error:  # it is swept later
                _log.warning("staged file %s is left behind: %s", path, error)
        self._paths.clear()

    def flush(self) -> None:
        """Write what is buffered: each partition's rows become a row group of that partition's open file."""
        with self.errors(f"writing data files of {self._table}"):
            for key, pieces in self._buffered.items():
                for row_group in _row_groups(pieces, self._limits.row_group_bytes):
                    file = self._file(key)
                    file.write(row_group)
                    if file.size >= self._limits.target_bytes:
                        self._finish(key)
        self._buffered.clear()
        self.buffered_bytes = 0

    def _file(self, key: _Key) -> _OpenFile[_Key]:
        if key not in self._open:
            if len(self._open) >= self._limits.most_open:
                self._finish(next(iter(self._open)))
            path = self.new_path(f"{self._prefix}{uuid.uuid4()}.parquet", key)
            self._paths.append(path)
            stream = self.create(path)
            self._open[key] = _OpenFile(path, stream, key, self._schema, self._options, self.new_facts())
        return self._open[key]

    def _finish(self, key: _Key) -> None:
        self._staged.append(self.described(self._open.pop(key).close()))


def _row_groups(pieces: Sequence[Piece], limit: int) -> Iterator[list[Piece]]:
    """Pieces in groups that are no larger in memory than a file may be on disk, so that files end in time."""
    group: list[Piece] = []
    held = 0
    for piece in pieces:
        for part in piece.cut(limit):
            if group and held + part.size > limit:
                yield group
                group, held = [], 0
            group.append(part)
            held += part.size
    if group:
        yield group


def value_codes(
    columns: list[pa.Array],
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """For `split`: one small number per row that tells its combination of values; and the combinations."""
    combined = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        encoded = column.dictionary_encode(null_encoding="encode")
        combined = combined * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy(zero_copy_only=False)
    distinct, codes = np.unique(combined, return_inverse=True)
    return codes, distinct
