"""Two brokers, one of which dies with the only replica of a partition: the other partitions go on."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from icestream.api.errors import RetriableError
from icestream.embedded import kafka, ports
from icestream.embedded.java import java
from icestream.embedded.kafka import Broker, running_broker
from icestream.embedded.process import Process, spawn
from icestream.jobs.sinks.build import sink_manager
from icestream.jobs.sinks.manager import SinkManager
from icestream.kafka.topics import Topics
from icestream.pipeline.record_path import RecordSettings
from icestream.pipeline.spark_runner import SparkRunner
from tests.integration.local_job import InThisProcess, World

PATIENCE = 120.0
TOPIC = "two-brokers"


class SecondBroker:
    """A broker that joins the cluster of another."""

    def __init__(self, first: Broker, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        port = ports.free_port(avoid=first.port)
        changes = {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://{ports.HOST}:{port}",
            "advertised.listeners": f"PLAINTEXT://{ports.HOST}:{port}",
            "log.dirs": str(folder / "topics"),
        }
        text = (first.data / "server.properties").read_text()
        for key, value in changes.items():
            text = re.sub(rf"(?m)^{re.escape(key)}=.*$", f"{key}={value}", text)
        self._properties = folder / "server.properties"
        self._properties.write_text(text)
        cluster = (first.data / "cluster-id").read_text().strip()
        self._java = [java(), "-Xmx256m", "-cp", f"{kafka.jars()}/*"]
        subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties)],
            check=True,
            capture_output=True,
        )
        self.process = self.start()

    def start(self) -> Process:
        command = [*self._java, "kafka.Kafka", str(self._properties)]
        self.process = spawn(command, output=self._folder / "output.log", die_with_parent=True)
        return self.process

    def kill(self) -> None:
        self.process.send(signal.SIGKILL)
        self.process.wait(20)


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "kafka") as running:
        yield running


def eventually(manager: SinkManager, rows: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while manager.progress.rows < rows:
        assert time.monotonic() < deadline, manager.progress
        try:
            time.sleep(manager.tick())
        except RetriableError as error:
            print("again:", error)
            time.sleep(0.2)


@pytest.mark.long
def test_a_partition_without_a_leader_waits_and_the_others_go_on(first: Broker, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    world = World(first, tmp_path / "tables", name=TOPIC, partitions=0)
    settings = world.settings
    # Kafka's own topics come to be now, on the broker that stays.
    starter = Producer({**settings, "transactional.id": "starter"})
    starter.init_transactions(60)
    world.topics.group_offsets("starter", [])
    second = SecondBroker(first, tmp_path / "second")
    try:
        admin = AdminClient(settings)
        deadline = time.monotonic() + PATIENCE
        while len(admin.list_topics(timeout=30).brokers) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        made = admin.create_topics([NewTopic(TOPIC, 2, replica_assignment=[[1], [2]])])
        made[TOPIC].result(30)
        produce(settings, {0: range(3), 1: range(10, 14)})
        runner = InThisProcess(settings, RecordSettings.of(world.config))
        manager = sink_manager(TOPIC, world.config, settings, cast(SparkRunner, runner))
        eventually(manager, 7)
        second.kill()
        wait_for_leaders(settings, 1)
        produce(settings, {0: range(20, 25)})
        eventually(manager, 12)
        assert manager.progress.warnings == (
            f"{TOPIC}-1 waits for a leader, which Kafka has to elect; all others go on",
        )
        second.start()
        wait_for_leaders(settings, 2)
        produce(settings, {1: range(30, 32)})
        eventually(manager, 14)
        assert world.ids() == [*range(3), *range(10, 14), *range(20, 25), *range(30, 32)]
        manager.close()
    finally:
        second.kill()


def wait_for_leaders(settings: dict[str, str], count: int) -> None:
    """A broker that has just died may be the one that answers for the cluster: then it is asked again."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(RetriableError):
            if 2 - len(Topics(settings).describe([TOPIC])[TOPIC].leaderless) == count:
                return
        assert time.monotonic() < deadline
        time.sleep(0.2)


def produce(settings: dict[str, str], ids: dict[int, range]) -> None:
    producer = Producer(settings)
    for partition, numbers in ids.items():
        for number in numbers:
            producer.produce(TOPIC, b'{"id":%d}' % number, partition=partition)
    assert producer.flush(60) == 0
