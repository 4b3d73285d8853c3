"""The JVM of a running worker dies: an outage like any other, which ends by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.crashes.conftest import MakePipeline
from tests.crashes.pipeline import Pipeline
from tests.crashes.processes import WorkerProcess

ROWS_A_BATCH = 500


@pytest.fixture
def pipeline(make_pipeline: MakePipeline) -> Pipeline:
    return make_pipeline(**{"icestream.commit.rows": str(ROWS_A_BATCH)})


@pytest.fixture
def worker(pipeline: Pipeline) -> Iterator[WorkerProcess]:
    pipeline.produce(range(4000), spoil=range(7))
    process = WorkerProcess(pipeline)
    yield process
    process.kill()


def in_mid_batch(worker: WorkerProcess) -> bool | None:
    """Some batches have landed, and another is under way."""
    planned, committed = worker.text.count("planned "), worker.text.count("committed ")
    return True if committed >= 2 and planned > committed else None


def test_a_worker_opens_spark_again_when_its_jvm_is_killed_in_mid_batch(
    pipeline: Pipeline, worker: WorkerProcess
) -> None:
    worker.wait(lambda: in_mid_batch(worker), "no batch under way")
    first = worker.jvm()
    assert first is not None
    os.kill(first, signal.SIGKILL)

    def told() -> str | None:
        message = str(worker.get("/health")["message"])
        return message if "Spark is away since" in message else None

    worker.wait(told, "/health does not tell of it")
    assert worker.state(pipeline) == "RUNNING", "a job waits for Spark as for any other"
    pipeline.produce(range(4000, 4300))
    worker.wait_settled(pipeline)
    pipeline.check()
    assert worker.jvm() not in (None, first)
    assert worker.state(pipeline) == "RUNNING"
    assert worker.get("/health")["status"] == "healthy"


@pytest.mark.long
def test_an_idle_worker_has_its_spark_again_before_the_next_record(
    pipeline: Pipeline, worker: WorkerProcess
) -> None:
    worker.wait_settled(pipeline)
    first = worker.jvm()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    worker.wait_text("Spark is there again")
    pipeline.produce(range(4000, 4010))
    worker.wait_settled(pipeline)
    pipeline.check()
    assert worker.state(pipeline) == "RUNNING"
