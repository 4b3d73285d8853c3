"""A task that meets more bytes than it should stops, a single record never stops it, and a task that fails
leaves nothing behind."""

from pathlib import Path
from typing import Any, cast

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.api.batch import Batch, BatchResult, PartlyStaged, Slice
from icestream.api.errors import SinkUnavailable
from icestream.api.offsets import NOTHING, Offsets
from icestream.api.sink import SinkPlan
from icestream.connectors.iceberg import writer
from icestream.jobs.sinks.batches.staging import stage
from icestream.kafka.chunk import Chunk
from icestream.kafka.reader import SliceReader
from icestream.pipeline import task
from icestream.pipeline.plan import BatchPlan
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.tables import unrouted_writer
from tests.unit.pipeline.batches import CONFIG, SOURCE, Tables, Topic, World, reasons, rows_of

TABLE = Schema(it.NestedField(1, "id", it.LongType()))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(task, "_REJECTED_BYTES", 1000)
    return World(tmp_path, monkeypatch)


def test_one_rejected_record_is_taken_however_large_it_is(world: World) -> None:
    staged = world.staged([b"{" * 2000], world.table(TABLE))
    assert not staged.result.overflow
    assert list(reasons(staged)) == [0]


def test_several_rejected_records_may_be_too_much(world: World) -> None:
    assert world.staged([b"{" * 600] * 2, world.table(TABLE)).result.overflow


def test_the_tasks_of_a_batch_share_what_a_driver_should_hold(world: World) -> None:
    values = [b"{" * 600] * 4
    tasks = [[Slice(SOURCE, at, at + 1)] for at in range(4)]
    records = RecordSettings.of(CONFIG)
    plan = BatchPlan({}, records, SinkPlan(writer.IcebergWriter, []), tasks)
    reader, path = cast(SliceReader, Topic(values)), record_path_from(records)
    taken = [task.TaskWork(plan, at, reader, path).run(tasks[at]) for at in range(4)]
    assert [(part.overflow, len(part.rejected)) for part in taken] == [(True, 0)] * 4


def test_tables_that_have_different_parts_of_a_batch_get_the_rest_of_it(world: World) -> None:
    strict = Schema(it.NestedField(1, "id", it.LongType()), it.NestedField(2, "n", it.IntegerType()))
    values = [b'{"id":0}', b'{"id":1,"n":"x"}', b"null", b'{"id":3}', b'{"id":"y"}', b'{"id":5,"n":1}']
    staged = world.staged(
        values,
        world.table(TABLE, name="one"),
        world.table(strict, name="other"),
        starts=[Offsets({SOURCE: 3}), Offsets({SOURCE: 1})],
        evolves=False,
    )
    assert [row["id"] for row in rows_of(staged, 0)] == [3, 5]
    assert [row["id"] for row in rows_of(staged, 1)] == [3, 5]
    counts = [next(iter(part.counts.values())) for part in staged.result.staged.values()]
    assert [(one.read, one.written, one.rejected, one.filtered) for one in counts] == [
        (3, 2, 1, 0),
        (5, 2, 2, 1),
    ]
    assert list(reasons(staged)) == [1, 4]


def test_a_task_that_reads_more_bytes_than_a_batch_may_have_stops(world: World) -> None:
    values = [b'{"id":%d}' % number for number in range(10)]
    assert not world.staged(values, world.table(TABLE), most_bytes=1_000).result.overflow
    world.monkeypatch.setattr(task, "_CHUNK_ROWS", 2)
    taken = world.staged(values, world.table(TABLE, name="again"), most_bytes=20).result
    assert (taken.overflow, taken.records_read, taken.bytes_read) == (True, 4, 32)
    assert not world.staged(values[:1], world.table(TABLE, name="one"), most_bytes=1).result.overflow


def test_tables_share_the_memory_of_a_task(world: World) -> None:
    world.monkeypatch.setattr(task, "_CHUNK_ROWS", 10)
    world.monkeypatch.setattr(unrouted_writer, "BUFFER_BYTES", 1_000)
    held = []
    free = writer.IcebergWriter._free_memory

    def watched(self: writer.IcebergWriter) -> None:
        free(self)
        held.append(sum(table.files.buffered_bytes for table in self._tables))

    world.monkeypatch.setattr(writer.IcebergWriter, "_free_memory", watched)
    tables = [world.table(TABLE, name=f"t{number}") for number in range(20)]
    staged = world.staged([b'{"id":%d}' % number for number in range(100)], *tables)
    assert max(held) < 1_000
    assert [len(rows_of(staged, number)) for number in range(20)] == [100] * 20


def test_a_task_that_fails_removes_its_files(world: World) -> None:
    world.monkeypatch.setattr(task, "_CHUNK_ROWS", 2)
    world.monkeypatch.setattr(unrouted_writer, "BUFFER_BYTES", 1)
    table = world.table(TABLE)
    taken = task.TaskWork._take

    def fails_late(self: task.TaskWork, chunk: Chunk) -> None:
        taken(self, chunk)
        if self._records == 6:
            assert list(world.folder.rglob("*.parquet"))
            raise SinkUnavailable("no answer")

    world.monkeypatch.setattr(task.TaskWork, "_take", fails_late)
    with pytest.raises(SinkUnavailable):
        world.staged([b'{"id":%d}' % number for number in range(10)], table)
    assert not list(world.folder.rglob("*.parquet"))


def test_the_files_of_the_other_tasks_go_when_one_fails(world: World) -> None:
    table = world.table(TABLE)
    done = world.staged([b'{"id":1}'], table).result
    assert list(world.folder.rglob("*.parquet"))

    class OneOfTwo:
        def run(self, batch: Batch, *arguments: object, **options: object) -> BatchResult:
            raise PartlyStaged(SinkUnavailable("no answer"), [done])

    batch = Batch("b", Offsets({SOURCE: 0}), Offsets({SOURCE: 2}))
    with pytest.raises(SinkUnavailable, match="no answer"):
        stage(batch, Tables([table]), [table], [NOTHING], cast(Any, OneOfTwo()))
    assert not list(world.folder.rglob("*.parquet"))
