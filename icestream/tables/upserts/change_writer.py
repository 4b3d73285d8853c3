"""One table's part of a task, where records change the rows of their keys. Made by the writers of sinks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure
from icestream.api.sink import TASK_PUT, TargetTask, WriterTask
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.values import Fields
from icestream.rows.to_rows import RowConverter, in_python
from icestream.tables.required_fields import missing_required
from icestream.tables.table_writer import RowStage, TableRows, TableWriter
from icestream.tables.upserts.changes import (
    DELETE,
    PUT,
    TRUNCATE,
    UNKNOWN,
    ChangeKinds,
    KeyRows,
    UpsertPlan,
    null_ids,
    optional,
    with_kinds,
)


class ChangeWriter(TableWriter):
    """Its rows have the kind of each change beside them; the stage takes them as `ChangeBuffer` does."""

    deletes = True

    def __init__(self, target: TargetTask, task: WriterTask, upserts: UpsertPlan, files: RowStage) -> None:
        super().__init__(target, task, files)
        self._schema = target.plan.arrow_schema
        self._converter = RowConverter(optional(self._schema), self._converter.drift)
        self._ids = upserts.ids
        self._kinds = ChangeKinds(upserts.cdc_field)
        self._keys = KeyRows(self._schema, upserts.ids)

    def _spelled_rows_of(self, records: Records) -> TableRows:
        rows = self._converted(records)
        kinds, told = self._kinds.of(records.value, len(records))
        failed = {int(records.rows[at]): why for at, why in rows.failed.items()}
        for at in np.flatnonzero(kinds == UNKNOWN).tolist():
            failed[int(records.rows[at])] = Failure(
                f"the kind of change '{told[at]}' is none of insert, update, delete, read, create and "
                "truncate, by its first letter",
                stage=TASK_PUT,
            )
        mine = kinds[rows.index]
        made = TableRows(with_kinds(rows.rows, mine), records.rows[rows.index], failed)
        needs_key = np.flatnonzero(mine != TRUNCATE)
        without_id = null_ids(rows.rows.take(pa.array(needs_key)), self._ids)
        for row, name in without_id.items():
            failed[int(made.index[needs_key[row]])] = self._lacks(name, "the value")
        puts = np.flatnonzero(mine == PUT)
        put_rows = pa.table(rows.rows.take(pa.array(puts)).columns, schema=self._schema)
        lacking = missing_required(put_rows)
        if lacking and self._grows and isinstance(records.value, Fields | Column):
            those = rows.index[puts[np.fromiter(lacking, np.int64, len(lacking))]]
            self._drift.in_nulls(in_python(records.value, those.tolist()))
        for row, why in lacking.items():
            failed.setdefault(int(made.index[puts[row]]), Failure(why, stage=TASK_PUT))
        return made.without(failed) if failed else made

    def deletions_of(self, records: Records) -> TableRows:
        """The rows that records without a value delete, by their keys."""
        key = self._any_case.respelled(records.key, len(records)) if self._any_case else None
        rows = self._keys.of(key.value if key and not key.failed else records.key, len(records))
        failed = {int(records.rows[at]): self._unkeyed(why.reason) for at, why in rows.failed.items()}
        index = records.rows[rows.index]
        for row, name in null_ids(rows.rows, self._ids).items():
            failed[int(index[row])] = self._lacks(name, "the key of a record without a value")
        kinds = np.full(rows.rows.num_rows, DELETE, np.int8)
        made = TableRows(with_kinds(rows.rows, kinds), index, failed)
        return made.without(failed) if failed else made

    @staticmethod
    def _lacks(name: str, where: str) -> Failure:
        return Failure(f"id column '{name}' has no value in {where}: the row is not known", stage=TASK_PUT)

    def _unkeyed(self, why: str) -> Failure:
        return Failure(
            f"a record without a value deletes a row, and its key does not tell the id columns "
            f"{', '.join(self._ids)}: {why}; set key.converter to what the keys are written with",
            stage=TASK_PUT,
        )
