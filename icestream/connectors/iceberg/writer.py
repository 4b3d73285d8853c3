"""The Iceberg sink inside a task: records become rows of every table, and rows become data files; or changes
of rows, where a table gets upserts. Opened by `pipeline.task`.
"""

from __future__ import annotations

from icestream.api.sink import TargetTask, WriterTask
from icestream.connectors.iceberg.files.stage import StageWriter, TablePlan
from icestream.connectors.iceberg.upserts.changes import ChangeStage
from icestream.tables.routing.routed_writer import RoutedWriter
from icestream.tables.table_writer import TableWriter
from icestream.tables.unrouted_writer import TablesWriter, open_files_of_each
from icestream.tables.upserts.change_writer import ChangeWriter
from icestream.tables.upserts.changes import UpsertPlan


class IcebergWriter(TablesWriter):
    """Writes for all tables of a job at once."""

    def __init__(self, task: WriterTask) -> None:
        super().__init__(task, table_writer)


class IcebergRoutedWriter(RoutedWriter):
    """Writes for the tables that records name."""

    def __init__(self, task: WriterTask) -> None:
        super().__init__(task, table_writer)


def table_writer(target: TargetTask, task: WriterTask) -> TableWriter:
    plan: TablePlan = target.plan
    if plan.upserts is not None:
        return ChangeWriter(target, task, plan.upserts, _change_stage(plan, task, plan.upserts))
    return TableWriter(target, task, StageWriter(plan, task.batch, open_files_of_each(task)))


def _change_stage(plan: TablePlan, task: WriterTask, upserts: UpsertPlan) -> ChangeStage:
    places = (plan.location, plan.properties, plan.io_properties)
    return ChangeStage(plan.arrow_schema, upserts.ids, *places, f"{plan.file_prefix}{task.batch}-", plan.name)
