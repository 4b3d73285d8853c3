"""The Delta sink inside a task: records become rows of every table, and rows become data files; or changes of
rows, where a table gets upserts. Opened by `pipeline.task`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure
from icestream.api.sink import TASK_PUT, TargetTask, WriterTask
from icestream.connectors.delta.files.partitions import Partitioner
from icestream.connectors.delta.files.stage import StageWriter, TablePlan
from icestream.connectors.delta.upserts.changes import ChangeStage
from icestream.records.records import Records
from icestream.tables.routing.routed_writer import RoutedWriter
from icestream.tables.table_writer import TableRows, TableWriter
from icestream.tables.unrouted_writer import TablesWriter, open_files_of_each
from icestream.tables.upserts.change_writer import ChangeWriter
from icestream.tables.upserts.changes import KIND, PUT, UpsertPlan


class DeltaWriter(TablesWriter):
    """Writes for all tables of a job at once."""

    def __init__(self, task: WriterTask) -> None:
        super().__init__(task, table_writer)


class DeltaRoutedWriter(RoutedWriter):
    """Writes for the tables that records name."""

    def __init__(self, task: WriterTask) -> None:
        super().__init__(task, table_writer)


def table_writer(target: TargetTask, task: WriterTask) -> TableWriter:
    plan: TablePlan = target.plan
    if plan.upserts is not None:
        return _KeyedWriter(target, task, plan.upserts, ChangeStage(plan, task.batch, plan.upserts))
    return _AppendWriter(target, task, StageWriter(plan, task.batch, open_files_of_each(task)))


class _AppendWriter(TableWriter):
    """One table's part of a task. Rows whose partition no reader could parse are bad records."""

    def __init__(self, target: TargetTask, task: WriterTask, files: StageWriter) -> None:
        super().__init__(target, task, files)
        self._partitioner = partitioner_of(target.plan)

    def _spelled_rows_of(self, records: Records) -> TableRows:
        return with_partitions(super()._spelled_rows_of(records), self._partitioner)


class _KeyedWriter(ChangeWriter):
    """One table's part of a task, where records change the rows of their keys."""

    def __init__(self, target: TargetTask, task: WriterTask, upserts: UpsertPlan, files: ChangeStage) -> None:
        super().__init__(target, task, upserts, files)
        self._partitioner = partitioner_of(target.plan)

    def _spelled_rows_of(self, records: Records) -> TableRows:
        return with_partitions(super()._spelled_rows_of(records), self._partitioner)


def partitioner_of(plan: TablePlan) -> Partitioner:
    schema = plan.arrow_schema
    if plan.upserts is not None:
        # A row whose key readers take for null would not be found again.
        schema = pa.schema(
            [one.with_nullable(one.nullable and one.name not in plan.always_required) for one in schema]
        )
    return Partitioner(schema, plan.partition_columns)


def with_partitions(made: TableRows, partitioner: Partitioner) -> TableRows:
    """The rows whose partitions readers can parse. What only deletes a row is in no partition."""
    if not partitioner.columns or not made.rows.num_rows:
        return made
    puts = np.arange(made.rows.num_rows)
    if KIND in made.rows.column_names:
        puts = np.flatnonzero(made.rows.column(KIND).to_numpy() == PUT)
    unfit = partitioner.unfit_rows(made.rows.take(pa.array(puts))) if len(puts) else {}
    if not unfit:
        return made
    failed = {int(made.index[puts[row]]): Failure(why, stage=TASK_PUT) for row, why in unfit.items()}
    return TableRows(made.rows, made.index, {**made.failed, **failed}).without(failed)
