"""One task of a batch: slices of Kafka become staged rows and rejected records.

`run_tasks` is what Spark calls in its Python workers; sinks without Spark run `TaskWork` in the worker
(`in_worker`). Nothing here imports Spark or knows which sink it writes to.
"""

from __future__ import annotations

import dataclasses
import gc
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from icestream.api.batch import BatchResult, Counts, Failure, Rejected, Slice, Staged, TaskTimes
from icestream.api.errors import retriable_kind
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import WriterTask, Written
from icestream.kafka.chunk import Chunk
from icestream.kafka.reader import SliceReader, process_reader
from icestream.pipeline.plan import BatchPlan, TaskFailed, packed
from icestream.pipeline.record_path import RecordPath, process_record_path
from icestream.pipeline.zips import forget_zips
from icestream.records.origins import RowOrigins
from icestream.records.rows import Indexes

_CHUNK_ROWS = 10_000
_OBJECTS = 200_000
"""More than a task holds at a time."""
_REJECTED_BYTES = 64 * 1024 * 1024
"""Of a batch: its tasks share it, because the driver gets what all of them have."""


def run_tasks(plan: BatchPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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


def _answer(plan: BatchPlan, task: int) -> BatchResult | TaskFailed:
    try:
        return task_result(plan, task, process_reader(plan.kafka), process_record_path(plan.records))
    except Exception as error:  # the edge of the task: the driver decides what it means
        return TaskFailed(retriable_kind(error), str(error), traceback.format_exc())


def task_result(plan: BatchPlan, task: int, reader: SliceReader, path: RecordPath) -> BatchResult:
    """What a task makes of its slices; if it fails, what it staged is gone."""
    began = time.perf_counter()
    work = TaskWork(plan, task, reader, path)
    try:
        result = work.run(plan.tasks[task])
        times = TaskTimes(work.seconds, time.perf_counter() - began, 1)
        return dataclasses.replace(result, times=times)
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


class TargetCounts:
    """What became of the records that one target did not have yet, by partition."""

    def __init__(self, start: Offsets = NOTHING) -> None:
        self._start = start
        self.counts: dict[Partition, Counts] = {}

    def add_routed(self, origins: RowOrigins, routed: Indexes) -> None:
        """Records that are for this target, among others that are not."""
        fresh = routed[origins.take(routed).at_or_after(self._start)]
        self._sum(origins, origins.counted(fresh), origins.counted(fresh))

    def add_all(self, origins: RowOrigins, routed: Indexes, rejected: Indexes, filtered: Indexes) -> None:
        """All records, those that were for some target counted one by one: nobody else counts them."""
        read = origins.counted(np.arange(len(origins.offsets)))
        self._sum(origins, read, *(origins.counted(np.unique(rows)) for rows in (routed, rejected, filtered)))

    def _sum(self, origins: RowOrigins, *columns: Sequence[int]) -> None:
        for partition, numbers in zip(origins.partitions, zip(*columns, strict=True), strict=True):
            self.counts[partition] = self.counts.get(partition, Counts()) + Counts(*numbers)

    def add(self, origins: RowOrigins, rejected: Indexes, filtered: Indexes) -> None:
        fresh = origins.at_or_after(self._start)
        numbers = zip(
            origins.partitions,
            origins.counted(np.flatnonzero(fresh)),
            origins.counted(rejected[fresh[rejected]]),
            origins.counted(filtered[fresh[filtered]]),
            strict=True,
        )
        for partition, read, bad, passed in numbers:
            found = Counts(read, read - bad - passed, bad, passed)
            self.counts[partition] = self.counts.get(partition, Counts()) + found


@dataclasses.dataclass(frozen=True, eq=False)
class _TakenChunk:
    """What became of the rows of a chunk."""

    origins: RowOrigins
    rejected: Indexes
    filtered: Indexes
    dropped: Mapping[int, str]

    def before(self, until: Mapping[Partition, int]) -> _TakenChunk:
        """The rows before these offsets."""
        ends = np.array([until.get(p, np.iinfo(np.int64).max) for p in self.origins.partitions], np.int64)
        kept = self.origins.offsets < ends[self.origins.codes]
        place = np.cumsum(kept) - 1
        return _TakenChunk(
            self.origins.take(np.flatnonzero(kept)),
            place[self.rejected[kept[self.rejected]]],
            place[self.filtered[kept[self.filtered]]],
            {row: alias for row, alias in self.dropped.items() if kept[row]},
        )


class TaskWork:
    """The work of one task: every record of its slices to every target."""

    def __init__(self, plan: BatchPlan, task: int, reader: SliceReader, path: RecordPath) -> None:
        self._stages = plan.stages
        self._most_bytes = plan.most_bytes
        self._task = task
        self._reader = reader
        self._path = path
        sink = plan.sink
        self._writer = sink.writer(
            WriterTask(
                sink.targets,
                plan.batch,
                plan.stages,
                sink.routing,
                sink.absent,
                sink.may_leave and plan.stages,
            )
        )
        self._starts = {target.name: target.start for target in sink.targets}
        self._counts = {name: TargetCounts(start) for name, start in self._starts.items()}
        self._all_counts = TargetCounts()
        self._unknown: frozenset[str] = frozenset()
        self._rejected: list[Rejected] = []
        self._rejected_bytes = 0
        self._is_alone = len(plan.tasks) == 1
        self._most_rejected_bytes = _REJECTED_BYTES // max(1, len(plan.tasks))
        self._bytes = 0
        self._records = 0
        self._newest: dict[Partition, int] = {}
        self._dropped: Counter[str] = Counter()
        self._taken: list[_TakenChunk] | None = [] if sink.may_leave and plan.stages else None
        """Kept only where the writer may leave the end of what it has taken."""
        self.seconds = dict.fromkeys(("read", "convert", "transform", "stage"), 0.0)
        """Measured around chunks, never around records."""

    def run(self, slices: Sequence[Slice]) -> BatchResult:
        asked = time.perf_counter()
        for chunk in self._reader.read_all(slices, _CHUNK_ROWS):
            self.seconds["read"] += time.perf_counter() - asked
            self._take(chunk)
            asked = time.perf_counter()
            if self._overflows:
                # Nobody will look at them: the batch runs again as a smaller one.
                self._rejected.clear()
                return dataclasses.replace(self._result(), overflow=True)
        self.seconds["read"] += time.perf_counter() - asked
        return self._result()

    @property
    def _overflows(self) -> bool:
        # One record is taken whatever its size: no batch is smaller than that.
        is_least = self._is_alone and len(self._rejected) == 1
        too_many_rejected = self._rejected_bytes > self._most_rejected_bytes and not is_least
        return too_many_rejected or (self._is_too_large() and self._records > 1)

    def _is_too_large(self) -> bool:
        return self._stages and self._most_bytes is not None and self._bytes > self._most_bytes

    def discard(self) -> None:
        """Remove what was staged: the task has failed."""
        self._writer.discard()

    def _result(self) -> BatchResult:
        began = time.perf_counter()
        closed = self._writer.close()
        self.seconds["stage"] += time.perf_counter() - began
        staged = {
            name: dataclasses.replace(one, counts=self._counts[name].counts) for name, one in closed.items()
        }
        if any(one.left for one in staged.values()):
            return self._without_left(staged)
        return BatchResult(
            staged,
            self._rejected,
            self._bytes,
            self._newest,
            dropped=dict(self._dropped),
            records_read=self._records,
            counts=self._all_counts.counts,
            unknown_targets=self._unknown,
        )

    def _without_left(self, staged: Mapping[str, Staged]) -> BatchResult:
        """As if what the writer left had not been read."""
        ((name, one),) = staged.items()
        until = {partition: left.until for partition, left in one.left.items()}
        counts = TargetCounts(self._starts[name])
        dropped: Counter[str] = Counter()
        kept = 0
        for chunk in self._taken or ():
            mine = chunk.before(until)
            counts.add(mine.origins, mine.rejected, mine.filtered)
            dropped.update(mine.dropped.values())
            kept += len(mine.origins.offsets)
        return BatchResult(
            {name: dataclasses.replace(one, counts=counts.counts)},
            [one for one in self._rejected if one.offset < until.get(one.partition, one.offset + 1)],
            self._bytes * kept // max(1, self._records),
            self._newest,
            dropped=dict(dropped),
            records_read=kept,
        )

    def _take(self, chunk: Chunk) -> None:
        came = time.perf_counter()
        prepared = self._path.prepare(chunk)
        done = time.perf_counter()
        self.seconds["convert"] += done - came - prepared.transform_seconds
        self.seconds["transform"] += prepared.transform_seconds
        origins = RowOrigins([part.partition for part in chunk.parts], chunk.sources, chunk.offsets())
        written = self._writer.write(prepared.records, origins)
        self.seconds["stage"] += time.perf_counter() - done
        failed = {**written.failed, **prepared.failed}
        filtered = np.array([*written.skipped, *prepared.dropped], np.int64)
        rejected = np.fromiter(failed, np.int64, len(failed))
        if written.routed is None:
            for counts in self._counts.values():
                counts.add(origins, rejected, filtered)
        else:
            self._count_routed(origins, written, written.routed, rejected, filtered)
        if self._taken is not None:
            self._taken.append(_TakenChunk(origins, rejected, filtered, prepared.dropped))
        self._set_aside(chunk, failed)
        self._dropped.update(prepared.dropped.values())
        self._bytes += chunk.total_bytes()
        self._records += len(chunk)
        for partition, newest in chunk.newest_ms().items():
            self._newest[partition] = max(newest, self._newest.get(partition, 0))

    def _count_routed(
        self,
        origins: RowOrigins,
        written: Written,
        routed: Mapping[str, Indexes],
        rejected: Indexes,
        filtered: Indexes,
    ) -> None:
        self._unknown |= written.unknown_targets
        for why, rows in written.unrouted.items():
            self._dropped[why] += len(rows)
        filtered = np.concatenate([filtered, *written.unrouted.values()])
        taken = {name: rows[~np.isin(rows, rejected)] for name, rows in routed.items()}
        for name, rows in taken.items():
            if name in self._counts:
                self._counts[name].add_routed(origins, rows)
        everywhere = np.concatenate([np.empty(0, np.int64), *taken.values()])
        self._all_counts.add_all(origins, everywhere, rejected, filtered)

    def _set_aside(self, chunk: Chunk, failed: Mapping[int, Failure]) -> None:
        for at, why in sorted(failed.items()):
            record = chunk.rejected(at, self._path.named(why), self._task)
            self._rejected.append(record)
            self._rejected_bytes += record.size
