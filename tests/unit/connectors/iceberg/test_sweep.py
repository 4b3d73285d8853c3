"""Files of dead batches go; whatever a snapshot has or had, is young, or is not ours, stays."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.api.checkpoint import TopicIds, checkpoint_after
from icestream.api.sink import Commit
from icestream.connectors.iceberg.table import IcebergTable
from icestream.jobs.sinks.batches.staging import StagedBatch
from tests.unit.pipeline.batches import World

TABLE = Schema(it.NestedField(1, "id", it.LongType()))
LATER = dt.datetime.now(dt.UTC) + dt.timedelta(hours=3)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def files(world: World) -> set[str]:
    return {path.name for path in world.folder.rglob("*.parquet")}


def commit(table: IcebergTable, staged: StagedBatch) -> str:
    """What the job manager does; returns the id of the commit."""
    part, before = staged.staged(table.name), table.found().checkpoint
    checkpoint = checkpoint_after(before, staged.batch, part.counts, TopicIds("c", {"events": "id"}))
    table.commit(Commit(checkpoint, before, staged.plans[table.name], part, staged.result))
    return staged.batch.id


def test_only_files_of_dead_batches_go(world: World) -> None:
    table = world.table(TABLE)
    commit(table, world.staged([b'{"id":1}'], table))
    landed = files(world)
    dead = world.staged([b'{"id":2}'], table)
    (died,) = world.folder.rglob(dead.staged("ns.events").payload[0].path.rsplit("/", 1)[-1])
    stranger = died.with_name("another-engine.parquet")
    other_job = died.with_name("icestream-0123456789abcdef-" + died.name.removeprefix("icestream-")[17:])
    for path in (stranger, other_job):
        path.write_bytes(died.read_bytes())
    commit(table, world.staged([b'{"id":3}'], table))
    landed |= files(world) - {died.name}
    # The next batch, which is under way while the table is swept.
    world.staged([b'{"id":4}'], table)
    landed |= files(world) - {died.name}
    last = table.found().checkpoint
    assert last is not None
    assert table.sweep(last.commit, dt.datetime.now(dt.UTC)) == 0, "they are young"
    assert table.sweep("not landed here", LATER) == 0
    assert table.sweep(last.commit, LATER) == 1
    assert files(world) == landed | {stranger.name, other_job.name}


def test_a_batch_without_rows_sweeps_too(world: World) -> None:
    table = world.table(TABLE)
    commit(table, world.staged([b'{"id":1}'], table))
    landed = files(world)
    world.staged([b'{"id":2}'], table)
    commit(table, world.staged([b"no JSON"], table))
    world.staged([b'{"id":3}'], table)
    last = table.found().checkpoint
    assert last is not None
    assert len(files(world)) == 3
    assert table.sweep(last.commit, LATER) == 1
    assert len(files(world)) == 2 and landed < files(world)


def test_changes_of_a_batch_that_died_before_the_first_commit_go(world: World) -> None:
    table = world.table(TABLE)
    world.staged([b'{"id":1}'], table)
    (died,) = world.folder.rglob("*.parquet")
    changes = died.rename(died.with_suffix(".changes"))
    world.staged([b'{"id":2}'], table)
    last = commit(table, world.staged([b'{"id":3}'], table))
    assert table.sweep(last, LATER) == 1
    assert not changes.exists()
    assert len(files(world)) == 2, "what is older than all snapshots may have been in one that is gone"


def test_files_that_an_old_snapshot_has_or_a_branch_will_have_stay(world: World) -> None:
    table = world.table(TABLE)
    commit(table, world.staged([b'{"id":1}'], table))
    loaded = table._loaded()
    # As another engine would: a snapshot of its own, without our commit id, has the file now.
    replaced = world.staged([b'{"id":2}'], table)
    loaded.add_files([file.path for file in replaced.staged("ns.events").payload])
    loaded.delete("id = 1")
    commit(table, world.staged([b'{"id":3}'], table))
    before = files(world)
    last = table.found().checkpoint
    assert last is not None
    assert table.sweep(last.commit, LATER) == 0
    assert files(world) == before


def test_nothing_is_swept_where_files_are_to_stay(world: World) -> None:
    table = world.table(TABLE)
    commit(table, world.staged([b'{"id":1}'], table))
    world.staged([b'{"id":2}'], table)
    commit(table, world.staged([b'{"id":3}'], table))
    with table._loaded().transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    last = table.found().checkpoint
    assert last is not None
    assert table.sweep(last.commit, LATER) == 0
