"""The job manager against a real broker and a real catalog; what workers say is written by the test."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.transforms import IdentityTransform

from icestream.api.errors import FatalError, Fenced
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.iceberg.coordinator.events import (
    CommitComplete,
    CommitToTable,
    Event,
    StartCommit,
    decoded,
)
from icestream.connectors.iceberg.coordinator.job_manager import IcebergJobConfig, IcebergJobManager
from icestream.embedded.kafka import Broker
from icestream.kafka.group_admin import set_group_offsets
from icestream.kafka.topic_follower import TopicFollower
from icestream.kafka.topics import Topics
from tests.java_workers.running import Job, config_of, environment_of, spawn_with
from tests.java_workers.written import data_written, files_of, ids_in, send, until

MakeManager = Callable[..., IcebergJobManager]


@pytest.fixture
def make_job(broker: Broker, tmp_path: Path) -> Callable[..., Job]:
    return lambda **more: Job(broker.bootstrap, tmp_path / "job", **more)


@pytest.fixture
def make_manager() -> Iterator[MakeManager]:
    made: list[IcebergJobManager] = []

    def make(job: Job, reached: Callable[[str], None] = lambda point: None, **more: Any) -> IcebergJobManager:
        manager = IcebergJobManager(IcebergJobConfig(**config_of(job, **more)), reached=reached)
        made.append(manager)
        return manager

    yield make
    for manager in made:
        manager.close()


def coordinator_offsets(job: Job) -> dict[int, int]:
    partitions = [Partition(job.control, number) for number in range(job.control_partitions)]
    found = Topics({"bootstrap.servers": job.bootstrap}).group_offsets(f"{job.group}-coord", partitions)
    return {partition.number: at.next for partition, at in found.items()}


def told(job: Job) -> list[Event]:
    follower = TopicFollower({"bootstrap.servers": job.bootstrap}, job.control, {0: 0})
    ends = Topics({"bootstrap.servers": job.bootstrap}).ends([Partition(job.control, 0)])
    found = []
    while follower.positions[0] < ends[Partition(job.control, 0)]:
        found += [decoded(one.value) for one in follower.read(1.0) if one.value]
    follower.close()
    return [one for one in found if one is not None]


def test_what_was_left_in_the_control_topic_is_committed_once(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job(tables=("db.a", "db.b", "db.c"), control_partitions=3)
    a, b = job.table("db.a"), job.table("db.b")
    first = data_written(a, range(10))
    send(job, first, data_written(b, range(5)), partition=0)
    # The same files again, as after a worker that did not know whether its transaction had landed.
    send(job, first, data_written(a, range(10, 20)), partition=2)
    send(job, data_written(b, range(100, 110)), group="connect-somebody-else", partition=1)
    manager = make_manager(job)
    manager.tick()
    assert ids_in(job.table("db.a")) == list(range(20))
    assert ids_in(job.table("db.b")) == list(range(5))
    assert job.table("db.c").current_snapshot() is None
    key = f"kafka.connect.offsets.{job.control}.{job.group}"
    floors = [json.loads(job.summaries(name)[-1][key]) for name in ("db.a", "db.b")]
    assert floors[0] == floors[1] and set(floors[0]) == {"0", "1", "2"}
    assert coordinator_offsets(job) == {int(number): at for number, at in floors[0].items()}
    # Whoever begins again, even from the beginning, finds that the tables have it all.
    set_group_offsets(
        {"bootstrap.servers": job.bootstrap},
        f"{job.group}-coord",
        Offsets({Partition(job.control, number): 0 for number in range(3)}),
    )
    again = make_manager(job)
    again.tick()
    assert len(job.table("db.a").metadata.snapshots) == 1
    assert manager.progress.rows == 25 and again.progress.rows == 0


def test_the_control_topic_hears_of_a_commit(make_job: Callable[..., Job], make_manager: MakeManager) -> None:
    job = make_job()
    send(job, data_written(job.table(), range(3)))
    make_manager(job).tick()
    to_table, done = [one.payload for one in told(job)][-2:]
    assert isinstance(to_table, CommitToTable) and isinstance(done, CommitComplete)
    assert to_table.snapshot_id == job.table().metadata.current_snapshot_id
    assert to_table.table.uuid == job.table().metadata.table_uuid
    assert str(done.commit_id) == job.summaries()[-1]["kafka.connect.commit-id"]


def test_a_table_that_is_missing_keeps_its_files_and_holds_up_nobody(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job(tables=("db.a", "db.b"))
    b = job.table("db.b")
    send(job, data_written(b, range(5)), data_written(job.table("db.a"), range(7)))
    job.catalog.rename_table("db.b", "db.away")
    manager = make_manager(job, commit_interval=0.1)
    manager.tick()
    assert ids_in(job.table("db.a")) == list(range(7))
    (warning,) = manager.progress.warnings
    assert "'db.b' is not in catalog" in warning
    assert coordinator_offsets(job) == {0: 0}, "what is not in its table must be read again"
    job.catalog.rename_table("db.away", "db.b")
    again = make_manager(job, commit_interval=0.1)
    until(again.tick, lambda: job.visible("db.b") == 5)
    assert ids_in(job.table("db.b")) == list(range(5))
    assert ids_in(job.table("db.a")) == list(range(7))
    assert again.progress.warnings == () and coordinator_offsets(job)[0] > 2


def test_a_table_that_was_created_again_gets_nothing_of_the_old_one(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job()
    old = job.table()
    send(job, data_written(old, range(5)))
    job.catalog.drop_table("db.t")
    job.catalog.create_table("db.t", old.schema(), partition_spec=old.spec())
    manager = make_manager(job)
    manager.tick()
    assert "is not the one that its files were written for" in manager.progress.warnings[0]
    assert job.table().current_snapshot() is None and coordinator_offsets(job) == {0: 0}


@pytest.mark.parametrize("what", ["delete file", "partition spec"])
def test_what_cannot_be_committed_stops_the_job_before_any_commit(
    make_job: Callable[..., Job], make_manager: MakeManager, what: str
) -> None:
    job = make_job(tables=("db.a", "db.b"))
    a, b = job.table("db.a"), job.table("db.b")
    if what == "delete file":
        (file, *_) = files_of(b, range(3))
        send(job, data_written(a, range(3)), data_written(b, [], delete_files=(replace(file, content=2),)))
    else:
        send(job, data_written(a, range(3)), data_written(b, range(3)))
        with b.update_spec() as update:
            update.remove_field("kind")
            update.add_field("text", IdentityTransform(), "text")
    with pytest.raises(FatalError, match=f"{what}.*nothing was committed; hand the job back"):
        make_manager(job).tick()
    assert job.table("db.a").current_snapshot() is None
    assert coordinator_offsets(job) == {}


def test_the_older_of_two_managers_ends(make_job: Callable[..., Job], make_manager: MakeManager) -> None:
    job = make_job()
    older, newer = make_manager(job, commit_interval=0.1), make_manager(job, commit_interval=0.1)
    older.tick()
    send(job, data_written(job.table(), range(5)))
    newer.tick()
    with pytest.raises(Fenced):
        for _ in range(30):
            older.tick()
    assert ids_in(job.table()) == list(range(5))


def test_a_manager_that_slept_through_its_commit_is_refused_by_the_table(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job()
    send(job, data_written(job.table(), range(5)))

    def overtake(point: str) -> None:
        if point == "prepared" and job.table().current_snapshot() is None:
            make_manager(job).tick()

    with pytest.raises(Fenced):
        make_manager(job, reached=overtake).tick()
    assert ids_in(job.table()) == list(range(5))


def test_without_transactions_the_tables_alone_keep_files_from_landing_twice(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job()
    send(job, data_written(job.table(), range(5)))

    def overtake(point: str) -> None:
        if point == "prepared" and job.table().current_snapshot() is None:
            make_manager(job, transactions=False).tick()

    manager = make_manager(job, reached=overtake, transactions=False)
    manager.tick()
    assert ids_in(job.table()) == list(range(5))
    assert coordinator_offsets(job)[0] > 0 and manager.progress.rows == 0


def test_files_go_to_the_branch_of_their_table(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job(tables=("db.a", "db.b"))
    branches = ("audit", "db.b=main")
    send(job, data_written(job.table("db.a"), range(3)), data_written(job.table("db.b"), range(4)))
    manager = make_manager(job, commit_branches=branches)
    manager.tick()
    assert "its branch 'audit' cannot begin: create the branch" in manager.progress.warnings[0]
    a = job.table("db.a")
    a.append(pa.Table.from_pylist([], schema=schema_to_pyarrow(a.schema())))
    head = job.table("db.a").metadata.current_snapshot_id
    assert head is not None
    job.table("db.a").manage_snapshots().create_branch(head, "audit").commit()
    send(job, data_written(a, range(3, 6)))
    make_manager(job, commit_branches=branches).tick()
    a = job.table("db.a")
    assert a.metadata.current_snapshot_id == head
    rows = a.scan(snapshot_id=a.metadata.refs["audit"].snapshot_id).to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(6))
    assert ids_in(job.table("db.b")) == list(range(4))


def test_events_that_retention_took_before_they_were_read_stop_the_job(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job()
    send(job, data_written(job.table(), range(5)))
    settings = {"bootstrap.servers": job.bootstrap}
    set_group_offsets(settings, f"{job.group}-coord", Offsets({Partition(job.control, 0): 0}))
    admin = AdminClient(settings)
    for future in admin.delete_records([TopicPartition(job.control, 0, 1)]).values():
        future.result()
    with pytest.raises(FatalError, match=r"events 0 to 0 of .* were removed by the topic's retention"):
        make_manager(job).tick()


def test_a_control_topic_that_was_created_again_stops_the_job(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job()
    for at in range(3):
        send(job, data_written(job.table(), range(at, at + 1)))
    make_manager(job).tick()
    topics = Topics({"bootstrap.servers": job.bootstrap})
    topics.delete(job.control)
    until(lambda: None, lambda: job.control not in topics.describe([job.control]), most=100_000)
    topics.create(job.control, 1, 1)
    send(job, data_written(job.table(), range(50, 55)))
    with pytest.raises(FatalError, match="was deleted and created again"):
        make_manager(job).tick()


def test_a_record_that_is_no_event_stops_the_job_and_is_named(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    job = make_job()
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": job.bootstrap})
    producer.produce(job.control, b"hello")
    producer.flush(30)
    with pytest.raises(FatalError, match=rf"record 0 of partition 0 of topic '{job.control}' is no event"):
        make_manager(job).tick()


def test_without_a_group_of_workers_they_are_asked_all_the_same(
    make_job: Callable[..., Job], make_manager: MakeManager
) -> None:
    """Where the group keeps Java's coordinator from starting, it has no members; see docs/job-manager.md."""
    job = make_job()
    manager = make_manager(job, commit_interval=0.5, source_group_id=f"{job.group}-of-workers")
    until(manager.tick, lambda: any(isinstance(one.payload, StartCommit) for one in told(job)))
    (asked, *_) = [one.payload for one in told(job)]
    send(job, data_written(job.table(), range(5), commit_id=uuid.uuid4()))
    until(manager.tick, lambda: job.visible() == 5)
    assert str(asked.commit_id) == job.summaries()[-1]["kafka.connect.commit-id"]
    kept = Topics({"bootstrap.servers": job.bootstrap}).group_offsets(job.group, [Partition(job.control, 0)])
    assert kept, "a group without any offset does not exist, and Java's tasks die of that"


