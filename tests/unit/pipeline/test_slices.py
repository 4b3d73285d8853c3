"""A task that meets more rejected bytes than a driver should hold stops; a single record never stops it."""

from pathlib import Path

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.api.batch import Slice
from icestream.api.offsets import Offsets
from icestream.pipeline import worker
from icestream.pipeline.plan import Plan
from icestream.pipeline.record_path import RecordSettings
from tests.unit.pipeline.batches import CONFIG, SOURCE, Topic, World, reasons, rows_of

TABLE = Schema(it.NestedField(1, "id", it.LongType()))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(worker, "_REJECTED_BYTES", 1000)
    return World(tmp_path, monkeypatch)


def test_one_rejected_record_is_taken_however_large_it_is(world: World) -> None:
    staged = world.staged([b"{" * 2000], world.table(TABLE))
    assert not staged.taken.overflow
    assert list(reasons(staged)) == [0]


def test_several_rejected_records_may_be_too_much(world: World) -> None:
    assert world.staged([b"{" * 600] * 2, world.table(TABLE)).taken.overflow


def test_the_tasks_of_a_batch_share_what_a_driver_should_hold(world: World) -> None:
    values = [b"{" * 600] * 4
    world.monkeypatch.setattr(worker, "process_reader", lambda kafka: Topic(values))
    tasks = [[Slice(SOURCE, at, at + 1)] for at in range(4)]
    plan = Plan({}, RecordSettings.of(CONFIG), [], tasks, evolves=False)
    taken = [worker.SliceWork(plan, task).run(tasks[task]) for task in range(4)]
    assert [(part.overflow, len(part.rejected)) for part in taken] == [(True, 0)] * 4


def test_tables_that_have_different_parts_of_a_batch_get_the_rest_of_it(world: World) -> None:
    strict = Schema(it.NestedField(1, "id", it.LongType()), it.NestedField(2, "n", it.IntegerType()))
    values = [b'{"id":0}', b'{"id":1,"n":"x"}', b"null", b'{"id":3}', b'{"id":"y"}', b'{"id":5,"n":1}']
    staged = world.staged(
        values,
        world.table(TABLE, name="one"),
        world.table(strict, name="other"),
        floors=[Offsets({SOURCE: 3}), Offsets({SOURCE: 1})],
        evolves=False,
    )
    assert [row["id"] for row in rows_of(staged, 0)] == [3, 5]
    assert [row["id"] for row in rows_of(staged, 1)] == [3, 5]
    counts = [next(iter(part.staged.counts.values())) for part in staged.parts]
    assert [(one.read, one.written, one.rejected, one.filtered) for one in counts] == [
        (3, 2, 1, 0),
        (5, 2, 2, 1),
    ]
    assert list(reasons(staged)) == [1, 4]
