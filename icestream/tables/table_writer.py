"""One table's part of a task: records become its rows, and the rows go to where they are staged.

A sink's writer makes one for each of its tables; `unrouted_writer` and `routed_writer` run them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure, Staged
from icestream.api.sink import TASK_PUT, TargetTask, WriterTask
from icestream.records.column import Column
from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.records.rows import Flags, Indexes
from icestream.records.values import Fields
from icestream.rows.any_case import AnyCase
from icestream.rows.new_columns import GrowthLimit, column_count
from icestream.rows.schema_drift import SchemaDrift
from icestream.rows.to_rows import RowConverter, Rows, in_python
from icestream.tables.kafka_columns import with_kafka_columns, with_source_topics
from icestream.tables.plans import RowPlan
from icestream.tables.required_fields import missing_required


class RowStage(Protocol):
    """Takes the rows of one table; nothing of it is visible yet."""

    @property
    def buffered_bytes(self) -> int: ...

    @property
    def open_files(self) -> int: ...

    @property
    def most_open_of_all(self) -> int:
        """Where several share what a task may have open."""

    def write(self, rows: pa.Table, origins: RowOrigins) -> None: ...

    def flush(self) -> None:
        """Write what is buffered."""

    def close(self) -> Sequence[Any]:
        """What is staged, each with its `rows`; more may be written after it."""

    def discard(self) -> None: ...


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of one table, with the row of the chunk that each is from; failures by row of the chunk."""

    rows: pa.Table
    index: Indexes
    failed: Mapping[int, Failure]

    def without(self, failed: Collection[int]) -> TableRows:
        keep = ~np.isin(self.index, np.fromiter(failed, np.int64, len(failed)))
        return (
            self if keep.all() else TableRows(self.rows.filter(pa.array(keep)), self.index[keep], self.failed)
        )


class TableWriter:
    """One table's part of a task."""

    deletes = False
    """Whether a record without a value deletes the row of its key."""

    def __init__(self, target: TargetTask, task: WriterTask, files: RowStage) -> None:
        plan: RowPlan = target.plan
        self.name = target.name
        self.start = target.start
        self.files = files
        self._drift = SchemaDrift(
            plan.arrow_schema,
            _limit(plan, task.stages),
            force_optional=plan.force_optional,
            texts=plan.texts,
            always_required=plan.always_required,
            widens=plan.widens,
        )
        self._kafka_columns = plan.kafka_columns
        self._any_case = AnyCase(plan.arrow_schema) if plan.any_case else None
        self._grows = plan.growth is not None
        self._converter = RowConverter(plan.arrow_schema, self._drift if plan.growth is not None else None)

    @property
    def lacks_fields(self) -> bool:
        """Whether records so far have fields that the table is to get."""
        return bool(self._drift.found)

    def rows_of(self, records: Records) -> TableRows:
        """Rows of the table; the records that make none, with stage and reason."""
        if self._any_case is None:
            return self._spelled_rows_of(records)
        respelled = self._any_case.respelled(records.value, len(records))
        kept = records if respelled.kept is None else records.take(respelled.kept)
        made = self._spelled_rows_of(replace(kept, value=respelled.value))
        failed = {int(records.rows[at]): Failure(why, stage=TASK_PUT) for at, why in respelled.failed.items()}
        return replace(made, failed={**failed, **made.failed})

    def _spelled_rows_of(self, records: Records) -> TableRows:
        rows = self._converted(records)
        failed = {int(records.rows[at]): why for at, why in rows.failed.items()}
        made = TableRows(rows.rows, records.rows[rows.index], failed)
        lacking = missing_required(rows.rows)
        if not lacking:
            return made
        if self._grows and isinstance(records.value, Fields | Column):
            those = rows.index[np.fromiter(lacking, np.int64, len(lacking))]
            self._drift.in_nulls(in_python(records.value, those.tolist()))
        failed |= {int(made.index[row]): Failure(why, stage=TASK_PUT) for row, why in lacking.items()}
        return made.without(failed)

    def _converted(self, records: Records) -> Rows:
        rows = self._converter.to_rows(records.value, len(records))
        if not self._kafka_columns:
            return rows
        return replace(rows, rows=with_kafka_columns(rows.rows, self._kafka_columns, records, rows.index))

    def deletions_of(self, records: Records) -> TableRows:
        """What records without a value are to a table whose rows have keys; asked only if it `deletes`."""
        raise AssertionError(f"{self.name} appends: a record without a value deletes nothing there")

    def write(self, made: TableRows, origins: RowOrigins, fresh: Flags) -> None:
        """Write rows that the table does not have; from the first new field on, only look for more."""
        if self._drift.found:
            return
        rows, index = made.rows, made.index
        mine = fresh[index]
        if not mine.all():
            rows, index = rows.filter(pa.array(mine)), index[mine]
        mine_are_from = origins.take(index)
        if "topic" in self._kafka_columns:
            rows = with_source_topics(rows, mine_are_from)
        self.files.write(rows, mine_are_from)

    def close(self) -> Staged:
        files = self.files.close()
        return Staged(files, sum(file.rows for file in files), new_fields=self._drift.found)


def _limit(plan: RowPlan, stages: bool) -> GrowthLimit:
    """How many columns the records may still add. A batch that is in the table adds nothing, and what was too
    much for it is too much again."""
    if plan.growth is None:
        return GrowthLimit()
    return plan.growth.less(column_count(plan.new_fields) if stages else plan.growth.columns)


def nulls_apart(groups: Sequence[Records]) -> tuple[list[Records], list[Records]]:
    """The records that have a value, and those that have none."""
    present: list[Records] = []
    absent: list[Records] = []
    for records in groups:
        null = _nulls(records)
        if null.any():
            absent.append(records.take(np.flatnonzero(null)))
        if not null.all():
            present.append(records.take(np.flatnonzero(~null)))
    return present, absent


def _nulls(records: Records) -> Flags:
    if records.value is None:
        return np.ones(len(records), np.bool_)
    if isinstance(records.value, Column):
        return records.value.nulls
    return np.zeros(len(records), np.bool_)


OpenTable = Callable[[TargetTask, WriterTask], TableWriter]
