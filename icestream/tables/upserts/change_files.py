"""Files of changes, staged by a task for the merge: the newest of each key.

No data files: Arrow streams in the table's folder, with the kind and the origin of each change, which the
commit reads again and then removes. Where files are is each sink's own.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import pyarrow as pa

from icestream.records.origins import RowOrigins
from icestream.tables.upserts.changes import ChangeBuffer, StagedChanges

CHANGES_SUFFIX: Final = ".changes"
_ROWS_A_BATCH: Final = 20_000


class ChangeFileWriter(ABC):
    """Takes changes; `close` tells the files that were written. As a `DataFileWriter` to the writer of a
    task."""

    open_files = 0
    most_open_of_all = 1

    def __init__(self, table: str, schema: pa.Schema, ids: Sequence[str], prefix: str) -> None:
        self._table = table
        self._prefix = prefix
        self._buffer = ChangeBuffer(schema, ids)
        self._staged: list[StagedChanges] = []

    @abstractmethod
    def new_path(self, name: str) -> str: ...

    @abstractmethod
    def create(self, path: str) -> Any:
        """A stream to write to, which can `tell` its size."""

    @abstractmethod
    def delete(self, path: str) -> None: ...

    @abstractmethod
    def errors(self, doing: str) -> AbstractContextManager[None]:
        """Raises SinkUnavailable for what the storage raises."""

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes

    def write(self, rows: pa.Table, origins: RowOrigins) -> None:
        """Rows of the table's columns, last the kind of each change; and where each is from."""
        self._buffer.add(rows, origins)

    def flush(self) -> None:
        """Write what is buffered, the newest of each key."""
        if not self._buffer.count:
            return
        changes = self._buffer.newest()
        path, size = "", 0
        if changes.num_rows:
            path = self.new_path(f"{self._prefix}{uuid.uuid4()}{CHANGES_SUFFIX}")
            size = self._write(path, changes)
        self._staged.append(StagedChanges(path, self._buffer.count, size, dict(self._buffer.truncates)))
        self._buffer.clear()

    def _write(self, path: str, changes: pa.Table) -> int:
        with self.errors(f"writing changes of {self._table}"):
            stream = self.create(path)
            # Known before it is whole, so that it is removed whatever happens.
            self._staged.append(StagedChanges(path, 0))
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_stream(stream, changes.schema, options=options) as writer:
                writer.write_table(changes, max_chunksize=_ROWS_A_BATCH)
            size = int(stream.tell())
            stream.close()
            self._staged.pop()
        return size

    def close(self) -> list[StagedChanges]:
        self.flush()
        return self._staged

    def discard(self) -> None:
        """Remove all files of this writer, as far as the storage lets us."""
        for one in self._staged:
            if one.path:
                with suppress(Exception):  # it may be away, and be the reason; what stays is swept later
                    self.delete(one.path)
        self._staged.clear()
