"""The JDBC sink inside a task: records become rows of their table, and rows go into staging tables.

Opened by `pipeline.task`. The table of a record is that of the config, or named by its topic.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.batch import Failure, Staged
from icestream.api.errors import FatalError
from icestream.api.sink import TASK_PUT, TargetTask, WriterTask, Written, too_many_targets
from icestream.connectors.jdbc.sink.new_tables import KeyedShape
from icestream.connectors.jdbc.sink.plans import DELETE, PUT, RECORD_KEY, NewTablePlan, TablePlan
from icestream.connectors.jdbc.sink.rows import Made, RowMaker, failure
from icestream.connectors.jdbc.sink.stage import TableStage
from icestream.connectors.jdbc.sink.table_names import TableNames
from icestream.records.column import Column
from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.records.rows import Flags, Indexes

_SQL_EXCEPTION = "java.sql.SQLException"


@dataclass(eq=False)
class _Chunk:
    """What becomes of the rows of a chunk."""

    failed: dict[int, Failure] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)
    routed: dict[str, list[Indexes]] = field(default_factory=dict)
    made: dict[str, list[tuple[int, Made]]] = field(default_factory=dict)
    """By table, with the kind of change."""


class JdbcWriter:
    """Writes for all tables of a job."""

    def __init__(self, task: WriterTask) -> None:
        self._task = task
        self._targets = {target.name: target for target in task.targets}
        self._names: TableNames | None = task.routing.plan if task.routing is not None else None
        self._new: dict[str, KeyedShape] = {
            target.name: KeyedShape(target.plan)
            for target in task.targets
            if isinstance(target.plan, NewTablePlan)
        }
        """Tables that do not exist: the task only looks at what their records have."""
        self._tables: dict[str, _Table] = {}
        self._unknown: set[str] = set()

    def write(self, records: Sequence[Records], origins: RowOrigins) -> Written:
        chunk = _Chunk()
        for group in records:
            null = _nulls(group)
            if null.any():
                self._take(group.take(np.flatnonzero(null)), origins, chunk, is_null=True)
            if not null.all():
                self._take(group.take(np.flatnonzero(~null)), origins, chunk, is_null=False)
        lacks = any(table.lacks_fields for table in self._tables.values())
        if not self._unknown and not self._new and not lacks:
            for name, made in chunk.made.items():
                self._table(name).stage(made, origins, chunk.failed)
        routed = {name: np.concatenate(rows) for name, rows in chunk.routed.items()}
        return Written(
            chunk.failed,
            chunk.skipped,
            routed if self._names is not None else None,
            unknown_targets=frozenset(self._unknown),
        )

    def _take(self, group: Records, origins: RowOrigins, chunk: _Chunk, *, is_null: bool) -> None:
        name = self._target_of(group, chunk)
        if name is None:
            return
        if name in self._task.absent:
            why = self._task.absent[name]
            if why:
                chunk.failed |= dict.fromkeys(group.rows.tolist(), Failure(why, stage=TASK_PUT))
            elif is_null:
                chunk.skipped += group.rows.tolist()
            if why or is_null:
                return
        chunk.routed.setdefault(name, []).append(group.rows)
        if name in self._new:
            if not is_null:
                self._new[name].look(group)
            return
        if name not in self._targets:
            self._unknown.add(name)
            routing = self._task.routing
            if routing is not None and len(self._unknown) > routing.most_targets:
                raise FatalError(too_many_targets(routing, name))
            return
        if self._unknown:
            return
        table = self._table(name)
        kind, made = table.made(group, origins, is_null=is_null)
        chunk.failed |= made.failed
        chunk.failed |= table.refused_before(group, origins)
        chunk.made.setdefault(name, []).append((kind, made))

    def _target_of(self, group: Records, chunk: _Chunk) -> str | None:
        if self._names is None:
            (name,) = self._targets
            return name
        name, why = self._names.of(group.topic)
        if why is not None:
            chunk.failed |= dict.fromkeys(group.rows.tolist(), failure(why))
            return None
        return name

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            self._tables[name] = _Table(self._targets[name], self._task)
        return self._tables[name]

    def close(self) -> dict[str, Staged]:
        seen = {name: Staged(new_fields=shape.found()) for name, shape in self._new.items()}
        return {name: table.close() for name, table in self._tables.items()} | seen

    def discard(self) -> None:
        for table in self._tables.values():
            table.discard()


class _Table:
    """One table's part of a task."""

    def __init__(self, target: TargetTask, task: WriterTask) -> None:
        plan: TablePlan = target.plan
        self._plan = plan
        self._start = target.start
        self._stages = task.stages
        self._maker = RowMaker(plan, stages=task.stages)
        self._stage = TableStage(plan, task.batch, stages=task.stages)

    @property
    def lacks_fields(self) -> bool:
        return bool(self._maker.new_fields)

    def made(self, group: Records, origins: RowOrigins, *, is_null: bool) -> tuple[int, Made]:
        if not is_null:
            return PUT, self._maker.puts(group, origins)
        if self._plan.rules.deletes and self._plan.rules.keys.mode == RECORD_KEY:
            return DELETE, self._maker.deletions(group)
        why = failure(
            "the record has no value, and delete.enabled=false with "
            f"pk.mode={self._plan.rules.keys.mode} needs one"
        )
        return PUT, Made(pa.table({}), np.empty(0, np.int64), dict.fromkeys(group.rows.tolist(), why))

    def refused_before(self, group: Records, origins: RowOrigins) -> dict[int, Failure]:
        """Rows that the database has refused in an earlier attempt."""
        found: dict[int, Failure] = {}
        if not self._plan.refused:
            return found
        mine = origins.take(group.rows)
        for code, partition in enumerate(mine.partitions):
            known = self._plan.refused.get(partition)
            if not known:
                continue
            offsets = np.fromiter(known, np.int64, len(known))
            for at in np.flatnonzero((mine.codes == code) & np.isin(mine.offsets, offsets)).tolist():
                found[int(group.rows[at])] = _sql_failure(known[int(mine.offsets[at])])
        return found

    def stage(
        self, made: Sequence[tuple[int, Made]], origins: RowOrigins, failed: dict[int, Failure]
    ) -> None:
        """Stage what is new to the table, in the order of the records; adds to `failed`."""
        fresh = origins.at_or_after(self._start)
        for kinds, rows, index in _in_order(made, fresh, failed, self._plan.keys):
            refused = self._stage.add(rows, kinds, origins.take(index))
            failed |= {int(index[at]): _sql_failure(why) for at, why in refused.items()}

    def close(self) -> Staged:
        staged = self._stage.close()
        return Staged(staged, sum(one.rows for one in staged), new_fields=self._maker.new_fields)

    def discard(self) -> None:
        self._stage.discard()


