"""What happens inside a Spark Python worker: slices of Kafka become staged files and rejects.

`pipeline.run` hands `run_tasks` to Spark. Nothing here imports Spark.
"""

from __future__ import annotations

import dataclasses
import gc
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icestream.api.batch import Counts, Rejected, Slice, Staged, Taken, add_counts
from icestream.api.errors import RetriableError
from icestream.api.offsets import Partition
from icestream.converters.json import JsonDecoder
from icestream.converters.new_fields import Path, combined, new_fields
from icestream.kafka.reader import Chunk, process_reader
from icestream.pipeline.plan import Plan, TableTask, TaskFailed, packed
from icestream.records.payloads import Payloads
from icestream.sinks.iceberg.required import missing_required
from icestream.sinks.iceberg.stage import StageWriter

_CHUNK_ROWS = 10_000
_REJECTED_BYTES = 64 * 1024 * 1024

VALUE_CONVERTER = "VALUE_CONVERTER"
TASK_PUT = "TASK_PUT"


Indexes = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Good:
    """Rows of one table with the index of the payload that each is from; `bad` by index of payload."""

    rows: pa.Table
    index: Indexes
    bad: Mapping[int, tuple[str, str]]

    def without(self, bad: Mapping[int, tuple[str, str]]) -> Good:
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


def _answer(plan: Plan, task: int) -> Taken | TaskFailed:
    try:
        return SliceWork(plan).run(plan.tasks[task])
    except Exception as error:  # the worker edge: the driver decides what it means
        return TaskFailed(isinstance(error, RetriableError), str(error), traceback.format_exc())


_settled = False


def settle_process() -> None:
    """Make the tasks of this process start quickly: Spark re-reads every zip on the path before each task."""
    global _settled
    if _settled:
        return
    zips = [path for path in sys.path if path.endswith(".zip")]
    for path in zips:
        sys.path.remove(path)
        sys.path_importer_cache.pop(path, None)
    gc.freeze()
    _settled = True


class TableWork:
    """One table's part of a task: decodes into its schema, writes its files, counts its records."""

    def __init__(self, task: TableTask, evolves: bool) -> None:
        self._floor = task.floor
        self._writer = StageWriter(task.plan)
        self._schema = task.plan.arrow_schema
        self._evolves = evolves
        self._new_fields: dict[Path, pa.DataType] = {}
        self._decoder = self._new_decoder()
        self._counts: dict[Partition, Counts] = {}

    def decode(self, payloads: Payloads) -> Good:
        """Rows that fit the table; what does not fit, with stage and reason."""
        decoded = self._decoder.decode(payloads)
        bad = {
            refused.at: (TASK_PUT if refused.is_misfit else VALUE_CONVERTER, refused.reason)
            for refused in decoded.rejected
        }
        lacking = missing_required(decoded.rows)
        if not lacking:
            return Good(decoded.rows, decoded.index, bad)
        for row, reason in lacking.items():
            bad[int(decoded.index[row])] = (TASK_PUT, reason)
        return Good(decoded.rows, decoded.index, bad).without(bad)

    def write(self, good: Good, source: Partition, offsets: Indexes) -> None:
        """Write rows that the table does not have yet; from the first new field on, only look for more of
        them."""
        if self._new_fields:
            return
        floor = self._floor.get(source)
        if floor is not None and len(offsets) and offsets[0] < floor:
            fresh = offsets >= floor
            good, offsets = Good(good.rows.filter(pa.array(fresh)), good.index[fresh], {}), offsets[fresh]
        self._writer.write(good.rows, source, offsets)

    def count(self, source: Partition, offsets: Indexes, bad: Indexes, null: Indexes) -> None:
        floor = self._floor.get(source) or 0
        fresh = offsets >= floor
        read, rejected, filtered = int(fresh.sum()), int(fresh[bad].sum()), int(fresh[null].sum())
        counts = Counts(read, read - rejected - filtered, rejected, filtered)
        self._counts = add_counts([self._counts, {source: counts}])

    def close(self) -> Staged:
        return Staged(self._writer.close(), self._counts, self._new_fields)

    def _new_decoder(self) -> JsonDecoder:
        return JsonDecoder(self._schema, self._note_new_fields if self._evolves else None)

    def _note_new_fields(self, payloads: Payloads) -> None:
        # Always against the table's own schema: the type must fit all records of the batch.
        self._new_fields = combined(self._new_fields, new_fields(payloads, self._schema))


class SliceWork:
    """The work of one task: every record of its slices to every table."""

    def __init__(self, plan: Plan) -> None:
        self._stages = plan.stages
        self._reader = process_reader(plan.kafka)
        self._tables = [TableWork(task, plan.evolves) for task in plan.tables]
        self._rejected: list[Rejected] = []
        self._rejected_bytes = 0
        self._bytes = 0
        self._newest: dict[Partition, int] = {}

    def run(self, slices: Sequence[Slice]) -> Taken:
        for piece in slices:
            for chunk in self._reader.read(piece, _CHUNK_ROWS):
                self._take(chunk)
                if self._rejected_bytes > _REJECTED_BYTES:
                    return dataclasses.replace(self._taken(), overflow=True)
        return self._taken()

    def _taken(self) -> Taken:
        tables = [table.close() for table in self._tables]
        return Taken(tables, self._rejected, self._bytes, self._newest)

    def _take(self, chunk: Chunk) -> None:
        values, offsets = chunk.values(), chunk.offsets()
        present, null = _split_nulls(values)
        payloads = Payloads.of([value for value in values if value is not None])
        decoded = [table.decode(payloads) for table in self._tables]
        bad: dict[int, tuple[str, str]] = {}
        for good in decoded:
            bad = {**good.bad, **bad}
        bad_at = present[np.fromiter(bad, np.int64, len(bad))]
        for table, good in zip(self._tables, decoded, strict=True):
            # A record that one table cannot take is rejected whole: it is in all tables or in none.
            fit = good.without(bad) if len(good.bad) != len(bad) else good
            if self._stages:
                table.write(fit, chunk.partition, offsets[present[fit.index]])
            table.count(chunk.partition, offsets, bad_at, null)
        self._set_aside(chunk, {int(present[at]): why for at, why in bad.items()})
        self._bytes += len(payloads.text)
        self._newest[chunk.partition] = max(chunk.newest_ms(), self._newest.get(chunk.partition, 0))

    def _set_aside(self, chunk: Chunk, bad: Mapping[int, tuple[str, str]]) -> None:
        for at, (stage, reason) in sorted(bad.items()):
            record = chunk.rejected(at, stage, reason)
            self._rejected.append(record)
            self._rejected_bytes += len(record.value or b"") + len(record.key or b"") + 200


def _split_nulls(values: Sequence[bytes | None]) -> tuple[Indexes, Indexes]:
    """Where values are, and where tombstones are: the sink passes over those, as the Java one does."""
    if None not in values:
        return np.arange(len(values)), np.empty(0, np.int64)
    null = np.fromiter((value is None for value in values), np.bool_, len(values))
    return np.flatnonzero(~null), np.flatnonzero(null)
