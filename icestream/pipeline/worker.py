"""What happens inside a Spark Python worker: slices of Kafka become staged files and rejects.

`pipeline.run` hands `run_tasks` to Spark. Nothing here imports Spark.
"""

from __future__ import annotations

import dataclasses
import gc
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icestream.api.batch import BatchResult, Counts, Rejected, Slice, Staged
from icestream.api.errors import RetriableError
from icestream.api.offsets import Partition
from icestream.connectors.iceberg.origins import RowOrigins
from icestream.connectors.iceberg.required import missing_required
from icestream.connectors.iceberg.stage import StageWriter
from icestream.kafka.chunk import Chunk
from icestream.kafka.reader import process_reader
from icestream.pipeline.plan import Plan, TableTask, TaskFailed, packed
from icestream.pipeline.record_path import TASK_PUT, VALUE_CONVERTER, Refusal, process_record_path
from icestream.pipeline.zips import forget_zips
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.rows import Flags, Indexes
from icestream.rows.fit_records import RecordFitter
from icestream.rows.growth import GrowthLimit
from icestream.rows.json_decoder import Refused
from icestream.rows.surplus import Surplus

_CHUNK_ROWS = 10_000
_REJECTED_BYTES = 64 * 1024 * 1024
"""Of a batch: its tasks share it, because the driver gets what all of them have."""
_BUFFER_BYTES = 192 * 1024 * 1024
_OBJECTS = 200_000
"""More than a task holds at a time."""
_OPEN_FILES = 200
"""Of all tables of a task together."""


@dataclass(frozen=True)
class Good:
    """Rows of one table with the row of the chunk that each is from; `bad` by row of the chunk."""

    rows: pa.Table
    index: Indexes
    bad: Mapping[int, Refusal]

    def without(self, bad: Collection[int]) -> Good:
        keep = ~np.isin(self.index, np.fromiter(bad, np.int64, len(bad)))
        return self if keep.all() else Good(self.rows.filter(pa.array(keep)), self.index[keep], self.bad)


