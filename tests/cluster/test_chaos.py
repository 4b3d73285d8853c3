"""Three workers, many connectors, records all the time, and a worker killed or frozen every few seconds.

At the end every connector runs, the load is even, and every record of every topic is in its table once.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from icestream.cli.verify import holds
from icestream.embedded.kafka import Broker
from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, call, eventually
from tests.crashes.pipeline import Pipeline, record
from tests.spark_settings import SPARK

SECONDS = float(os.environ.get("ICESTREAM_CHAOS_SECONDS", "300"))
RECORDS_A_SECOND = 240
WORKERS = 3

pytestmark = [pytest.mark.slow, pytest.mark.crashes]


class Feed:
    """Sends records to all topics in turn until told to end."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._pipelines = pipelines
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._pipelines[0].bootstrap, "enable.idempotence": True, "linger.ms": 20}
        )
        for number in itertools.count():
            for pipeline in self._pipelines:
                pipeline.send(producer, number, record(number))
                pipeline.sent[number] += 1
            producer.poll(0)
            if self._enough.wait(len(self._pipelines) / RECORDS_A_SECOND):
                break
        assert producer.flush(60) == 0
        producer.close()

    def end(self) -> None:
        self._enough.set()
        self._thread.join()


def disturb(worker: WorkerProcess, chance: random.Random) -> None:
    """Kill it and start it again, or freeze it for longer than a session."""
    if chance.random() < 0.7:
        worker.kill()
        time.sleep(chance.uniform(0, 4))
        worker.start()
    else:
        worker.send(signal.SIGSTOP)
        time.sleep(chance.uniform(7, 12))
        worker.send(signal.SIGCONT)


def owners(worker: WorkerProcess) -> Counter[str]:
    """How many connectors each worker runs."""
    shown = call(worker.url, "GET", "/connectors?expand=status")
    states = [both["status"]["connector"] for both in shown.values()]
    return Counter(state["worker_id"] for state in states if state["state"] == "RUNNING")


def is_even(counts: Counter[str], connectors: int) -> bool:
    return counts.total() == connectors and set(counts.values()) == {connectors // WORKERS}


@pytest.mark.parametrize(
    ("connectors", "disturbances", "seconds", "place"),
    [
        pytest.param(3, 3, 0, "thread", id="short"),
        pytest.param(12, 1, SECONDS, "thread", id="long", marks=pytest.mark.long),
        pytest.param(3, 8, 0, "process", id="processes", marks=pytest.mark.long),
    ],
)
def test_kills_at_random(
    broker: Broker,
    start_worker: StartWorker,
    tmp_path: Path,
    group: str,
    connectors: int,
    disturbances: int,
    seconds: float,
    place: str,
) -> None:
    """At least so many disturbances, and for so long. The process of a job is not frozen with its worker, and
    lives a moment longer."""
    seed = random.randrange(10_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    pipelines = []
    for number in range(connectors):
        folder = tmp_path / str(number)
        folder.mkdir()
        options = {"iceberg.control.commit.interval-ms": "2000", "tasks.max": "1"}
        pipelines.append(Pipeline(broker.bootstrap, folder, f"{group}-c{number}", options=options).create())
    settings = {key.replace(".", "_"): value for key, value in SPARK.items()}
    settings["icestream_job_manager"] = place
    workers = [start_worker(waits=False, **settings) for _ in range(WORKERS)]
    for worker in workers:
        eventually(worker.is_ready, worker.text)
    for pipeline in pipelines:
        config = {**pipeline.config, "errors.deadletterqueue.topic.replication.factor": "1"}
        call(chance.choice(workers).url, "POST", "/connectors", {"name": pipeline.name, "config": config})
    eventually(
        lambda: is_even(owners(workers[0]), connectors), lambda: f"{owners(workers[0])} {workers[0].text()}"
    )
    feed = Feed(pipelines)
    deadline = time.monotonic() + seconds
    done = 0
    while done < disturbances or time.monotonic() < deadline:
        disturb(chance.choice(workers), chance)
        done += 1
        time.sleep(chance.uniform(2, 15 if seconds else 6))
    feed.end()
    print(f"{done} disturbances, {sum(one.sent.total() for one in pipelines)} records")
    for worker in workers:
        eventually(
            lambda worker=worker: is_even(owners(worker), connectors),
            lambda worker=worker: f"{owners(worker)} {worker.text()}",
            240,
        )
    for pipeline in pipelines:
        eventually(
            lambda pipeline=pipeline: pipeline.group_offsets() == pipeline.topics.ends(pipeline.partitions),
            lambda pipeline=pipeline: f"{pipeline.name} is at {pipeline.group_offsets()}",
            240,
        )
        pipeline.check()
        assert holds(pipeline.name, pipeline.config, pipeline.worker, deep=True)
