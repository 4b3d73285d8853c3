"""Workers of a cluster share the connectors: joining, dying, hanging, cut off; any worker answers all."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from icestream.api.offsets import Partition
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, call, eventually

pytestmark = pytest.mark.slow


class Cluster:
    """Connectors that need no Spark, and what the workers say of them."""

    def __init__(self, broker: Broker, folder: Path, group: str) -> None:
        self.broker = broker
        self.topic = f"{group}-lines"
        self.folder = folder
        Topics({"bootstrap.servers": broker.bootstrap}).create(self.topic, 1, 1)

    def create(self, worker: WorkerProcess, *names: str) -> None:
        for name in names:
            config = {
                "connector.class": "FileStreamSink",
                "file": str(self.folder / f"{name}.txt"),
                "topics": self.topic,
            }
            call(worker.url, "POST", "/connectors", {"name": name, "config": config})

    def wait_until_idle(self, worker: WorkerProcess, *names: str) -> None:
        """A record has gone all the way through each connector: none is in a call to Kafka any more."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        producer.produce(self.topic, None, partition=0)
        assert producer.flush(60) == 0
        topics, partition = Topics({"bootstrap.servers": self.broker.bootstrap}), Partition(self.topic, 0)
        for name in names:
            eventually(
                lambda name=name: topics.group_offsets(f"connect-{name}", [partition])[partition].next == 1,
                worker.text,
            )

    def owners(self, worker: WorkerProcess) -> dict[str, str]:
        """Which worker runs each connector that is RUNNING, as one worker tells."""
        shown = call(worker.url, "GET", "/connectors?expand=status")
        connectors = {name: both["status"]["connector"] for name, both in shown.items()}
        return {name: it["worker_id"] for name, it in connectors.items() if it["state"] == "RUNNING"}

    def wait_for_even(self, connectors: int, *workers: WorkerProcess) -> dict[str, str]:
        """All connectors run on these workers, evenly, and all workers agree on it."""
        addresses = {worker.address for worker in workers}

        def look() -> dict[str, str] | None:
            told = [self.owners(worker) for worker in workers]
            counts = Counter(told[0].values())
            is_even = set(counts) == addresses and max(counts.values()) - min(counts.values()) <= 1
            agree = all(one == told[0] for one in told)
            return told[0] if agree and is_even and len(told[0]) == connectors else None

        found: dict[str, str] = eventually(
            look, lambda: "\n".join(f"{self.owners(one)}\n{one.text()}" for one in workers)
        )
        return found


@pytest.fixture
def cluster(broker: Broker, tmp_path: Path, group: str) -> Cluster:
    return Cluster(broker, tmp_path, group)


def state(worker: WorkerProcess, name: str) -> str:
    return str(call(worker.url, "GET", f"/connectors/{name}/status")["connector"]["state"])


def starts(worker: WorkerProcess) -> Counter[str]:
    """How often the worker started each connector."""
    lines = [line for line in worker.log.read_text().splitlines() if line.endswith("] started")]
    # In brackets: the worker and the connector.
    return Counter(line.split("[")[1].split("]")[0].rpartition("|")[2] for line in lines)


def measured(worker: WorkerProcess) -> set[str]:
    """The connectors that the worker has series of."""
    text = httpx.get(f"{worker.url}/metrics", timeout=60, trust_env=False).text
    return set(re.findall(r'^kafka_connect_connector_status{connector="([^"]+)"', text, re.MULTILINE))