def _sql_failure(reason: str) -> Failure:
    return Failure(reason, exception=_SQL_EXCEPTION, stage=TASK_PUT)


def _in_order(
    made: Sequence[tuple[int, Made]], fresh: Flags, failed: dict[int, Failure], keys: Sequence[str]
) -> list[tuple[Indexes, pa.Table, Indexes]]:
    """Kinds, rows and rows of the chunk, in runs of rows that have the same columns. A deletion has none but
    its key, and goes with any. Rows of one key keep their order."""
    kept: list[tuple[int, Made]] = []
    for kind, one in made:
        mine = one.without(failed) if failed else one
        if not fresh[mine.index].all():
            keep = fresh[mine.index]
            mine = Made(mine.rows.filter(pa.array(keep)), mine.index[keep], mine.failed)
        if len(mine.index):
            kept.append((kind, mine))
    if not kept:
        return []
    puts = [one for kind, one in kept if kind == PUT]
    sets = list(dict.fromkeys(tuple(one.rows.column_names) for one in puts)) or [
        tuple(kept[0][1].rows.column_names)
    ]
    index = np.concatenate([one.index for _, one in kept])
    kinds = np.concatenate([np.full(len(one.index), kind) for kind, one in kept])
    order = np.argsort(index, kind="stable")
    if len(sets) == 1:
        rows = _together([one.rows for _, one in kept], sets[0])
        return [(kinds[order], rows.take(pa.array(order)), index[order])]
    # Each row belongs to the set of its own columns; deletions to that of the row before them.
    which = np.concatenate(
        [
            np.full(len(one.index), sets.index(tuple(one.rows.column_names)) if kind == PUT else -1)
            for kind, one in kept
        ]
    )[order]
    which = _filled_forward(which)
    # Each run is a staging table. Two producers with two schemas make as many runs as records, so rows are
    # put together as far as the order of each key allows.
    tables = [one.rows for _, one in kept]
    known = [name for name in keys if any(name in table.column_names for table in tables)]
    rounds = _rounds(_together(tables, known).take(pa.array(order)), which)
    together = np.lexsort((which, rounds))
    order, which, rounds = order[together], which[together], rounds[together]
    changes = (np.diff(which) != 0) | (np.diff(rounds) != 0)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(which)]
    wholes = [_together(tables, columns) for columns in sets]
    runs = []
    for low, high in itertools.pairwise(bounds):
        positions = order[low:high]
        rows = wholes[int(which[low])].take(pa.array(positions))
        runs.append((kinds[positions], rows, index[positions]))
    return runs


def _rounds(keys: pa.Table, which: Indexes) -> Indexes:
    """For rows in their order, in which round of all sets of columns, each in its turn, a row may be staged:
    the first, unless one of its key was before it in a set that comes later."""
    number = np.zeros(len(which), np.int64)
    for column in keys.itercolumns():
        values = column.combine_chunks()
        if pt.is_string(values.type):
            # Databases may take these for one key.
            values = pc.utf8_lower(pc.utf8_rtrim_whitespace(values))
        codes = values.dictionary_encode("encode").indices.to_numpy()
        number = np.unique(number * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    if not keys.num_columns:
        return number  # no row counts for another
    by_key = np.argsort(number, kind="stable")
    new_key = np.diff(number[by_key]) != 0
    steps = np.concatenate(([0], np.cumsum((np.diff(which[by_key]) < 0) & ~new_key)))
    first = np.concatenate(([0], np.where(new_key, steps[1:], 0)))
    found = np.empty(len(which), np.int64)
    found[by_key] = steps - np.maximum.accumulate(first)
    return found


def _filled_forward(which: Indexes) -> Indexes:
    known = np.where(which >= 0, np.arange(len(which)), -1)
    last = np.maximum.accumulate(known)
    first = int(which[known[known >= 0][0]]) if (known >= 0).any() else 0
    return np.where(last >= 0, which[np.maximum(last, 0)], first)


def _together(tables: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Tables one after the other, with these columns: what one lacks is null."""
    kinds = {name: table.schema.field(name).type for table in tables for name in table.column_names}
    return pa.concat_tables(
        [
            pa.table(
                [
                    table.column(name)
                    if name in table.column_names
                    else pa.nulls(table.num_rows, kinds[name])
                    for name in columns
                ],
                names=list(columns),
            )
            for table in tables
        ]
    )


def _nulls(records: Records) -> Flags:
    if records.value is None:
        return np.ones(len(records), np.bool_)
    if isinstance(records.value, Column):
        return records.value.nulls
    return np.zeros(len(records), np.bool_)
