"""Kills at random moments, while records keep coming: nothing may be missing, nothing may be there twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from icestream.embedded import kafka
from icestream.embedded.ports import free_port
from tests.crashes.pipeline import PARTITIONS, Pipeline, broken, record, values
from tests.crashes.processes import CatalogProcess, JobProcess, ManagerProcess, WorkerProcess

OTHERS = ("jvm", "python worker", "catalog", "broker")
"""What is killed under a process that goes on."""
SHORT = ["worker", "manager", "broker", "broker", "jvm", "python worker", "catalog"]
LONG = (
    ["worker"] * 5 + ["manager"] * 6 + ["broker"] * 6 + ["jvm"] * 5 + ["python worker"] * 4 + ["catalog"] * 4
)
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
def behind(data: Path, tmp_path: Path) -> Pipeline:
    """The pipeline without its REST catalog: what the test itself looks at is never away."""
    # Not the usual port: others may take it while the broker is away.
    broker = kafka.start(data, free_port(), die_with_parent=True)
    folder = tmp_path / "pipeline"
    folder.mkdir()
    return Pipeline(broker.bootstrap, folder, "chaos").create()


class Catalog:
    """The REST catalog that the job goes through."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process = CatalogProcess(folder, self._port)
        self.options = {
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": f"http://127.0.0.1:{self._port}",
        }

    def kill(self) -> None:
        self._process.kill()

    def start(self) -> None:
        self._process = CatalogProcess(self._folder, self._port)


@pytest.fixture
def catalog(behind: Pipeline) -> Iterator[Catalog]:
    catalog = Catalog(behind.folder)
    yield catalog
    catalog.kill()


@pytest.fixture
def own_pipeline(behind: Pipeline, catalog: Catalog) -> Pipeline:
    return replace(behind, options=catalog.options)


@pytest.fixture
def jobs(own_pipeline: Pipeline) -> Iterator[Jobs]:
    jobs = Jobs(own_pipeline)
    yield jobs
    jobs.close()


class Killer:
    """Kills what the job needs, and brings back what does not come back by itself."""

    def __init__(self, bootstrap: str, data: Path, catalog: Catalog) -> None:
        self._port = int(bootstrap.rpartition(":")[2])
        self._data = data
        self._catalog = catalog

    def kill(self, target: str, job: JobProcess) -> None:
        if target == "broker":
            assert kafka.kill(self._data)
            kafka.start(self._data, self._port, die_with_parent=True)
        elif target == "catalog":
            self._catalog.kill()
            self._catalog.start()
        else:
            pid = job.wait(
                job.jvm if target == "jvm" else lambda: next(iter(job.python_workers()), None), target
            )
            # It may have ended by itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("victims", "records"),
    [
        pytest.param(SHORT, 10_000, id="short"),
        pytest.param(LONG, 100_000, id="long", marks=pytest.mark.long),
    ],
)
def test_no_record_is_lost_or_repeated_when_anything_is_killed_at_any_moment(
    behind: Pipeline, catalog: Catalog, jobs: Jobs, data: Path, victims: list[str], records: int
) -> None:
    pipeline = behind
    seed = int(os.environ.get("ICESTREAM_CRASH_SEED", time.time_ns() % 1_000_000))
    print("ICESTREAM_CRASH_SEED", seed)
    chance = random.Random(seed)
    targets = chance.sample(victims, len(victims))
    kinds = iter([target for target in targets if target not in OTHERS] + ["manager"])
    killer = Killer(pipeline.bootstrap, data, catalog)
    feed = Feed(pipeline, records)
    job = jobs.start(next(kinds))
    try:
        for target in targets:
            if chance.random() < 0.8 or target in ("jvm", "python worker"):
                # The rest is killed while it starts. A worker whose first Spark dies ends with an error.
                job.wait_text("planned")
            time.sleep(chance.uniform(0, 2))
            job.assert_alive()
            print(
                f"{time.strftime('%X')} killing the {target}, {len(pipeline.sent)} records sent", flush=True
            )
            if target in OTHERS:
                killer.kill(target, job)
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
