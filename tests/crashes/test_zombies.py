"""The crash table of the design, row 6: two managers of one job are alive; the older must not commit."""

from __future__ import annotations

import pytest

from icestream.api.errors import Fenced
from icestream.jobs.sinks import idle
from icestream.jobs.worker_resources import WorkerResources
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.conftest import StartManager
from tests.crashes.pipeline import Pipeline, drain
from tests.crashes.processes import Fault


@pytest.mark.parametrize("point", ["staged", "sending"])
def test_a_manager_that_slept_through_its_commit_is_refused_by_the_table(
    point: str, pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    zombie = start_manager(pipeline, Fault(point, "stop"), on_spark=False)
    zombie.wait_stopped()
    pipeline.produce(range(1000, 1200), spoil=range(5, 8))
    pipeline.drain(spark)
    pipeline.check()
    snapshots = len(pipeline.table().snapshots())
    zombie.go_on()
    assert zombie.ended() == 3, zombie.text
    assert zombie.lines()[-1].startswith("failed Fenced")
    assert len(pipeline.table().snapshots()) == snapshots
    pipeline.check()


@pytest.mark.parametrize("point", ["committed db.t", "closing"])
def test_a_manager_that_slept_through_its_kafka_transaction_is_fenced_by_kafka(
    point: str, pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(20))
    zombie = start_manager(pipeline, Fault(point, "stop"), on_spark=False)
    zombie.wait_stopped()
    pipeline.drain(spark)
    pipeline.check()
    zombie.go_on()
    assert zombie.ended() == 3, zombie.text
    assert zombie.lines()[-1].startswith("failed Fenced")
    pipeline.check()


def test_a_manager_that_wakes_before_its_successor_commits_lands_its_batch_and_ends(
    pipeline: Pipeline, start_manager: StartManager, spark: SparkPlane
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    zombie = start_manager(pipeline, Fault("sending", "stop"), on_spark=False)
    zombie.wait_stopped()
    points: list[str] = []

    def wake_the_zombie(point: str) -> None:
        points.append(point)
        if points == ["planned", "staged"]:
            zombie.go_on()
            assert zombie.ended() == 3, zombie.text

    pipeline.drain(spark, wake_the_zombie)
    assert points == ["planned", "staged"], "its commit was refused, and nothing was left to stage"
    assert "committed db.t" in zombie.lines()
    pipeline.check()


def test_an_older_manager_that_never_slept_ends_at_its_next_batch(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    pipeline.produce(range(300), spoil=range(2))
    old, new = pipeline.manager(spark), pipeline.manager(spark)
    drain(old)
    drain(new)
    pipeline.produce(range(300, 600), spoil=range(2, 5))
    with pytest.raises(Fenced):
        drain(old)
    old.close()
    drain(new)
    new.close()
    pipeline.check()


@pytest.fixture
def rests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager of a worker closes its producer as soon as nothing waits."""
    monkeypatch.setattr(idle, "_PUBLISHER_SECONDS", -1.0)


@pytest.mark.usefixtures("rests_at_once")
def test_a_manager_that_rested_reads_the_next_records_once(pipeline: Pipeline, spark: SparkPlane) -> None:
    manager = pipeline.manager(spark, shared=WorkerResources())
    for first in (0, 300, 600):
        pipeline.produce(range(first, first + 300), spoil=range(first, first + 2))
        drain(manager)
        pipeline.check()
    manager.close()


@pytest.mark.usefixtures("rests_at_once")
def test_a_manager_that_rested_gives_way_to_one_that_worked_meanwhile(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    old = pipeline.manager(spark, shared=WorkerResources())
    pipeline.produce(range(300), spoil=range(2))
    drain(old)
    pipeline.produce(range(300, 600), spoil=range(2, 4))
    pipeline.drain(spark)
    pipeline.produce(range(600, 900), spoil=range(4, 6))
    with pytest.raises(Fenced, match="it has published batch"):
        drain(old)
    old.close()
    pipeline.drain(spark)
    pipeline.check()


@pytest.mark.usefixtures("rests_at_once")
def test_of_two_managers_that_rest_the_first_to_work_goes_on(pipeline: Pipeline, spark: SparkPlane) -> None:
    old, new = (
        pipeline.manager(spark, shared=WorkerResources()),
        pipeline.manager(spark, shared=WorkerResources()),
    )
    pipeline.produce(range(300), spoil=range(2))
    drain(old)
    drain(new)
    pipeline.produce(range(300, 600), spoil=range(2, 4))
    drain(old)
    pipeline.check()
    pipeline.produce(range(600, 900), spoil=range(4, 6))
    with pytest.raises(Fenced):
        drain(new)
    new.close()
    drain(old)
    old.close()
    pipeline.check()