def test_workers_come_die_and_come_back(cluster: Cluster, start_worker: StartWorker) -> None:
    first = start_worker()
    cluster.create(first, *(f"c{number}" for number in range(6)))
    cluster.wait_for_even(6, first)
    second, third = start_worker(), start_worker()
    before = cluster.wait_for_even(6, first, second, third)
    assert starts(first) == {f"c{number}": 1 for number in range(6)}, "what stayed was not touched"

    second.kill()
    after = cluster.wait_for_even(6, first, third)
    moved = {name for name in before if before[name] != after[name]}
    assert moved == {name for name in before if before[name] == second.address}

    second.start()
    again = cluster.wait_for_even(6, first, second, third)
    assert sum(again[name] != after[name] for name in again) == 2, "only the newcomer's share moved"
    for worker in (first, second, third):
        # Two workers with series of one connector would break the joins of dashboards.
        assert measured(worker) == {name for name, owner in again.items() if owner == worker.address}


def try_everything(worker: WorkerProcess, name: str) -> None:
    eventually(lambda: name in call(worker.url, "GET", "/connectors"), worker.text)
    call(worker.url, "PUT", f"/connectors/{name}/pause")
    eventually(lambda: state(worker, name) == "PAUSED", worker.text)
    call(worker.url, "PUT", f"/connectors/{name}/resume")
    answer = call(worker.url, "POST", f"/connectors/{name}/restart?includeTasks=true", expect=(202,))
    assert answer["connector"]["state"] == "RESTARTING"
    assert call(worker.url, "PATCH", f"/connectors/{name}/config", {"tasks.max": "2"})["tasks"]


def test_any_worker_answers_any_request(cluster: Cluster, start_worker: StartWorker) -> None:
    workers = [start_worker(), start_worker()]
    for worker in workers:
        name = f"by-{worker.name}"
        cluster.create(worker, name)
        for other in workers:
            try_everything(other, name)
    cluster.wait_for_even(2, *workers)
    for worker in workers:
        call(worker.url, "DELETE", f"/connectors/by-{worker.name}")
    for worker in workers:
        eventually(lambda worker=worker: call(worker.url, "GET", "/connectors") == [], worker.text)


def test_loggers_of_the_whole_cluster(start_worker: StartWorker) -> None:
    workers = [start_worker(), start_worker()]
    call(
        workers[0].url,
        "PUT",
        "/admin/loggers/icestream.jobs?scope=cluster",
        {"level": "DEBUG"},
        expect=(204,),
    )
    for worker in workers:
        eventually(
            lambda worker=worker: (
                call(worker.url, "GET", "/admin/loggers/icestream.jobs")["level"] == "DEBUG"
            ),
            worker.text,
        )


def test_a_worker_that_hangs_loses_its_connectors_and_gives_them_up(
    cluster: Cluster, start_worker: StartWorker
) -> None:
    first, second = start_worker(), start_worker()
    cluster.create(first, "a", "b", "c", "d")
    cluster.wait_for_even(4, first, second)
    second.send(signal.SIGSTOP)
    cluster.wait_for_even(4, first)
    second.send(signal.SIGCONT)
    cluster.wait_for_even(4, first, second)


def test_a_worker_cut_off_from_kafka_stops_its_jobs(
    cluster: Cluster, start_worker: StartWorker, broker: Broker
) -> None:
    """The broker hangs for longer than a session: the worker ends its jobs by itself, and comes back."""
    worker = start_worker()
    cluster.create(worker, "a", "b")
    cluster.wait_for_even(2, worker)
    cluster.wait_until_idle(worker, "a", "b")
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        eventually(lambda: "cut off from Kafka: 2 connector(s) stop here" in worker.text(), worker.text)
        eventually(lambda: all(f"|{name}] stopped" in worker.text() for name in "ab"), worker.text)
        # An outage of Kafka is no reason to kill a worker.
        assert probed(worker, "/live") == (200, "alive")
        assert probed(worker, "/ready") == (503, "not ready")
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    cluster.wait_for_even(2, worker)
    eventually(lambda: probed(worker, "/ready") == (200, "ready"), worker.text)


def probed(worker: WorkerProcess, path: str) -> tuple[int, str]:
    answer = httpx.get(f"{worker.url}{path}", timeout=30, trust_env=False)
    return answer.status_code, answer.json()["status"]
