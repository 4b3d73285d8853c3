"""The writer of a task of a job that routes: each table gets the records that are for it. A sink's own
routed writer is one of these.

The counterpart of `unrouted_writer`. A table's writer is made with its first
record: of hundreds of tables a task holds those that its records name. A record that one of its tables cannot
take is in none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure, Staged
from icestream.api.errors import FatalError
from icestream.api.sink import TASK_PUT, WriterTask, Written, too_many_targets
from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.records.rows import Indexes
from icestream.tables.plans import NewTablePlan, RowPlan
from icestream.tables.routing.router import UNROUTED, Router
from icestream.tables.table_writer import OpenTable, TableRows, TableWriter, nulls_apart
from icestream.tables.unrouted_writer import BUFFER_BYTES

_SHARES = 8


@dataclass(eq=False)
class _Chunk:
    """What becomes of the rows of a chunk, by row."""

    rows: dict[str, list[Indexes]] = field(default_factory=dict)
    failed: dict[int, Failure] = field(default_factory=dict)
    unmatched: list[Indexes] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    parts: list[tuple[TableWriter, TableRows]] = field(default_factory=list)


class RoutedWriter:
    """Writes for the tables that the records of one task name."""

    def __init__(self, task: WriterTask, open_table: OpenTable) -> None:
        assert task.routing is not None
        self._task = task
        self._open_table = open_table
        # Each table may have this share of the open files; all together keep to the limit of a task.
        self._task_of_one = replace(task, targets=task.targets[:_SHARES])
        self._deletes = task.routing.plan.has_keys and task.routing.plan.is_by_topic
        self._routing = task.routing
        self._router = Router(task.routing.plan)
        self._targets = {target.name: target for target in task.targets}
        self._new = {
            target.name: target.plan.seen()
            for target in task.targets
            if isinstance(target.plan, NewTablePlan)
        }
        """Tables that do not exist: the task only looks at what their records have."""
        self._absent = {name: Failure(why, stage=TASK_PUT) for name, why in task.absent.items() if why}
        self._nothing_yet = {name for name, why in task.absent.items() if not why}
        """Tables that the first record with a value creates: there is nothing to delete."""
        self._tables: dict[str, TableWriter] = {}
        self._unknown: set[str] = set()
        self._shapes: dict[str, Hashable] = {}
        self._shared: dict[Hashable, TableWriter] = {}
        """Who makes rows for all tables of a shape; it stages nothing."""

    def write(self, records: Sequence[Records], origins: RowOrigins) -> Written:
        present, absent = nulls_apart(records)
        routed = _Chunk()
        for group in present:
            self._route(group, routed)
        for group in absent:
            # A null value is passed over, as the Java sink does. Where rows have keys, it deletes one; which
            # table has it, only the topic can tell.
            if self._deletes:
                self._route(group, routed, deletes=True)
            else:
                routed.skipped += group.rows.tolist()
        if self._task.stages and not self._unknown and not self._new:
            for table, made in routed.parts:
                fresh = origins.at_or_after(table.start)
                table.write(made.without(routed.failed) if routed.failed else made, origins, fresh)
            self._free_memory()
        unmatched = np.concatenate([np.empty(0, np.int64), *routed.unmatched])
        return Written(
            routed.failed,
            routed.skipped,
            {name: np.concatenate(rows) for name, rows in routed.rows.items()},
            {UNROUTED: unmatched} if len(unmatched) else {},
            frozenset(self._unknown),
        )

    def _route(self, group: Records, routed: _Chunk, *, deletes: bool = False) -> None:
        found = self._router.route(group)
        known: dict[str, Indexes] = {}
        routed.failed |= {int(group.rows[at]): why for at, why in found.failed.items()}
        routed.unmatched.append(group.rows[found.unmatched])
        for name, positions in found.tables.items():
            rows = group.rows[positions]
            if name in self._nothing_yet and deletes:
                routed.skipped += rows.tolist()
                continue
            if name in self._absent:
                routed.failed |= dict.fromkeys(rows.tolist(), self._absent[name])
                continue
            routed.rows.setdefault(name, []).append(rows)
            if name in self._new:
                if not deletes:
                    self._new[name].look(group.take(positions).value)
            elif self._is_known(name):
                known[name] = positions
        if deletes:
            for name, positions in known.items():
                self._keep(routed, name, self._table(name).deletions_of(group.take(positions)))
        else:
            self._convert(group, known, routed)

    def _convert(self, group: Records, known: Mapping[str, Indexes], routed: _Chunk) -> None:
        """Records become rows once for all tables that are alike: decoding a few at a time takes longer."""
        alike: dict[Hashable, list[str]] = {}
        for name in known:
            alike.setdefault(self._shape(name), []).append(name)
        for shape, names in alike.items():
            made = self._made_at_once(group, [known[name] for name in names], shape)
            if made is None:
                for name in names:
                    self._keep(routed, name, self._table(name).rows_of(group.take(known[name])))
                continue
            routed.failed |= made.failed
            # Rows of one table side by side: each gets a part of them that nobody copies.
            place = np.full(int(group.rows.max()) + 1, -1)
            place[made.index] = np.arange(len(made.index))
            places = [place[group.rows[known[name]]] for name in names]
            places = [one[one >= 0] for one in places]
            order = np.concatenate(places)
            rows, index, at = made.rows.take(pa.array(order)), made.index[order], 0
            for name, mine in zip(names, places, strict=True):
                until = at + len(mine)
                self._keep(routed, name, TableRows(rows.slice(at, len(mine)), index[at:until], {}))
                at = until

    def _made_at_once(
        self, group: Records, positions: Sequence[Indexes], shape: Hashable
    ) -> TableRows | None:
        """Rows for several tables that are alike; None if each has to look for itself."""
        if len(positions) == 1 or shape is None:
            return None
        if shape not in self._shared:
            example = next(one for one in self._targets.values() if self._shape(one.name) == shape)
            self._shared[shape] = self._open_table(example, self._task_of_one)
        shared = self._shared[shape]
        made = shared.rows_of(group.take(np.unique(np.concatenate(positions))))
        # Which of the tables lacks a field, only its own records tell.
        return None if shared.lacks_fields else made

    def _shape(self, name: str) -> Hashable:
        """What its records become rows by: equal for tables that are alike, None if it is like no other."""
        if name not in self._shapes:
            plan: RowPlan = self._targets[name].plan
            self._shapes[name] = plan.shape
        return self._shapes[name]

    def _keep(self, routed: _Chunk, name: str, made: TableRows) -> None:
        routed.failed |= made.failed
        routed.parts.append((self._table(name), made))

    def close(self) -> dict[str, Staged]:
        seen = {name: Staged(new_fields=shape.found()) for name, shape in self._new.items()}
        return {name: table.close() for name, table in self._tables.items()} | seen

    def discard(self) -> None:
        for table in self._tables.values():
            table.files.discard()

    def _is_known(self, name: str) -> bool:
        """From the first unknown table on nothing is staged, and only more of them are looked for: the batch
        runs again."""
        if name not in self._targets:
            self._unknown.add(name)
            if len(self._unknown) > self._routing.most_targets:
                raise FatalError(too_many_targets(self._routing, name))
        return not self._unknown

    def _table(self, name: str) -> TableWriter:
        if name not in self._tables:
            self._tables[name] = self._open_table(self._targets[name], self._task_of_one)
        return self._tables[name]

    def _free_memory(self) -> None:
        """All tables share one allowance for rows that wait to be written, and one for open files."""
        tables = self._tables.values()
        while sum(table.files.buffered_bytes for table in tables) >= BUFFER_BYTES:
            largest = max(tables, key=lambda table: table.files.buffered_bytes).files
            largest.flush()
            if largest.open_files and self._open_files() > largest.most_open_of_all:
                largest.close()

    def _open_files(self) -> int:
        return sum(table.files.open_files for table in self._tables.values())
