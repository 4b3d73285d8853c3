"""The crash table of the design, rows 1 to 5 and 9: a process is killed there, and the next one goes on."""

from __future__ import annotations

import os
import signal

import pytest

from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.conftest import MakePipeline, StartManager
from tests.crashes.pipeline import Pipeline
from tests.crashes.processes import Fault, Halt


def data_files(pipeline: Pipeline) -> int:
    return len(list((pipeline.folder / "warehouse").rglob("*.parquet")))


# -- row 1: while staging --


@pytest.mark.parametrize("where", ["reading", "written"])
def test_a_manager_killed_while_its_batch_is_staged_leaves_no_row(
    where: str, pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(50_000), spoil=range(5))
    halt = Halt(where, pipeline.folder)
    first = start_manager(pipeline, halt=halt)
    first.wait_halted(halt)
    first.kill()
    assert "staged" not in first.lines()
    assert pipeline.table().current_snapshot() is None
    pipeline.drain(spark)
    pipeline.check()


# -- row 2: after staging, before any table commit --


def test_a_manager_killed_after_staging_leaves_files_that_nobody_references(
    pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    start_manager(pipeline, Fault("staged", "kill")).killed_itself()
    orphans = data_files(pipeline)
    assert orphans > 0
    assert pipeline.table().current_snapshot() is None
    pipeline.drain(spark)
    pipeline.check()
    assert data_files(pipeline) == orphans + len(pipeline.table().inspect.files())


# -- row 3: commit sent, answer lost --


def test_a_manager_killed_before_the_catalog_answers_leaves_the_decision_to_the_table(
    pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    killed = start_manager(pipeline, Fault("accepted", "kill"), on_spark=False)
    killed.killed_itself()
    assert "committed db.t" not in killed.lines()
    assert pipeline.ids() == pipeline.sent
    assert not pipeline.group_offsets()
    pipeline.produce(range(1000, 1100), spoil=range(5, 8))
    pipeline.drain(spark)
    pipeline.check()


def test_a_manager_killed_before_its_commit_reaches_the_catalog_starts_over(
    pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    start_manager(pipeline, Fault("sending", "kill"), on_spark=False).killed_itself()
    assert pipeline.table().current_snapshot() is None
    pipeline.drain(spark)
    pipeline.check()


def test_a_commit_of_unknown_outcome_is_looked_up_in_the_table_and_nothing_is_deleted(
    pipeline: Pipeline, start_manager: StartManager
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    manager = start_manager(pipeline, Fault("sending", "raise"), Fault("accepted", "raise"), on_spark=False)
    manager.wait_line("drained")
    lines = manager.lines()
    # The first did not land and was run again, the second landed and was recognised.
    assert lines.count("staged") == 2
    assert lines.count("sending") == 2
    assert lines.count("committed db.t") == 1
    pipeline.check()
    assert data_files(pipeline) == 2 * len(pipeline.table().inspect.files())


# -- row 4: table A committed, table B not --


def test_a_manager_killed_between_two_tables_gives_each_table_every_row_once(
    make_pipeline: MakePipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline = make_pipeline(("db.a", "db.b"))
    pipeline.produce(range(1000), spoil=range(5))
    start_manager(pipeline, Fault("committed db.a", "kill"), on_spark=False).killed_itself()
    assert pipeline.ids("db.a") == pipeline.sent
    assert not pipeline.ids("db.b")
    pipeline.produce(range(1000, 1500), spoil=range(5, 9))
    pipeline.drain(spark)
    pipeline.check()


def test_a_manager_killed_while_tables_are_committed_at_the_same_time_gives_each_every_row_once(
    make_pipeline: MakePipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    """Any of them may have the batch by then."""
    tables = ("db.a", "db.b", "db.c", "db.d")
    pipeline = make_pipeline(tables, **{"iceberg.control.commit.threads": "4"})
    pipeline.produce(range(1000), spoil=range(5))
    start_manager(pipeline, Fault("committed db.b", "kill"), on_spark=False).killed_itself()
    assert pipeline.ids("db.b") == pipeline.sent
    pipeline.produce(range(1000, 1500), spoil=range(5, 9))
    pipeline.drain(spark)
    pipeline.check()


def test_a_manager_killed_between_two_tables_in_a_later_batch_goes_on_from_the_table_that_is_behind(
    make_pipeline: MakePipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline = make_pipeline(("db.a", "db.b"))
    pipeline.produce(range(500), spoil=range(2))
    manager = start_manager(pipeline, Fault("committed db.a", "kill", turn=2), on_spark=False)
    manager.wait_line("drained")
    pipeline.produce(range(500, 1000), spoil=range(2, 5))
    manager.killed_itself()
    assert pipeline.ids("db.a").total() > pipeline.ids("db.b").total() == 500
    pipeline.drain(spark)
    pipeline.check()


# -- row 5: tables committed, Kafka transaction not --


@pytest.mark.parametrize("point", ["committed db.t", "closing", "closed"])
def test_a_manager_killed_around_its_kafka_transaction_owes_dead_letters_and_offsets_once(
    point: str, pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(20))
    start_manager(pipeline, Fault(point, "kill"), on_spark=False).killed_itself()
    assert pipeline.ids() == pipeline.sent
    staged: list[str] = []
    pipeline.drain(spark, staged.append)
    assert staged == [], "the batch must not be staged again"
    pipeline.check()
    pipeline.produce(range(1000, 1100), spoil=range(20, 25))
    pipeline.drain(spark)
    pipeline.check()


def test_a_kafka_transaction_of_unknown_outcome_is_settled_by_a_new_producer(
    pipeline: Pipeline, start_manager: StartManager
) -> None:
    pipeline.produce(range(1000), spoil=range(20))
    manager = start_manager(
        pipeline, Fault("closing", "raise"), Fault("closed", "raise", turn=2), on_spark=False
    )
    manager.wait_settled(pipeline)
    pipeline.produce(range(1000, 1100), spoil=range(20, 25))
    manager.wait_settled(pipeline)
    pipeline.check()
    assert manager.lines().count("closing") > manager.lines().count("closed") >= 2


# -- row 9: executor lost --


@pytest.mark.parametrize(("where", "master"), [("reading", "local[2]"), ("written", "local[2,4]")])
def test_a_python_worker_killed_in_the_middle_of_a_batch_writes_no_row_twice(
    where: str, master: str, pipeline: Pipeline, start_manager: StartManager
) -> None:
    pipeline.produce(range(50_000), spoil=range(5))
    halt = Halt(where, pipeline.folder)
    manager = start_manager(pipeline, halt=halt, spark={"spark.master": master})
    os.kill(manager.wait_halted(halt), signal.SIGKILL)
    manager.wait_line("drained")
    # Without attempts of Spark's own the batch is planned again; with them, the task runs twice in one batch.
    assert manager.lines().count("staged") == 1
    assert manager.lines().count("planned") == (2 if master == "local[2]" else 1)
    pipeline.check()
    if where == "written":
        assert data_files(pipeline) > len(pipeline.table().inspect.files())