def run_tasks(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark calls this with the numbers of the tasks to run."""
    settle_process()
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pydict(
                {
                    "task": pa.array([task], pa.int64()),
                    "answer": pa.array([packed(_answer(plan, task))], pa.binary()),
                }
            )


def _answer(plan: Plan, task: int) -> BatchResult | TaskFailed:
    try:
        return task_result(plan, task)
    except Exception as error:  # the worker edge: the driver decides what it means
        return TaskFailed(isinstance(error, RetriableError), str(error), traceback.format_exc())


def task_result(plan: Plan, task: int) -> BatchResult:
    """What a task makes of its slices; if it fails, its files are gone."""
    work = SliceWork(plan, task)
    try:
        return work.run(plan.tasks[task])
    except BaseException:
        work.discard()
        raise


_settled = False


def settle_process() -> None:
    """Make the tasks of this process start quickly, also where another daemon than ours has forked it."""
    global _settled
    if _settled:
        return
    forget_zips()
    gc.freeze()
    # A chunk is tens of thousands of objects without a cycle: looking for cycles took 3 % of a task's time.
    gc.set_threshold(_OBJECTS)
    _settled = True


class TableWork:
    """One table's part of a task: makes rows of records, writes its files, counts its records."""

    def __init__(self, task: TableTask, plan: Plan, value_class: str) -> None:
        self._floor = task.floor
        self._writer = StageWriter(task.plan, plan.batch, max(1, _OPEN_FILES // len(plan.tables)))
        evolves, growth = plan.evolves, plan.records.growth
        limit = growth.less(task.grown if evolves else growth.columns) if growth else GrowthLimit()
        self._surplus = Surplus(task.plan.arrow_schema, limit)
        # A batch that is in the table adds nothing, and what was too much for it is too much again.
        looks = evolves or growth is not None
        self._fitter = RecordFitter(task.plan.arrow_schema, self._surplus if looks else None)
        self._value_class = value_class
        self._counts: dict[Partition, Counts] = {}

    def fit(self, records: Records) -> Good:
        """Rows that fit the table; what does not fit, with stage and reason."""
        fitted = self._fitter.fit(records.value, len(records))
        bad = {int(records.rows[at]): self._refusal(refused) for at, refused in fitted.refused.items()}
        good = Good(fitted.rows, records.rows[fitted.index], bad)
        lacking = missing_required(fitted.rows)
        if not lacking:
            return good
        bad |= {int(good.index[row]): Refusal(TASK_PUT, reason) for row, reason in lacking.items()}
        return good.without(bad)

    def _refusal(self, refused: Refused) -> Refusal:
        if refused.is_misfit:
            return Refusal(TASK_PUT, refused.reason)
        return Refusal(VALUE_CONVERTER, refused.reason, self._value_class)

    def fresh(self, origins: RowOrigins) -> Flags:
        """Which records the table does not have yet."""
        floors = np.array([self._floor.get(partition) or 0 for partition in origins.partitions], np.int64)
        return origins.offsets >= floors[origins.codes]

    def write(self, good: Good, origins: RowOrigins, fresh: Flags) -> None:
        """Write fresh rows; from the first new field on, only look for more of them."""
        if self._surplus.found:
            return
        rows, index = good.rows, good.index
        mine = fresh[index]
        if not mine.all():
            rows, index = rows.filter(pa.array(mine)), index[mine]
        self._writer.write(rows, origins.take(index))

    def count(self, origins: RowOrigins, fresh: Flags, rejected: Indexes, filtered: Indexes) -> None:
        read = _per_part(origins, np.flatnonzero(fresh))
        bad = _per_part(origins, rejected[fresh[rejected]])
        passed = _per_part(origins, filtered[fresh[filtered]])
        numbers = zip(origins.partitions, read, bad, passed, strict=True)
        for partition, all_read, refused, dropped in numbers:
            found = Counts(all_read, all_read - refused - dropped, refused, dropped)
            self._counts[partition] = self._counts.get(partition, Counts()) + found

    @property
    def buffered_bytes(self) -> int:
        return self._writer.buffered_bytes

    def flush(self) -> None:
        self._writer.flush()

    def discard(self) -> None:
        self._writer.discard()

    def close(self) -> Staged:
        return Staged(self._writer.close(), self._counts, self._surplus.found)


class SliceWork:
    """The work of one task: every record of its slices to every table."""

    def __init__(self, plan: Plan, task: int) -> None:
        self._stages = plan.stages
        self._most_bytes = plan.most_bytes
        self._task = task
        self._reader = process_reader(plan.kafka)
        self._path = process_record_path(plan.records)
        self._tables = [TableWork(one, plan, self._path.classes["value"]) for one in plan.tables]
        self._rejected: list[Rejected] = []
        self._rejected_bytes = 0
        self._is_alone = len(plan.tasks) == 1
        self._most_rejected_bytes = _REJECTED_BYTES // max(1, len(plan.tasks))
        self._bytes = 0
        self._records = 0
        self._newest: dict[Partition, int] = {}
        self._dropped: Counter[str] = Counter()

    def run(self, slices: Sequence[Slice]) -> BatchResult:
        for chunk in self._reader.read_all(slices, _CHUNK_ROWS):
            self._take(chunk)
            if self._overflows:
                # Nobody will look at them: the batch runs again as a smaller one.
                self._rejected.clear()
                return dataclasses.replace(self._taken(), overflow=True)
            self._free_memory()
        return self._taken()

    @property
    def _overflows(self) -> bool:
        # One record is taken whatever its size: no batch is smaller than that.
        is_least = self._is_alone and len(self._rejected) == 1
        too_many_rejected = self._rejected_bytes > self._most_rejected_bytes and not is_least
        return too_many_rejected or (self._is_too_large() and self._records > 1)

    def discard(self) -> None:
        """Remove what was written: the task has failed."""
        for table in self._tables:
            table.discard()

    def _is_too_large(self) -> bool:
        return self._stages and self._most_bytes is not None and self._bytes > self._most_bytes

    def _free_memory(self) -> None:
        """All tables share one allowance for rows that wait to be written."""
        while sum(table.buffered_bytes for table in self._tables) >= _BUFFER_BYTES:
            max(self._tables, key=lambda table: table.buffered_bytes).flush()

    def _taken(self) -> BatchResult:
        tables = [table.close() for table in self._tables]
        return BatchResult(
            tables,
            self._rejected,
            self._bytes,
            self._newest,
            dropped=dict(self._dropped),
            records_read=self._records,
        )

    def _take(self, chunk: Chunk) -> None:
        prepared = self._path.prepare(chunk)
        refused = prepared.refused
        # A null value is for the sink to pass over, as the Java one does.
        present, null = _nulls_apart(prepared.records)
        made = [[table.fit(records) for records in present] for table in self._tables]
        for goods in made:
            for good in goods:
                refused = {**good.bad, **refused}
        filtered = np.array([*null, *prepared.dropped], np.int64)
        rejected = np.fromiter(refused, np.int64, len(refused))
        origins = RowOrigins([part.partition for part in chunk.parts], chunk.sources, chunk.offsets())
        for table, goods in zip(self._tables, made, strict=True):
            # A record that one table cannot take is rejected whole: it is in all tables or in none.
            fresh = table.fresh(origins)
            for good in goods if self._stages else ():
                table.write(good.without(refused) if refused else good, origins, fresh)
            table.count(origins, fresh, rejected, filtered)
        self._set_aside(chunk, refused)
        self._dropped.update(prepared.dropped.values())
        self._bytes += chunk.total_bytes()
        self._records += len(chunk)
        for partition, newest in chunk.newest_ms().items():
            self._newest[partition] = max(newest, self._newest.get(partition, 0))

    def _set_aside(self, chunk: Chunk, refused: Mapping[int, Refusal]) -> None:
        for at, why in sorted(refused.items()):
            record = chunk.rejected(at, why.stage, why.reason, why.class_name, why.exception, self._task)
            self._rejected.append(record)
            self._rejected_bytes += record.size


def _per_part(origins: RowOrigins, rows: Indexes) -> list[int]:
    """How many of these rows each partition has."""
    counted: list[int] = np.bincount(origins.codes[rows], minlength=len(origins.partitions)).tolist()
    return counted


def _nulls_apart(groups: Sequence[Records]) -> tuple[list[Records], list[int]]:
    """The records that have a value, and the rows of those that have none."""
    present: list[Records] = []
    rows: list[int] = []
    for records in groups:
        null = _nulls(records)
        rows += records.rows[null].tolist()
        if not null.all():
            present.append(records.take(np.flatnonzero(~null)))
    return present, rows


def _nulls(records: Records) -> Flags:
    if records.value is None:
        return np.ones(len(records), np.bool_)
    if isinstance(records.value, Column):
        return records.value.nulls
    return np.zeros(len(records), np.bool_)
