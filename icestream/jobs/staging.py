"""Has a batch written for every table, again where a table first needs new columns. Called by the job
manager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from icestream.api.batch import Batch, BatchResult, Counts, PartlyStaged, Staged
from icestream.api.errors import FatalError
from icestream.api.offsets import Offsets
from icestream.connectors.iceberg.stage import TablePlan
from icestream.connectors.iceberg.table import NewFields
from icestream.jobs.borders import BatchRunner, SinkTable
from icestream.pipeline.plan import TableTask
from icestream.rows.growth import column_count
from icestream.rows.new_fields import Path, combined

_MOST_RUNS = 5


@dataclass(frozen=True)
class StagedPart:
    """What is staged for one table, and the table as it has to be for these files."""

    table: SinkTable
    plan: TablePlan
    new_fields: NewFields
    staged: Staged


@dataclass(frozen=True)
class StagedBatch:
    batch: Batch
    taken: BatchResult
    parts: Sequence[StagedPart]

    def discard(self) -> None:
        for part in self.parts:
            part.table.discard(part.staged.files)


def stage(
    batch: Batch,
    tables: Sequence[SinkTable],
    floors: Sequence[Offsets],
    runner: BatchRunner,
    *,
    evolves: bool,
) -> StagedBatch:
    """Run the batch until no table lacks a field. Columns are added by the commit itself, with the rows."""
    fields: list[dict[Path, pa.DataType]] = [{} for _ in tables]
    for _ in range(_MOST_RUNS):
        plans = [table.plan(new) for table, new in zip(tables, fields, strict=True)]
        tasks = [
            TableTask(plan, floor, column_count(new))
            for plan, floor, new in zip(plans, floors, fields, strict=True)
        ]
        taken = _run(runner, batch, tables, tasks, evolves)
        parts = [
            StagedPart(table, plan, dict(new), staged)
            for table, plan, new, staged in zip(tables, plans, fields, taken.tables, strict=True)
        ]
        staged_batch = StagedBatch(batch, taken, parts)
        if taken.overflow:
            return staged_batch
        if not taken.needs_new_fields:
            _refuse_loss(staged_batch)
            return staged_batch
        staged_batch.discard()
        fields = [combined(new, staged.new_fields) for new, staged in zip(fields, taken.tables, strict=True)]
    raise FatalError(f"batch {batch.id} still found new fields after {_MOST_RUNS} runs: {fields}")


def _run(
    runner: BatchRunner, batch: Batch, tables: Sequence[SinkTable], tasks: Sequence[TableTask], evolves: bool
) -> BatchResult:
    """Run the batch; if a part of it fails, remove the files of the other parts."""
    try:
        return runner.run(batch, tasks, evolves=evolves)
    except PartlyStaged as failed:
        for part in failed.done:
            for table, staged in zip(tables, part.tables, strict=True):
                table.discard(staged.files)
        raise failed.reason from failed


def _refuse_loss(staged_batch: StagedBatch) -> None:
    """Every record is written, rejected or filtered, and the files hold what was written; else nothing is
    committed."""
    for part in staged_batch.parts:
        total = sum(part.staged.counts.values(), Counts())
        if not total.reconcile or total.written != part.staged.rows:
            raise FatalError(
                f"batch {staged_batch.batch.id} does not add up for {part.table.name}: {total}, "
                f"but {part.staged.rows} rows in its files; nothing was committed"
            )
