"""A sink of Java is taken over by ours without a pause: what its workers have written is committed, the rest
is read from the source, and nothing is both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from icestream.api.errors import SourceUnavailable
from icestream.embedded.kafka import Broker
from icestream.jobs.sinks.build import sink_manager
from icestream.jobs.sinks.manager import SinkManager
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from tests.java_workers.running import JavaWorkers, Job, wait_for
from tests.java_workers.written import data_written, send, until

OurSink = Callable[..., SinkManager]


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Job:
    return Job(broker.bootstrap, tmp_path / "job")


@pytest.fixture
def our_sink() -> Iterator[OurSink]:
    """The connector of a job on our side, without Spark."""
    made: list[SinkManager] = []

    def make(job: Job, **more: str) -> SinkManager:
        config = job.connector(**{"iceberg.control.commit.interval-ms": "100", **more})
        worker = {"bootstrap.servers": job.bootstrap}
        runner = InWorkerRunner(worker, RecordSettings.of(config))
        made.append(manager := sink_manager(job.name, config, worker, runner))
        return manager

    yield make
    for manager in made:
        manager.close()


def tick_until_visible(manager: SinkManager, job: Job, rows: int) -> None:
    def patiently() -> None:
        try:
            time.sleep(min(0.1, manager.tick()))
        except SourceUnavailable:
            time.sleep(0.5)

    until(patiently, lambda: job.visible() >= rows, most=600)


def ids_of(job: Job, partition_end: int) -> list[int]:
    """Of the records before this offset in every partition."""
    return list(range(partition_end * job.partitions))


ROUTED = {"iceberg.tables.route-field": "kind", "iceberg.table.db.t.route-regex": "k.*"}


@pytest.mark.parametrize("more", [{}, ROUTED], ids=["all", "routed"])
def test_what_workers_have_written_is_committed_and_the_rest_is_read(
    job: Job, our_sink: OurSink, more: dict[str, str]
) -> None:
    job.produce(300)
    # Java's workers have written and told of the first 40 records of each partition; nobody committed them.
    send(job, data_written(job.table(), ids_of(job, 20)), source=(20, 20, 20))
    send(job, data_written(job.table(), ids_of(job, 40)[60:]), source=(40, 40, 40))
    manager = our_sink(job, **more)
    tick_until_visible(manager, job, 300)
    job.assert_exact()
    key = f"kafka.connect.offsets.{job.control}.{job.group}"
    assert [key in summary for summary in job.summaries()][:2] == [True, False]


def test_a_job_that_died_after_it_had_committed_what_was_left_does_not_again(
    job: Job, our_sink: OurSink
) -> None:
    job.produce(30)
    send(job, data_written(job.table(), ids_of(job, 10)), source=(10, 10, 10))
    our_sink(job).tick()
    assert job.visible() == 30
    job.produce(30)
    tick_until_visible(our_sink(job), job, 60)
    job.assert_exact()


def test_nothing_begins_while_the_old_workers_live(job: Job, our_sink: OurSink) -> None:
    job.produce(30)
    send(job, data_written(job.table(), ids_of(job, 10)), source=(10, 10, 10))
    old = Consumer({"bootstrap.servers": job.bootstrap, "group.id": job.group})
    old.subscribe([job.name])
    wait_for(lambda: old.poll(0.1) or old.assignment() or None, "no assignment")
    manager = our_sink(job)
    with pytest.raises(SourceUnavailable, match="still has members: stop the workers"):
        manager.tick()
    old.close()
    tick_until_visible(manager, job, 30)
    job.assert_exact()


@pytest.mark.parametrize("more", [{}, ROUTED], ids=["all", "routed"])
def test_java_ours_java_ours(job: Job, our_sink: OurSink, more: dict[str, str]) -> None:
    """Our own offsets in the table are old by the time Java has had the job again."""
    job.produce(60)
    send(job, data_written(job.table(), ids_of(job, 10)), source=(10, 10, 10))
    ours = our_sink(job, **more)
    tick_until_visible(ours, job, 60)
    ours.close()
    job.produce(60)
    send(job, data_written(job.table(), ids_of(job, 30)[60:]), source=(30, 30, 30))
    job.produce(30)
    tick_until_visible(our_sink(job, **more), job, 150)
    job.assert_exact()
    key = f"kafka.connect.offsets.{job.control}.{job.group}"
    assert sum(key in summary for summary in job.summaries()) == 2, "its files were left"


@pytest.mark.long
@pytest.mark.network
def test_the_real_thing_dies_and_ours_goes_on_at_once(job: Job, our_sink: OurSink) -> None:
    commits = {"iceberg.control.commit.interval-ms": "3000", "iceberg.control.commit.timeout-ms": "5000"}
    job.produce(100_000)
    java = JavaWorkers(job, job.connector(**commits))
    try:
        job.wait_visible(1)
        job.produce(100_000)
    finally:
        java.kill()
    ours = our_sink(job)
    tick_until_visible(ours, job, 200_000)
    ours.close()
    job.assert_exact()
    java = JavaWorkers(job, job.connector(**commits))
    try:
        job.produce(100_000)
        job.wait_visible(200_001)
    finally:
        java.kill()
    job.produce(100_000)
    tick_until_visible(our_sink(job), job, 400_000)
    job.assert_exact()
