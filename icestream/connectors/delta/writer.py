"""The Delta sink inside a task: records become rows of every table, and rows become data files. Opened by
`pipeline.task`."""

from __future__ import annotations

from icestream.api.batch import Failure
from icestream.api.sink import TASK_PUT, TargetTask, WriterTask
from icestream.connectors.delta.files.partitions import Partitioner
from icestream.connectors.delta.files.stage import StageWriter, TablePlan
from icestream.records.records import Records
from icestream.tables.routed_writer import RoutedWriter
from icestream.tables.table_writer import TableRows, TableWriter
from icestream.tables.tables_writer import TablesWriter, open_files_of_each


class DeltaWriter(TablesWriter):
    """Writes for all tables of a job at once."""

    def __init__(self, task: WriterTask) -> None:
        super().__init__(task, table_writer)


class DeltaRoutedWriter(RoutedWriter):
    """Writes for the tables that records name."""

    def __init__(self, task: WriterTask) -> None:
        super().__init__(task, table_writer)


def table_writer(target: TargetTask, task: WriterTask) -> TableWriter:
    return _AppendWriter(target, task, StageWriter(target.plan, task.batch, open_files_of_each(task)))


class _AppendWriter(TableWriter):
    """One table's part of a task. Rows whose partition no reader could parse are bad records."""

    def __init__(self, target: TargetTask, task: WriterTask, files: StageWriter) -> None:
        super().__init__(target, task, files)
        plan: TablePlan = target.plan
        self._partitioner = Partitioner(plan.arrow_schema, plan.partition_columns)

    def _spelled_rows_of(self, records: Records) -> TableRows:
        made = super()._spelled_rows_of(records)
        if not self._partitioner.columns or not made.rows.num_rows:
            return made
        unfit = self._partitioner.unfit_rows(made.rows)
        if not unfit:
            return made
        failed = {int(made.index[row]): Failure(why, stage=TASK_PUT) for row, why in unfit.items()}
        return TableRows(made.rows, made.index, {**made.failed, **failed}).without(failed)
