"""Files of changes, staged by a task for the merge: the newest of each key.

Opened by `files.stage` for tables that get upserts. What is staged are no data files: Arrow streams in the
table's data folder, with the kind and the origin of each change, which `merge` reads again and then removes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
from pyiceberg.table.locations import LocationProvider, load_location_provider

from icestream.connectors.iceberg.catalogs.guarded_catalogs import refuse_foreign_code
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.catalogs.remote_signing import file_io
from icestream.records.origins import RowOrigins
from icestream.tables.changes import ChangeBuffer, StagedChanges

_ROWS_A_BATCH: Final = 20_000
CHANGES_SUFFIX: Final = ".changes"


class ChangeStage:
    """Takes changes; `close` tells the files that were written. As `StageWriter` to the writer of a task."""

    open_files = 0
    most_open_of_all = 1

    def __init__(
        self,
        schema: pa.Schema,
        ids: Sequence[str],
        location: str,
        properties: Mapping[str, str],
        io_properties: Mapping[str, str],
        prefix: str,
        table: str,
    ) -> None:
        refuse_foreign_code()
        self._buffer = ChangeBuffer(schema, ids)
        self._io = file_io(io_properties, location)
        self._places: LocationProvider = load_location_provider(location, dict(properties))
        self._prefix = prefix
        self._table = table
        self._staged: list[StagedChanges] = []

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
            path = self._places.new_data_location(f"{self._prefix}{uuid.uuid4()}{CHANGES_SUFFIX}")
            size = self._write(path, changes)
        self._staged.append(StagedChanges(path, self._buffer.count, size, dict(self._buffer.truncates)))
        self._buffer.clear()

    def _write(self, path: str, changes: pa.Table) -> int:
        with sink_errors(f"writing changes of {self._table}"):
            stream = self._io.new_output(path).create(overwrite=True)
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
                with suppress(
                    Exception
                ):  # a storage that is away may have been the reason; it is swept later
                    self._io.delete(one.path)
        self._staged.clear()