@pytest.mark.crashes
def test_a_manager_that_is_killed_anywhere_loses_and_repeats_nothing(
    broker: Broker, tmp_path: Path, make_manager: MakeManager
) -> None:
    """At each point between two steps; all of them at the same time, each with a job of its own."""
    jobs = {
        point: Job(broker.bootstrap, tmp_path / point, tables=("db.a", "db.b"))
        for point in ("opened", "prepared", "committed", "told", "started")
    }
    killed = {}
    for point, job in jobs.items():
        send(job, data_written(job.table("db.a"), range(5)), data_written(job.table("db.b"), range(3)))
        command = [sys.executable, "-m", "tests.java_workers.killed_manager", point]
        killed[point] = spawn_with(environment_of(job), command, tmp_path / f"{point}.log")
    for point, job in jobs.items():
        assert killed[point].wait(120), (tmp_path / f"{point}.log").read_text()
        assert (tmp_path / f"{point}.log").read_text() == "", point
        landed = point in ("committed", "told", "started")
        assert (job.visible("db.a"), job.visible("db.b")) == ((5, 3) if landed else (0, 0)), point
        send(job, data_written(job.table("db.b"), range(3, 6)))
        make_manager(job).tick()
        assert ids_in(job.table("db.a")) == list(range(5)), point
        assert ids_in(job.table("db.b")) == list(range(6)), point
