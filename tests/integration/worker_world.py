"""`icestream standalone` as a process of its own, with its broker, topics and tables: what a user has."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from icestream.client import ConnectClient
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded import kafka
from icestream.embedded.minio_tables import sqlite_catalog
from icestream.embedded.ports import free_port
from icestream.embedded.process import Process, spawn
from icestream.kafka.topics import Topics
from tests.spark_settings import with_iceberg

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType()))


def eventually(holds: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.1)


@dataclass
class World:
    folder: Path
    bootstrap: str
    url: str
    worker: Process
    actuator: int
    """Its port of Spring's endpoints."""

    @property
    def client(self) -> ConnectClient:
        return ConnectClient(self.url)

    @property
    def catalog(self) -> Catalog:
        return open_catalog(sqlite_catalog(str(self.folder)))

    def topic(self, name: str) -> None:
        Topics({"bootstrap.servers": self.bootstrap}).create(name, 3, 1)
        self.catalog.create_namespace_if_not_exists("ns")
        self.catalog.create_table_if_not_exists(f"ns.{name}", SCHEMA)

    def produce(self, topic: str, *values: object) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number, value in enumerate(values):
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            producer.produce(topic, body, partition=number % 3)
        assert producer.flush(30) == 0

    def config(self, topic: str, **more: str) -> dict[str, str]:
        return {
            "connector.class": "IcebergSinkConnector",
            "topics": topic,
            "tasks.max": "2",
            "iceberg.tables": f"ns.{topic}",
            "iceberg.control.commit.interval-ms": "200",
            **sqlite_catalog(str(self.folder)),
            **{key.replace("__", "."): value for key, value in more.items()},
        }

    def ids(self, topic: str) -> list[int]:
        return sorted(self.catalog.load_table(f"ns.{topic}").scan().to_arrow()["id"].to_pylist())

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "icestream.cli.main", *arguments],
            capture_output=True,
            text=True,
            timeout=180,
        )


def start_worker(folder: Path, bootstrap: str, port: int, actuator: int = 0) -> Process:
    (folder / "worker.properties").write_text(
        f"bootstrap.servers={bootstrap}\n"
        f"listeners=http://127.0.0.1:{port}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "value.converter.schemas.enable=false\n"
        f"offset.storage.file.filename={folder}/offsets\n"
        "icestream.file.connectors.enabled=true\n"
        "icestream.log.format=json\n"
        f"icestream.database.folders={folder}\n"
        f"icestream.delta.folders={folder}\n"
        f"icestream.actuator.listeners=http://127.0.0.1:{actuator}\n"
        "icestream.actuator.health.details=always\n"
        "icestream.actuator.env.enabled=true\n"
        "spark.driver.memory=1g\n"
        f"spark.jars={with_iceberg()['spark.jars']}\n"
    )
    command = [sys.executable, "-m", "icestream.cli.main", "standalone", str(folder / "worker.properties")]
    return spawn(command, output=folder / "worker.log", die_with_parent=True)


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    with kafka.running_broker(folder / "kafka", free_port()) as broker:
        port, actuator = free_port(), free_port()
        world = World(folder, broker.bootstrap, f"http://127.0.0.1:{port}", Process(0, "none"), actuator)
        world.worker = start_worker(folder, broker.bootstrap, port, actuator)
        try:
            eventually(world.client.is_healthy, 300)
            yield world
        finally:
            world.worker.send(signal.SIGTERM)
            assert world.worker.wait(60), (folder / "worker.log").read_text()[-2000:]
