"""Kills at random moments, while records keep coming: nothing may be missing, nothing may be there twice."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from icestream.embedded import kafka
from icestream.embedded.ports import free_port
from tests.crashes.pipeline import PARTITIONS, Pipeline, broken, record, values
from tests.crashes.processes import JobProcess, ManagerProcess, WorkerProcess

SHORT = ["worker"] + ["manager"] * 2 + ["broker"] * 2
LONG = ["worker"] * 6 + ["manager"] * 8 + ["broker"] * 8
RECORDS_A_SECOND = 500
BROKEN_EVERY = 1000


class Feed:
    """Sends records in the background, and sends them again while the broker is away."""

    def __init__(self, pipeline: Pipeline, records: int) -> None:
        self._pipeline = pipeline
        self._records = records
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._pipeline.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 600_000,
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        number = 0
        while number < self._records or not self._enough.is_set():
            for _ in range(RECORDS_A_SECOND // 10):
                self._send(producer, number)
                number += 1
            producer.poll(0)
            self._enough.wait(0.1)
        assert producer.flush(120) == 0
        producer.close()

    def _send(self, producer: Producer, number: int) -> None:
        spoils = number % BROKEN_EVERY == 0
        value = broken(number) if spoils else record(number)
        self._pipeline.send(producer, number, value)
        if spoils:
            self._pipeline.spoiled[value] += 1
        else:
            self._pipeline.sent[number] += 1

    def end(self) -> None:
        self._enough.set()
        self._thread.join()


class Jobs:
    """The process that runs the job, and another with its Spark at hand, to lose less time after a kill."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._next = ManagerProcess(pipeline, waits=True)
        self.running: JobProcess | None = None

    def start(self, kind: str) -> JobProcess:
        if kind == "manager":
            self._next.wait_line("ready")
            self._next.begin()
            self.running, self._next = self._next, ManagerProcess(self._pipeline, waits=True)
        else:
            self.running = WorkerProcess(self._pipeline)
        return self.running

    def close(self) -> None:
        self._next.kill()
        if self.running is not None:
            self.running.kill()


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "kafka"
    kafka.kill(tmp_path / "kafka")


@pytest.fixture
def own_pipeline(data: Path, tmp_path: Path) -> Pipeline:
    # Not the usual port: others may take it while the broker is away.
    broker = kafka.start(data, free_port(), die_with_parent=True)
    folder = tmp_path / "pipeline"
    folder.mkdir()
    return Pipeline(broker.bootstrap, folder, "chaos").create()


@pytest.fixture
def jobs(own_pipeline: Pipeline) -> Iterator[Jobs]:
    jobs = Jobs(own_pipeline)
    yield jobs
    jobs.close()


@pytest.mark.parametrize(
    ("victims", "records"),
    [
        pytest.param(SHORT, 10_000, id="short"),
        pytest.param(LONG, 100_000, id="long", marks=pytest.mark.long),
    ],
)
def test_no_record_is_lost_or_repeated_when_anything_is_killed_at_any_moment(
    own_pipeline: Pipeline, jobs: Jobs, data: Path, victims: list[str], records: int
) -> None:
    pipeline = own_pipeline
    seed = int(os.environ.get("ICESTREAM_CRASH_SEED", time.time_ns() % 1_000_000))
    print("ICESTREAM_CRASH_SEED", seed)
    chance = random.Random(seed)
    targets = chance.sample(victims, len(victims))
    kinds = iter([target for target in targets if target != "broker"] + ["manager"])
    feed = Feed(pipeline, records)
    job = jobs.start(next(kinds))
    try:
        for target in targets:
            if chance.random() < 0.8:
                # The rest is killed while it starts.
                job.wait_text("planned")
            time.sleep(chance.uniform(0, 2))
            job.assert_alive()
            print(
                f"{time.strftime('%X')} killing the {target}, {len(pipeline.sent)} records sent", flush=True
            )
            if target == "broker":
                port = int(pipeline.bootstrap.rpartition(":")[2])
                assert kafka.kill(data)
                kafka.start(data, port, die_with_parent=True)
            else:
                job.kill()
                job = jobs.start(next(kinds))
    finally:
        feed.end()
    job.wait_settled(pipeline)
    job.kill()
    topic = Counter(values(pipeline.bootstrap, pipeline.name, PARTITIONS))
    assert records <= topic.total() == len(topic) == len(pipeline.sent) + len(pipeline.spoiled)
    pipeline.check()
