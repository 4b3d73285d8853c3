"""More dead letters than one transaction holds: several carry them, and each letter is there once whatever
dies in between. Without Spark but for the long test."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading

import pytest
from confluent_kafka import Producer

from icestream.api.errors import Cancelled
from icestream.kafka import transactions
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.conftest import MakePipeline
from tests.crashes.faults import Fault
from tests.crashes.pipeline import Pipeline, drain
from tests.crashes.processes import ROOT
from tests.crashes.quotas import limit_producer
from tests.crashes.without_spark import manager, runner_of


def produce_bad(pipeline: Pipeline, count: int, size: int) -> None:
    """Bad records that are as long as this, and all different."""
    producer = Producer(
        {"bootstrap.servers": pipeline.bootstrap, "enable.idempotence": True, "linger.ms": 20}
    )
    for number in range(count):
        value = b'{"id":%d,"bad":"' % number + b"x" * size
        pipeline.send(producer, number, value)
        pipeline.spoiled[value] += 1
    assert producer.flush(120) == 0
    producer.close()


def limited(make_pipeline: MakePipeline, bytes_a_second: int) -> Pipeline:
    pipeline = make_pipeline()
    pipeline.options = {"producer.override.client.id": pipeline.name}
    limit_producer(pipeline.bootstrap, pipeline.name, bytes_a_second)
    return pipeline


def test_a_quota_slows_dead_letters_down_and_stops_none(
    make_pipeline: MakePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half a minute of letters: more than a flush waits for. A broker may take all of them before it slows
    # down, so the share of a part is short.
    monkeypatch.setattr(transactions, "_SHARE", 30_000)
    pipeline = limited(make_pipeline, 96 * 1024)
    pipeline.produce(range(300))
    produce_bad(pipeline, 3_000, 900)
    points: list[str] = []
    job = manager(pipeline, points.append)
    job.tick()
    job.close()
    assert points.count("committed db.t") == points.count("published") == 1
    assert "published a part" in points
    pipeline.check()


@pytest.mark.long
def test_fifty_thousand_dead_letters_under_a_quota_of_a_mebibyte(
    make_pipeline: MakePipeline, spark: SparkPlane
) -> None:
    pipeline = limited(make_pipeline, 1024 * 1024)
    pipeline.produce(range(5_000))
    produce_bad(pipeline, 50_000, 2_000)
    points: list[str] = []
    pipeline.drain(spark, points.append)
    assert "published a part" in points
    pipeline.check()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("published a part", "kill"),
        Fault("closing", "kill", 3),
        pytest.param(Fault("closed", "kill", 3), marks=pytest.mark.long),
    ],
)
def test_a_manager_killed_between_two_transactions_repeats_no_letter(
    fault: Fault, pipeline: Pipeline
) -> None:
    pipeline.produce(range(300))
    produce_bad(pipeline, 2_000, 100)
    spec = pipeline.folder / "letters.json"
    content = {
        "name": pipeline.name,
        "config": pipeline.config,
        "worker": pipeline.worker,
        "faults": [[fault.point, fault.action, fault.turn]],
    }
    spec.write_text(json.dumps(content))
    command = [sys.executable, "-m", "tests.crashes.letters_process", str(spec)]
    assert subprocess.run(command, cwd=ROOT, timeout=180).returncode == -signal.SIGKILL
    assert pipeline.ids() == pipeline.sent
    published = pipeline.dead_letters().total()
    assert 0 < published < 2_000
    pipeline.produce(range(300, 400), spoil=range(9))
    points: list[str] = []
    job = manager(pipeline, points.append)
    drain(job)
    job.close()
    pipeline.check()


def test_a_job_that_is_stopped_ends_between_two_transactions_and_goes_on_there(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_SHARE", 30_000)
    produce_bad(pipeline, 2_000, 100)
    stopped = threading.Event()

    class Runner(InWorkerRunner):
        def refuse_cancelled(self) -> None:
            if stopped.is_set():
                raise Cancelled("given up")

    points: list[str] = []

    def reached(point: str) -> None:
        points.append(point)
        if point == "staged":
            stopped.set()

    job = manager(pipeline, reached, runner_of(pipeline, Runner))
    with pytest.raises(Cancelled):
        job.tick()
    assert points[-1] == "published a part"
    assert 0 < pipeline.dead_letters().total() < 2_000
    stopped.clear()
    drain(job)
    job.close()
    pipeline.check()
