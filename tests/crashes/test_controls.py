"""Pause, resume, stop, restart and delete amid batches: no record is lost or repeated."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from icestream.api.status import State
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.pipeline import PATIENCE, Pipeline
from tests.crashes.processes import wait_for
from tests.running import RunningConnector, connector_starter

SEED = 20261115
TURNS = [pytest.param(4, id="short"), pytest.param(16, id="long", marks=pytest.mark.long)]


class Load:
    """Produces in the background: 1,000 records at a time, some of them broken."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        first = 0
        while not self._ended.wait(0.05):
            self._pipeline.produce(range(first, first + 1000), spoil=range(first // 500, first // 500 + 2))
            first += 1000

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture
def load(pipeline: Pipeline) -> Iterator[Load]:
    load = Load(pipeline)
    yield load
    load.end()


def wait_batches(job: RunningConnector, more: int) -> None:
    goal = job.status().progress.batches + more
    wait_for(
        lambda: True if job.status().progress.batches >= goal else None, PATIENCE, lambda: f"{job.status()}"
    )


def snapshots(pipeline: Pipeline) -> int:
    return len(pipeline.table().snapshots())


def last_commit(pipeline: Pipeline) -> int:
    """How many commits there are once the one that was under way has ended: none comes for a while."""
    found = snapshots(pipeline)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(1)
        found, before = snapshots(pipeline), found
        if found == before:
            return found
    raise AssertionError("it commits on and on")


@pytest.mark.parametrize("turns", TURNS)
def test_pause_and_resume_in_the_middle_of_batches_lose_and_repeat_nothing(
    pipeline: Pipeline, spark: SparkPlane, load: Load, turns: int
) -> None:
    print("seed", SEED)
    chance = random.Random(SEED)
    job = connector_starter(pipeline.worker, spark)(pipeline.name, pipeline.config, paused=False)
    wait_batches(job, 1)
    for _ in range(turns):
        time.sleep(chance.uniform(0, 1))
        job.pause()
        assert job.status().state is State.PAUSED
        # At most the commit that was under way: a job that went on would have made many.
        last_commit(pipeline)
        job.resume()
        assert job.status().state is State.RUNNING
        wait_batches(job, 1)
    load.end()
    finish(pipeline, job)


@pytest.mark.parametrize("turns", TURNS)
def test_stop_restart_and_delete_in_the_middle_of_batches_lose_and_repeat_nothing(
    pipeline: Pipeline, spark: SparkPlane, load: Load, turns: int
) -> None:
    print("seed", SEED)
    chance = random.Random(SEED)
    start = connector_starter(pipeline.worker, spark)
    for _ in range(turns):
        job = start(pipeline.name, pipeline.config, paused=False)
        time.sleep(chance.uniform(0, 2))
        job.stop()
        before = snapshots(pipeline)
        time.sleep(0.3)
        assert snapshots(pipeline) == before, "a stopped job commits nothing"
    load.end()
    finish(pipeline, start(pipeline.name, pipeline.config, paused=False))


def test_a_job_that_starts_paused_reads_nothing_until_it_is_resumed(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    pipeline.produce(range(100))
    job = connector_starter(pipeline.worker, spark)(pipeline.name, pipeline.config, paused=True)
    time.sleep(1)
    assert job.status().state is State.PAUSED
    assert pipeline.table().current_snapshot() is None
    job.resume()
    finish(pipeline, job)


def finish(pipeline: Pipeline, job: RunningConnector) -> None:
    ends = pipeline.topics.ends(pipeline.partitions)
    wait_for(lambda: True if pipeline.group_offsets() == ends else None, PATIENCE, lambda: f"{job.status()}")
    job.stop()
    pipeline.check()
