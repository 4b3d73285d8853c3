"""Maintenance of Delta tables: the rows stay the same, whoever else writes, and so does what `verify --deep`
proves; no file goes that somebody may need."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from icestream.api.batch import Batch, Counts
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.errors import CommitConflict, PreconditionError
from icestream.api.offsets import Offsets
from icestream.api.sink import Commit, TargetTask, WriterTask
from icestream.connectors.delta.maintenance.settings import MAINTENANCE, maintenance_of
from icestream.connectors.delta.maintenance.steps import TableMaintainer
from icestream.connectors.delta.plugin import DeltaPlugin
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.origins import RowOrigins
from tests.unit.pipeline.batches import CONFIG, SOURCE, chunk

NOW = dt.datetime.now(dt.UTC)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.string()),
        pa.field("amount", pa.decimal128(38, 6)),
    ]
)


class World:
    """A table, and a job that appends to it."""

    def __init__(self, folder: Path, partition_by: list[str], **options: str) -> None:
        self.place = str(folder / "t")
        self.config = {"delta.tables": "t", "delta.location": str(folder), **options}
        self.next = 0
        self.last: Checkpoint | None = None
        DeltaTable.create(self.place, SCHEMA, partition_by=partition_by)

    def commit(self, rows: int) -> None:
        sink = DeltaPlugin().open("job", self.config)
        (target,) = sink.targets()
        plan = target.plan({})
        start, until = self.next, self.next + rows
        batch = Batch(
            f"11111111-1111-1111-1111-{start:012}", Offsets({SOURCE: start}), Offsets({SOURCE: until})
        )
        writer = sink.writer(WriterTask([TargetTask("t", plan)], batch.id))
        values = [
            json.dumps({"id": one, "part": f"a %{one % 2}", "amount": f"1234567890123456.{one:06}"}).encode()
            for one in range(start, until)
        ]
        records = record_path_from(RecordSettings.of(CONFIG)).prepare(chunk(values, start)).records
        written = writer.write(records, RowOrigins.of_one(SOURCE, np.arange(start, until)))
        assert not written.failed
        after = checkpoint_after(
            self.last, batch, {SOURCE: Counts(rows, rows)}, TopicIds("cluster", {SOURCE.topic: "id"})
        )
        self.last = target.commit(Commit(after, self.last, plan, writer.close()["t"])).checkpoint
        self.next = until

    def maintainer(self, reached: Callable[[str], None] = lambda point: None, **keys: str) -> TableMaintainer:
        made = DeltaPlugin().maintainer(
            "job", {**self.config, "icestream.maintenance.enabled": "true", **keys}, "t"
        )
        assert isinstance(made, TableMaintainer)
        made._reached = reached
        return made

    def ids(self) -> list[int]:
        return sorted(DeltaTable(self.place).to_pyarrow_table()["id"].to_pylist())

    def files(self) -> int:
        return len(DeltaTable(self.place).file_uris())

    def check(self, foreign: int = 0) -> None:
        """All rows are there once, the job knows where it is, and the origin of each row is known."""
        (target,) = DeltaPlugin().open("job", self.config).targets()
        found = target.audit()
        assert found.found.checkpoint == self.last
        assert found.rows == self.next + foreign and found.other_writers == bool(foreign)
        assert found.row_offsets is not None
        offsets = found.row_offsets()
        assert offsets.foreign_rows == foreign
        ((layer,),) = offsets.layers.values()
        assert list(layer) == list(range(self.next))


@pytest.fixture(params=[[], ["part"]], ids=["plain", "partitioned"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, request.param)


def foreign_row(id_: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": id_, "part": "a %0", "amount": Decimal(1)}], SCHEMA)


def test_small_files_are_merged_and_tell_where_each_row_is_from(world: World) -> None:
    for _ in range(6):
        world.commit(10)
    before = world.files()
    steps = world.maintainer().compact({"min-files": 2}, dry_run=True)
    assert steps[0].before == before > steps[0].after and world.files() == before
    world.maintainer().compact({"min-files": 2}, dry_run=False)
    assert world.files() == steps[0].after == (1 if before == 6 else 2)
    assert world.ids() == list(range(60))
    world.check()
    world.commit(5)
    world.check()
    entries = world.maintainer().history()
    assert [entry.by for entry in entries][-2:] == ["maintenance: compaction", "connector job"]
    assert (entries[-2].removed_files, entries[-2].added_files) == (before, steps[0].after)


def test_readers_find_every_decimal_after_a_merge_of_files(tmp_path: Path) -> None:
    """delta-rs's own compaction writes bounds as floats, by which readers skip files that match."""
    world = World(tmp_path, [])
    for _ in range(3):
        world.commit(4)
    world.maintainer().compact({"min-files": 2}, dry_run=False)
    wanted = Decimal("1234567890123456.000007")
    dataset = DeltaTable(world.place).to_pyarrow_table(filters=[("amount", "=", wanted)])
    assert dataset["id"].to_pylist() == [7]


