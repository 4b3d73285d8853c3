"""Files of changes in the folder of a Delta table. Opened by `writer` for tables that get upserts; `merge`
reads them again."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from icestream.connectors.delta.files.stage import TablePlan
from icestream.connectors.delta.files.table_folder import TableFolder
from icestream.connectors.delta.storage import Storage, file_path, storage_errors
from icestream.tables.upserts.change_files import ChangeFileWriter
from icestream.tables.upserts.changes import (
    StagedChanges,
    UpsertPlan,
    after_truncates,
    last_truncates,
    newest,
    staged_schema,
)


class ChangeStage(ChangeFileWriter):
    def __init__(self, plan: TablePlan, batch: str, upserts: UpsertPlan) -> None:
        super().__init__(plan.name, plan.arrow_schema, upserts.ids, f"{plan.file_prefix}{batch}-")
        self._folder = TableFolder(plan.location, plan.storage)

    def new_path(self, name: str) -> str:
        return name

    def create(self, path: str) -> Any:
        return self._folder.create(path)

    def delete(self, path: str) -> None:
        self._folder.delete(path)

    def errors(self, doing: str) -> AbstractContextManager[None]:
        return storage_errors(doing)


def read_changes(
    staged: Sequence[StagedChanges],
    schema: pa.Schema,
    ids: Sequence[str],
    table: str,
    location: str,
    storage: Storage,
) -> pa.Table:
    """All changes of a batch, the newest of each key, without those that a truncate has undone."""
    files = storage.file_system(location)
    truncates = last_truncates(one.truncates for one in staged)
    parts: list[pa.RecordBatch] = []
    several = 0
    for one in staged:
        if not one.path:
            continue
        several += 1
        whole = posixpath.join(file_path(location), one.path)
        with (
            storage_errors(f"reading changes of {table}"),
            files.open_input_stream(whole) as stream,
            pa.ipc.open_stream(stream) as reader,
        ):
            parts += [after_truncates(batch, truncates) for batch in reader]
    changes = pa.Table.from_batches(parts, staged_schema(schema))
    return newest(changes, ids) if several > 1 and changes.num_rows else changes
