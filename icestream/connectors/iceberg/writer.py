"""The Iceberg sink inside a task: records become rows of every table, and rows become data files; or changes
of rows, where a table gets upserts.

Opened by `pipeline.task`. A record that one table cannot take is in none: all see it before any gets it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.batch import Failure, Staged
from icestream.api.sink import TASK_PUT, TargetTask, WriterTask, Written
from icestream.connectors.iceberg.files.stage import NewTablePlan, StageWriter, TablePlan
from icestream.connectors.iceberg.upserts.changes import (
    DELETE,
    PUT,
    TRUNCATE,
    UNKNOWN,
    ChangeKinds,
    ChangeStage,
    KeyRows,
    UpsertPlan,
    null_ids,
    optional,
    with_kinds,
)
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

BUFFER_BYTES = 192 * 1024 * 1024
OPEN_FILES = 200
"""Of all tables of a task together."""


class IcebergWriter:
    """Writes for all tables of a job at once."""

    def __init__(self, task: WriterTask) -> None:
        self._stages = task.stages
        self._new = {
            target.name: target.plan.shape()
            for target in task.targets
            if isinstance(target.plan, NewTablePlan)
        }
        self._tables = [table_writer(target, task) for target in task.targets if target.name not in self._new]

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


@dataclass(frozen=True)
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


def table_writer(target: TargetTask, task: WriterTask) -> TableWriter:
    plan: TablePlan = target.plan
    return TableWriter(target, task) if plan.upserts is None else _ChangeWriter(target, task, plan.upserts)


class TableWriter:
    """One table's part of a task."""

    deletes = False
    """Whether a record without a value deletes the row of its key."""

    def __init__(self, target: TargetTask, task: WriterTask) -> None:
        plan: TablePlan = target.plan
        self.name = target.name
        self.start = target.start
        self.files = self._stage(plan, task)
        self._drift = SchemaDrift(
            plan.arrow_schema,
            _limit(plan, task.stages),
            force_optional=plan.force_optional,
            texts=plan.texts,
            # Not the structs that they are in either: an identifier is never null.
            always_required=frozenset(
                name.partition(".")[0] for name in plan.schema.identifier_field_names()
            ),
        )
        self._kafka_columns = plan.kafka_columns
        self._any_case = AnyCase(plan.arrow_schema) if plan.any_case else None
        self._grows = plan.growth is not None
        self._converter = RowConverter(plan.arrow_schema, self._drift if plan.growth is not None else None)

    def _stage(self, plan: TablePlan, task: WriterTask) -> StageWriter | ChangeStage:
        return StageWriter(plan, task.batch, max(1, OPEN_FILES // len(task.targets)))

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


class _ChangeWriter(TableWriter):
    """One table's part of a task, if records change the rows of their keys. Its rows have the kind of each
    change beside them."""

    deletes = True

    def __init__(self, target: TargetTask, task: WriterTask, upserts: UpsertPlan) -> None:
        super().__init__(target, task)
        self._schema = target.plan.arrow_schema
        self._converter = RowConverter(optional(self._schema), self._converter.drift)
        self._ids = upserts.ids
        self._kinds = ChangeKinds(upserts.cdc_field)
        self._keys = KeyRows(self._schema, upserts.ids)

    def _stage(self, plan: TablePlan, task: WriterTask) -> ChangeStage:
        assert plan.upserts is not None
        places = (plan.location, plan.properties, plan.io_properties)
        return ChangeStage(
            plan.arrow_schema, plan.upserts.ids, *places, f"{plan.file_prefix}{task.batch}-", plan.name
        )

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


def _limit(plan: TablePlan, stages: bool) -> GrowthLimit:
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


def missing_required(rows: pa.Table) -> dict[int, str]:
    """Row number → which required field it lacks. Almost always empty, and then cheap."""
    found: dict[int, str] = {}
    if not rows.num_rows:
        return found  # Arrow cannot combine no chunks of every type
    for field, column in zip(rows.schema, rows.itercolumns(), strict=True):
        if not _requires_something(field):
            continue
        values = column.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks)
        _look(field, values, np.arange(len(values)), field.name, found)
    return found


def _requires_something(field: pa.Field) -> bool:
    return not field.nullable or any(_requires_something(child) for child in _children(field.type))


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pt.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if pt.is_list(kind):
        return [kind.value_field]
    if pt.is_map(kind):
        return [kind.item_field]
    return []


def _look(
    field: pa.Field,
    values: pa.Array,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    path: str,
    found: dict[int, str],
) -> None:
    """`rows` tells for each value the row that it belongs to."""
    if not field.nullable and values.null_count:
        for row in rows[values.is_null().to_numpy(zero_copy_only=False)].tolist():
            found.setdefault(row, f"field '{path}' is required by the table and has no value")
    inner = [child for child in _children(field.type) if _requires_something(child)]
    if not inner:
        return
    there = values.is_valid().to_numpy(zero_copy_only=False)
    if pt.is_struct(field.type):
        present = values.filter(pa.array(there))
        for child in inner:
            column = present.field(field.type.get_field_index(child.name))
            _look(child, column, rows[there], f"{path}.{child.name}", found)
        return
    lengths = pc.fill_null(pc.list_value_length(_as_list(values)), 0).to_numpy(zero_copy_only=False)
    items = _as_list(values).flatten()
    if pt.is_map(field.type):
        items = items.field(1)
    _look(inner[0], items, np.repeat(rows, lengths), f"{path}[]", found)


def _as_list(values: pa.Array) -> pa.Array:
    if not pt.is_map(values.type):
        return values
    entries = pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
    return pa.ListArray.from_arrays(
        values.offsets, entries, mask=values.is_null() if values.null_count else None
    )