def test_what_others_append_meanwhile_stays_and_what_they_merge_is_not_repeated(world: World) -> None:
    for _ in range(4):
        world.commit(10)

    def append(point: str) -> None:
        if point == "rewritten":
            write_deltalake(world.place, foreign_row(1000), mode="append")

    world.maintainer(append).compact({"min-files": 2}, dry_run=False)
    assert world.ids() == [*range(40), 1000]
    world.check(foreign=1)

    def merge(point: str) -> None:
        if point == "rewritten":
            DeltaTable(world.place).optimize.compact()

    world.commit(10)
    with pytest.raises(CommitConflict):
        world.maintainer(merge).compact({"min-files": 2}, dry_run=False)
    assert world.ids() == [*range(50), 1000]


def test_what_others_delete_meanwhile_does_not_come_back(world: World) -> None:
    for _ in range(4):
        world.commit(10)

    def delete(point: str) -> None:
        if point == "rewritten":
            DeltaTable(world.place).delete("id = 7")

    done = world.maintainer(delete).run(NOW, thorough=False, turn=nullcontext())
    assert not done.did_something, "ten files are not there"
    done = world.maintainer(delete, **{"icestream.maintenance.compaction.min-files": "2"}).run(
        NOW, thorough=False, turn=nullcontext()
    )
    assert done.steps[0].is_conflict and done.error is None
    assert world.ids() == [one for one in range(40) if one != 7]
    leftovers = list(Path(world.place).rglob("*merged-*"))
    assert not leftovers


def test_a_commit_of_the_job_in_between_is_kept(world: World) -> None:
    for _ in range(4):
        world.commit(10)
    world.maintainer(lambda point: world.commit(3) if point == "rewritten" else None).compact(
        {"min-files": 2}, dry_run=False
    )
    world.check()


def aged(place: str, days: int) -> None:
    for path in Path(place).rglob("*"):
        if path.is_file() and "_delta_log" not in path.parts:
            at = (NOW - dt.timedelta(days=days)).timestamp()
            os.utime(path, (at, at))


def test_files_that_left_the_table_go_when_no_reader_needs_them(tmp_path: Path) -> None:
    world = World(tmp_path, [])
    DeltaTable(world.place).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    )
    for _ in range(4):
        world.commit(10)
    world.maintainer().compact({"min-files": 2}, dry_run=False)
    early = world.maintainer().expire({"older-than-ms": 3_600_000}, dry_run=False)
    assert early[0].removed_files == 0, "they have just left"
    dry = world.maintainer().expire({"older-than-ms": 0}, dry_run=True)
    assert dry[0].removed_files == 4
    world.maintainer().expire({"older-than-ms": 0}, dry_run=False)
    assert len(list(Path(world.place).glob("*.parquet"))) == 1
    world.check()


def test_a_table_that_keeps_files_longer_is_obeyed(tmp_path: Path) -> None:
    world = World(tmp_path, [])
    with pytest.raises(PreconditionError, match="deletedFileRetentionDuration"):
        world.maintainer().expire({"older-than-ms": 1}, dry_run=False)
    with pytest.raises(PreconditionError, match="at least 1d"):
        world.maintainer().orphans({"older-than-ms": 1}, dry_run=False)


def test_orphans_go_and_what_a_live_batch_has_staged_stays(tmp_path: Path) -> None:
    world = World(tmp_path, [])
    world.commit(10)
    sink = DeltaPlugin().open("job", world.config)
    plan = sink.targets()[0].plan({})
    staged = Path(world.place) / f"{plan.file_prefix}22222222-2222-2222-2222-222222222222-x.parquet"
    changes = staged.with_suffix(".changes")
    stranger = Path(world.place) / "part-of-somebody.parquet"
    other_job = Path(world.place) / f"icestream-{'0' * 16}-22222222-2222-2222-2222-222222222222-x.parquet"
    for path in (staged, changes, stranger, other_job):
        path.write_bytes(b"x")
    aged(world.place, 10)
    # The job has landed nothing since these were written, by the clocks' leave.
    recent = (NOW - dt.timedelta(minutes=5)).timestamp()
    os.utime(staged, (recent, recent))
    done = world.maintainer().orphans({"older-than-ms": 8 * 86_400_000}, dry_run=False)
    assert done[0].removed_files == 2 and not stranger.exists() and not changes.exists()
    assert staged.exists(), "its batch may be under way"
    assert other_job.exists(), "its job has landed nothing since"
    world.check()


