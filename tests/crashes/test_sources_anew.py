"""Invariant 9 of the design: a topic or cluster that is not the one the table knows stops the job."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from icestream.api.errors import BadOffsets, SourceRecreated
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Offsets
from icestream.embedded import kafka
from icestream.embedded.ports import free_port
from icestream.jobs.offsets.sink_offsets import SinkOffsets
from icestream.kafka.group_admin import set_group_offsets
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.pipeline import PARTITIONS, Pipeline, drain
from tests.crashes.processes import wait_for
from tests.crashes.test_moved_offsets import Hand, assert_good, manager, run, verdicts


def refuses(pipeline: Pipeline, spark: SparkPlane, match: str) -> None:
    """The job fails with an error that says so, and commits nothing."""
    before = pipeline.table().current_snapshot()
    with pytest.raises(SourceRecreated, match=match):
        pipeline.drain(spark)
    assert pipeline.table().current_snapshot() == before


def remove_before(pipeline: Pipeline, offset: int, numbers: Iterable[int] = range(PARTITIONS)) -> None:
    """What retention does."""
    admin = AdminClient({"bootstrap.servers": pipeline.bootstrap})
    wanted = [TopicPartition(pipeline.name, number, offset) for number in numbers]
    for future in admin.delete_records(wanted).values():
        future.result(60)


def test_a_topic_deleted_and_created_again_stops_the_job(pipeline: Pipeline, spark: SparkPlane) -> None:
    pipeline.produce(range(300))
    pipeline.drain(spark)
    create_anew(pipeline)
    pipeline.produce(range(300, 1000))
    refuses(pipeline, spark, "deleted and created again")


def create_anew(topic: Pipeline) -> None:
    topic.topics.delete(topic.name)
    wait_for(lambda: topic.topics.create(topic.name, PARTITIONS, 1) or None, 30, lambda: "not created")


def entries(topic: Pipeline, numbers: Iterable[int] = range(PARTITIONS)) -> list[OffsetEntry]:
    """All to their beginning."""
    return [OffsetEntry({"kafka_topic": topic.name, "kafka_partition": number}, None) for number in numbers]


@pytest.mark.parametrize("setting", ["topics.regex", "topics"])
def test_a_topic_that_was_not_read_for_a_while_and_was_created_anew_stops_the_job(
    setting: str, pipeline: Pipeline
) -> None:
    """It grows past the old position: by offsets alone nobody would know."""
    other = Pipeline(pipeline.bootstrap, pipeline.folder, f"{pipeline.name}-other")
    other.topics.create(other.name, PARTITIONS, 1)
    both = {
        "topics.regex": {"topics": "", "topics.regex": f"{pipeline.name}(-other)?"},
        "topics": {"topics": f"{pipeline.name},{other.name}"},
    }[setting]
    pipeline.options = both
    pipeline.produce(range(30))
    other.produce(range(1000, 1300))
    run(pipeline)
    other.topics.delete(other.name)
    wait_for(lambda: other.name not in other.topics.names() or None, 30, lambda: "not deleted")
    if setting == "topics":
        pipeline.options = {}
    pipeline.produce(range(30, 60))
    run(pipeline)
    assert pipeline.ids().total() == 360
    wait_for(lambda: other.topics.create(other.name, PARTITIONS, 1) or None, 30, lambda: "not created")
    other.produce(range(2000, 2900))
    pipeline.options = both
    with pytest.raises(SourceRecreated, match=f"topic '{other.name}' was deleted and created again"):
        run(pipeline)
    assert pipeline.ids().total() == 360
    assert [verdict.problems for verdict in verdicts(pipeline)] == [
        [f"topic '{other.name}' was deleted and created again: what it has now was not read"]
    ]
    # The way out: only this topic, and all of it.
    offsets = SinkOffsets(pipeline.worker)
    with pytest.raises(BadOffsets, match="Name all its partitions at once"):
        offsets.alter(pipeline.name, pipeline.config, entries(other, [0]))
    offsets.alter(pipeline.name, pipeline.config, entries(other))
    run(pipeline)
    assert pipeline.ids() == pipeline.sent + other.sent
    assert_good(pipeline)


def test_a_topic_that_is_taken_out_and_added_again_goes_on_where_it_was(pipeline: Pipeline) -> None:
    other = Pipeline(pipeline.bootstrap, pipeline.folder, f"{pipeline.name}-other")
    other.topics.create(other.name, PARTITIONS, 1)
    both = {"topics": f"{pipeline.name},{other.name}"}
    for options in (both, {}, both):
        pipeline.options = options
        pipeline.produce(range(pipeline.sent.total(), pipeline.sent.total() + 30))
        other.produce(range(1000 + other.sent.total(), 1000 + other.sent.total() + 30))
        run(pipeline)
    assert pipeline.ids() == pipeline.sent + other.sent
    assert_good(pipeline)


def test_a_topic_created_anew_while_a_batch_is_read_is_not_committed(pipeline: Pipeline) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.produce(range(300, 600))
    seen: list[str] = []

    def meanwhile(point: str) -> None:
        if point == "planned" and not seen:
            seen.append(point)
            create_anew(pipeline)
            pipeline.produce(range(1000, 2000))

    job = manager(pipeline, meanwhile)
    with pytest.raises(SourceRecreated, match="created again"):
        drain(job)
    job.close()
    assert seen == ["planned"]
    assert pipeline.ids() == Counter(range(300))


@pytest.mark.parametrize(
    ("at", "kept_from", "why"), [(500, 0, "ends at offset 100"), (10, 40, "begins at offset 40")]
)
def test_a_group_from_before_that_stands_where_the_topic_has_nothing_stops_the_job(
    at: int, kept_from: int, why: str, pipeline: Pipeline
) -> None:
    pipeline.produce(range(300))
    if kept_from:
        remove_before(pipeline, kept_from)
    left = Offsets({pipeline.partitions[0]: 60, pipeline.partitions[1]: at, pipeline.partitions[2]: 60})
    set_group_offsets({"bootstrap.servers": pipeline.bootstrap}, f"connect-{pipeline.name}", left)
    with pytest.raises(
        SourceRecreated, match=f"{why}, but consumer group 'connect-{pipeline.name}' goes on at {at}"
    ):
        run(pipeline)
    assert pipeline.table().current_snapshot() is None
    SinkOffsets(pipeline.worker).alter(pipeline.name, pipeline.config, entries(pipeline, [1]))
    run(pipeline)
    assert pipeline.ids() == Counter(n for n in range(300) if n // 3 >= (kept_from if n % 3 == 1 else 60))


def test_after_retention_only_the_partition_that_lost_records_is_read_again(pipeline: Pipeline) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.produce(range(300, 900))
    remove_before(pipeline, 200, [1])
    with pytest.raises(SourceRecreated, match=f"offsets set {pipeline.name} {pipeline.name}:1=beginning`"):
        run(pipeline)
    SinkOffsets(pipeline.worker).alter(pipeline.name, pipeline.config, entries(pipeline, [1]))
    run(pipeline)
    assert pipeline.ids() == Counter(n for n in range(900) if n % 3 != 1 or not 100 <= n // 3 < 200)
    assert_good(pipeline)


def test_retention_that_removed_unread_records_stops_the_job(pipeline: Pipeline, spark: SparkPlane) -> None:
    pipeline.produce(range(300))
    pipeline.drain(spark)
    pipeline.produce(range(300, 900))
    remove_before(pipeline, 200)
    refuses(pipeline, spark, "begins at offset 200")


def test_retention_that_removed_only_what_was_read_stops_nothing(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    pipeline.produce(range(300), spoil=range(3))
    pipeline.drain(spark)
    remove_before(pipeline, 101)
    pipeline.produce(range(300, 900))
    pipeline.drain(spark)
    pipeline.check()


def test_another_cluster_and_one_restored_from_an_old_backup_stop_the_job(
    make_other: Path, tmp_path: Path, pipeline: Pipeline, spark: SparkPlane
) -> None:
    data = make_other
    # Not the usual port: others may take it while the broker is away.
    with kafka.running_broker(data, free_port()) as other:
        moved = Pipeline(other.bootstrap, tmp_path / "moved", "moved")
        moved.folder.mkdir()
        moved.create()
        moved.produce(range(300))
        moved.drain(spark)
        pipeline.topics.create("moved", PARTITIONS, 1)
        elsewhere = Pipeline(pipeline.bootstrap, moved.folder, "moved")
        elsewhere.produce(range(900))
        refuses(elsewhere, spark, "cluster")
    backup = tmp_path / "backup"
    shutil.copytree(data, backup)
    with kafka.running_broker(data, other.port):
        moved.produce(range(300, 900))
        moved.drain(spark)
        moved.check()
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    with kafka.running_broker(data, other.port):
        moved.produce(range(900, 910))
        refuses(moved, spark, "ends at offset")


@pytest.fixture
def make_other(tmp_path: Path) -> Path:
    return tmp_path / "other"


def test_letters_of_records_that_are_gone_are_given_up_by_hand_and_all_others_are_published(
    pipeline: Pipeline,
) -> None:
    """The table has the batch, its transaction is missing, and retention has removed some of its records."""
    pipeline.produce(range(300), spoil=range(9))

    class Gone(Exception):
        pass

    def leave(point: str) -> None:
        if point == "committed db.t":
            raise Gone

    first = manager(pipeline, leave)
    with pytest.raises(Gone):
        first.tick()
    first.close()
    remove_before(pipeline, 50, [0])
    with pytest.raises(SourceRecreated, match=rf"offsets set {pipeline.name} {pipeline.name}:0=103`"):
        run(pipeline)
    Hand(pipeline).alter({0: 103})
    pipeline.produce(range(300, 330))
    run(pipeline)
    pipeline.check()
