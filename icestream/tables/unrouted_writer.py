"""The writer of a task whose records are for every table of the job. A sink's own writer is one of these.

A record that one table cannot take is in none: all see it before any gets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icestream.api.batch import Failure, Staged
from icestream.api.sink import WriterTask, Written
from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.tables.plans import NewTablePlan
from icestream.tables.table_writer import OpenTable, nulls_apart

BUFFER_BYTES: Final = 192 * 1024 * 1024
OPEN_FILES: Final = 200
"""Of all tables of a task together."""


def open_files_of_each(task: WriterTask) -> int:
    """The share of one table."""
    return max(1, OPEN_FILES // len(task.targets))


class TablesWriter:
    """Writes for all tables of a job at once."""

    def __init__(self, task: WriterTask, open_table: OpenTable) -> None:
        self._stages = task.stages
        self._new = {
            target.name: target.plan.seen()
            for target in task.targets
            if isinstance(target.plan, NewTablePlan)
        }
        self._tables = [open_table(target, task) for target in task.targets if target.name not in self._new]

    def write(self, records: Sequence[Records], origins: RowOrigins) -> Written:
        present, absent = nulls_apart(records)
        for shape in self._new.values():
            for group in present:
                shape.look(group.value)
        # A null value is passed over, as the Java sink does; where rows have keys, it deletes one.
        deletes = bool(self._tables) and self._tables[0].deletes
        skipped = [] if deletes else [int(row) for group in absent for row in group.rows]
        made = [
            [
                *(table.rows_of(group) for group in present),
                *(table.deletions_of(group) for group in absent if deletes),
            ]
            for table in self._tables
        ]
        failed: dict[int, Failure] = {}
        for parts in made:
            for part in parts:
                failed = {**part.failed, **failed}
        for table, parts in zip(self._tables, made, strict=True):
            fresh = origins.at_or_after(table.start)
            for part in parts if self._stages else ():
                table.write(part.without(failed) if failed else part, origins, fresh)
        self._free_memory()
        return Written(failed, skipped)

    def _free_memory(self) -> None:
        """All tables share one allowance for rows that wait to be written."""
        while sum(table.files.buffered_bytes for table in self._tables) >= BUFFER_BYTES:
            max(self._tables, key=lambda table: table.files.buffered_bytes).files.flush()

    def close(self) -> dict[str, Staged]:
        seen = {name: Staged(new_fields=shape.found()) for name, shape in self._new.items()}
        return {table.name: table.close() for table in self._tables} | seen

    def discard(self) -> None:
        for table in self._tables:
            table.files.discard()