def test_a_table_inside_of_the_folder_of_another_is_no_orphan(tmp_path: Path) -> None:
    """Records may name both `t` and `t.inner`."""
    world = World(tmp_path, [])
    world.commit(10)
    inner = Path(world.place) / "inner" / "most"
    write_deltalake(inner, foreign_row(1))
    aged(world.place, 10)
    for path in inner.rglob("*"):
        os.utime(path, ((NOW - dt.timedelta(days=10)).timestamp(),) * 2)
    world.maintainer().orphans({"older-than-ms": 8 * 86_400_000}, dry_run=False)
    assert DeltaTable(inner).to_pyarrow_table().num_rows == 1
    world.check()


def test_every_key_counts() -> None:
    keys = {
        "enabled": "true",
        "compaction.enabled": "false",
        "compaction.min-files": "3",
        "compaction.target-bytes": "2048",
        "expire.enabled": "false",
        "expire.older-than-ms": "4000",
        "orphans.enabled": "false",
        "orphans.older-than-ms": "90000000",
    }
    of_connector = {f"icestream.maintenance.{key}": value for key, value in keys.items()}
    of_table = {f"icestream.maintenance.table.ns.t.{key}": value for key, value in keys.items()}
    found = maintenance_of(of_connector, "ns.t")
    assert found == maintenance_of(of_table, "ns.t") != maintenance_of(of_table, "ns.u")
    assert (found.enabled, found.compaction, found.min_files, found.target_bytes) == (True, False, 3, 2048)
    assert (found.expire, found.older_than, found.orphans) == (False, dt.timedelta(seconds=4), False)
    assert found.orphans_older_than == dt.timedelta(hours=25)
    assert MAINTENANCE.problems(of_table) == []
    assert DeltaPlugin().options({**BASE}).maintenance is None
    rhythm = (
        DeltaPlugin()
        .options(
            {
                **BASE,
                **of_connector,
                "icestream.maintenance.interval-ms": "7000",
                "icestream.maintenance.commits": "5",
            }
        )
        .maintenance
    )
    assert rhythm is not None and (rhythm.seconds, rhythm.commits, rhythm.aside) == (7.0, 5, True)


BASE: dict[str, Any] = {"delta.tables": "t", "delta.location": "/lake"}


@pytest.mark.parametrize(
    "key", ["icestream.maintenance.table.t.manifests.min-count", "icestream.maintenance.table.x"]
)
def test_keys_of_tables_that_mean_nothing_are_told(key: str) -> None:
    (problem,) = [one for one in DeltaPlugin().problems({**BASE, key: "1"}) if one.key == key]
    assert "is not of the form" in problem.message


class Killed(BaseException):
    """A maintenance that ends here and now."""


@pytest.mark.parametrize("seed", range(2))
def test_rows_places_and_proof_are_as_in_a_model_whatever_is_done_or_killed(world: World, seed: int) -> None:
    """Commits, merges of files, kills in the middle of these, vacuums, rows of others, log checkpoints."""
    chance = random.Random(seed)
    foreign = 0

    def kill(point: str) -> None:
        if point == wanted:
            raise Killed

    world.commit(5)
    for _ in range(25):
        act = chance.choice(
            ["commit", "commit", "commit", "compact", "kill", "vacuum", "theirs", "checkpoint"]
        )
        if act == "commit":
            world.commit(chance.randint(1, 20))
        elif act == "compact":
            world.maintainer().compact({"min-files": 2}, dry_run=False)
        elif act == "kill":
            wanted = chance.choice(["rewritten", "compacted"])
            with suppress(Killed):
                world.maintainer(kill).compact({"min-files": 2}, dry_run=False)
        elif act == "vacuum":
            world.maintainer().expire({}, dry_run=False)
            world.maintainer().orphans({}, dry_run=False)
        elif act == "theirs":
            write_deltalake(world.place, foreign_row(10_000 + foreign), mode="append")
            foreign += 1
        else:
            DeltaTable(world.place).create_checkpoint()
        world.check(foreign)
        assert world.ids() == [*range(world.next), *range(10_000, 10_000 + foreign)]
