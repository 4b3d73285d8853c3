"""The real Kafka Connect as workers, our job manager as their coordinator, and `kill -9` for both."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.offsets import Partition
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.java_workers.running import JavaWorkers, Job, JobManager, wait_for
from tests.long_form import sized

pytestmark = [pytest.mark.slow, pytest.mark.crashes, pytest.mark.network]


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Job:
    return Job(broker.bootstrap, tmp_path / "job")


@pytest.fixture
def started() -> Iterator[list[JavaWorkers | JobManager]]:
    """What a test starts; it ends with the test."""
    processes: list[JavaWorkers | JobManager] = []
    yield processes
    for process in processes:
        process.kill()


@pytest.mark.parametrize("count", sized(30_000, 1_000_000))
def test_each_record_lands_once_whoever_dies_and_java_goes_on(
    job: Job, started: list[JavaWorkers | JobManager], count: int
) -> None:
    """The long form kills each of them three times, the short one once; then Java has the job again."""

    def workers(**more: str) -> JavaWorkers:
        started.append(running := JavaWorkers(job, job.connector(**more)))
        return running

    def manager() -> JobManager:
        started.append(running := JobManager(job))
        return running

    java, ours = workers(), manager()
    began = time.monotonic()
    for _ in range(2 if count > 100_000 else 0):
        job.produce(count // 5)
        job.wait_visible(job.produced // 2)
        ours.kill()
        ours = manager()
        job.produce(count // 5)
        job.wait_visible(job.produced // 2)
        java.kill()
        java = workers()
    job.produce((count - job.produced) // 2)
    job.wait_visible(job.produced // 2)
    ours.kill()
    ours = manager()
    job.produce(count - job.produced)
    job.wait_visible(patience=600)
    job.assert_exact()
    print(f"{count:,} records in {time.monotonic() - began:.0f} s")

    ours.stop()
    java.kill()
    _assert_summaries_as_javas(job)
    before = job.table().metadata.current_snapshot_id
    workers(**{"iceberg.control.commit.interval-ms": "2000", "iceberg.control.commit.timeout-ms": "5000"})
    job.produce(count // 10)
    job.wait_visible()
    job.assert_exact()
    assert job.table().metadata.current_snapshot_id != before
    assert "control-offsets" not in "".join(job.summaries()[-1])


@pytest.mark.long
def test_without_any_java_coordinator(job: Job, started: list[JavaWorkers | JobManager]) -> None:
    """A group that exists and has no members keeps Java's tasks from electing one; ours makes that group."""
    silent = f"{job.group}-silent"
    started.append(ours := JobManager(job, CONNECT_GROUP_ID=silent, SOURCE_GROUP_ID=job.group))
    topics = Topics({"bootstrap.servers": job.bootstrap})
    wait_for(lambda: topics.group_offsets(silent, [Partition(job.control, 0)]) or None, ours.text)
    job.produce(100_000)
    started.append(java := JavaWorkers(job, job.connector(**{"iceberg.connect.group-id": silent})))
    job.wait_visible()
    job.assert_exact()
    assert "cannot determine leader" in java.log.read_text()
    assert all(f"kafka.connect.offsets.{job.control}.{silent}" in summary for summary in job.summaries())


def _assert_summaries_as_javas(job: Job) -> None:
    key = f"kafka.connect.offsets.{job.control}.{job.group}"
    reached = -1
    for summary in job.summaries():
        offset = json.loads(summary[key])["0"]
        assert offset > reached, "the offsets of the control topic went backwards"
        reached = offset
        assert summary["kafka.connect.task-id"] == f"{job.name}-0"
        assert len(summary["kafka.connect.commit-id"]) == 36
    through = [one for summary in job.summaries() if (one := summary.get("kafka.connect.valid-through-ts"))]
    assert all(dt.datetime.fromisoformat(one).tzinfo is not None for one in through)
    assert through == sorted(through)
    group = Topics({"bootstrap.servers": job.bootstrap}).group_offsets(
        f"{job.group}-coord", [Partition(job.control, 0)]
    )
    assert next(at.next for at in group.values()) >= reached
