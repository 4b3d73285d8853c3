"""Invariant 9 of the design: a topic or cluster that is not the one the table knows stops the job."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from icestream.api.errors import SourceRecreated
from icestream.embedded import kafka
from icestream.embedded.ports import free_port
from icestream.pipeline.run import SparkPlane
from tests.crashes.pipeline import PARTITIONS, Pipeline
from tests.crashes.processes import wait_for


def refuses(pipeline: Pipeline, spark: SparkPlane, match: str) -> None:
    """The job fails with an error that says so, and commits nothing."""
    before = pipeline.table().current_snapshot()
    with pytest.raises(SourceRecreated, match=match):
        pipeline.drain(spark)
    assert pipeline.table().current_snapshot() == before


def remove_before(pipeline: Pipeline, offset: int) -> None:
    """What retention does."""
    admin = AdminClient({"bootstrap.servers": pipeline.bootstrap})
    wanted = [TopicPartition(pipeline.name, number, offset) for number in range(PARTITIONS)]
    for future in admin.delete_records(wanted).values():
        future.result(20)


def test_a_topic_deleted_and_created_again_stops_the_job(pipeline: Pipeline, spark: SparkPlane) -> None:
    pipeline.produce(range(300))
    pipeline.drain(spark)
    pipeline.topics.delete(pipeline.name)
    wait_for(lambda: pipeline.topics.create(pipeline.name, PARTITIONS, 1) or None, 30, lambda: "not created")
    pipeline.produce(range(300, 1000))
    refuses(pipeline, spark, "deleted and created again")


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
