"""The real Kafka Connect with Iceberg's sink as workers, and our job manager as their coordinator: processes
that tests start and kill, on a table whose rows tell which records they are from."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import pyarrow.compute as pc
from confluent_kafka import Producer
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded import ports
from icestream.embedded.java import java
from icestream.embedded.process import Process, spawn
from icestream.embedded.topics import ensure_topic
from tests.java_libraries import fetch

PATIENCE: Final = 180.0
CATALOG: Final = "iceberg"
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
NEVER_MS: Final = "2147483647"
_T = TypeVar("_T")

SCHEMA: Final = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "kind", StringType()),
    NestedField(3, "text", StringType()),
)
BY_KIND: Final = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))


def jars() -> str:
    return f"{fetch('kafka-connect')}/*"


def wait_for(look: Callable[[], _T | None], what: str, patience: float = PATIENCE) -> _T:
    deadline = time.monotonic() + patience
    while (found := look()) is None:
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return found


@dataclass
class Job:
    """A topic, a table and a connector, with names of their own."""

    bootstrap: str
    folder: Path
    name: str = field(default_factory=lambda: f"java-{uuid.uuid4().hex[:8]}")
    tables: tuple[str, ...] = ("db.t",)
    partitions: int = 3
    control_partitions: int = 1
    produced: int = 0

    def __post_init__(self) -> None:
        (self.folder / "warehouse").mkdir(parents=True)
        self.catalog = open_catalog(
            {
                "iceberg.catalog": CATALOG,
                "iceberg.catalog.type": "jdbc",
                "iceberg.catalog.uri": self.catalog_uri,
                "iceberg.catalog.warehouse": f"file://{self.folder}/warehouse",
            }
        )
        self.catalog.create_namespace("db")
        for name in self.tables:
            self.catalog.create_table(name, SCHEMA, partition_spec=BY_KIND)
        ensure_topic(self.bootstrap, self.name, partitions=self.partitions)
        ensure_topic(self.bootstrap, self.control, partitions=self.control_partitions)

    @property
    def control(self) -> str:
        return f"{self.name}-control"

    @property
    def group(self) -> str:
        return f"connect-{self.name}"

    @property
    def catalog_uri(self) -> str:
        return f"jdbc:sqlite:file:{self.folder}/catalog.db"

    def produce(self, count: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
        )
        for number in range(self.produced, self.produced + count):
            value = json.dumps({"id": number, "kind": f"k{number % 3}", "text": f"text {number}"})
            while True:
                try:
                    producer.produce(self.name, value, partition=number % self.partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0
        self.produced += count

    def table(self, name: str | None = None) -> Table:
        return self.catalog.load_table(name or self.tables[0])

    def visible(self, name: str | None = None) -> int:
        snapshot = self.table(name).current_snapshot()
        summary = snapshot.summary if snapshot else None
        return int(summary.additional_properties.get("total-records", 0)) if summary else 0

    def wait_visible(self, rows: int | None = None, patience: float = PATIENCE) -> None:
        wanted = self.produced if rows is None else rows
        for name in self.tables:
            wait_for(
                lambda name=name: True if self.visible(name) >= wanted else None,  # type: ignore[misc]
                f"{name} has {self.visible(name)} of {wanted} rows",
                patience,
            )

    def assert_exact(self) -> None:
        for name in self.tables:
            ids = self.table(name).scan(selected_fields=("id",)).to_arrow()["id"]
            assert (len(ids), pc.count_distinct(ids).as_py(), pc.max(ids).as_py()) == (
                self.produced,
                self.produced,
                self.produced - 1,
            )

    def summaries(self, name: str | None = None) -> list[Mapping[str, str]]:
        return [
            one.summary.additional_properties for one in self.table(name).metadata.snapshots if one.summary
        ]

    def connector(self, **more: str) -> dict[str, str]:
        return {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": self.name,
            "tasks.max": "2",
            "iceberg.tables": ",".join(self.tables),
            "iceberg.control.topic": self.control,
            "iceberg.control.commit.interval-ms": NEVER_MS,
            "iceberg.catalog": CATALOG,
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": self.catalog_uri,
            "iceberg.catalog.jdbc.schema-version": "V1",
            "iceberg.catalog.warehouse": f"file://{self.folder}/warehouse",
            "key.converter": JSON,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "key.converter.schemas.enable": "false",
            "consumer.override.auto.offset.reset": "earliest",
            # A worker that was killed is missed soon.
            "consumer.override.session.timeout.ms": "6000",
            "consumer.override.heartbeat.interval.ms": "1000",
            "iceberg.kafka.session.timeout.ms": "6000",
            "iceberg.kafka.heartbeat.interval.ms": "1000",
            **more,
        }


class JavaWorkers:
    """`connect-standalone` with the connector of a job: it begins with the process and ends with it."""

    def __init__(self, job: Job, config: Mapping[str, str] | None = None) -> None:
        self._job = job
        number = len(list(job.folder.glob("connect-*.log")))
        self.log = job.folder / f"connect-{number}.log"
        self._url = f"http://127.0.0.1:{(port := ports.free_port())}"
        worker = {
            "bootstrap.servers": job.bootstrap,
            "listeners": f"http://127.0.0.1:{port}",
            "key.converter": JSON,
            "value.converter": JSON,
            "offset.storage.file.filename": f"{job.folder}/offsets",
            "offset.flush.interval.ms": "1000",
        }
        properties = job.folder / f"connect-{number}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in worker.items()))
        connector = job.folder / f"connector-{number}.json"
        connector.write_text(json.dumps({"name": job.name, "config": dict(config or job.connector())}))
        self.process: Process = spawn(
            [
                *(java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.log.org.apache.iceberg.connect=info",
                *("-cp", jars(), "org.apache.kafka.connect.cli.ConnectStandalone"),
                *(str(properties), str(connector)),
            ],
            output=self.log,
            die_with_parent=True,
        )

    def wait_running(self) -> JavaWorkers:
        wait_for(self._is_running, f"not running: {self.log}")
        return self

    def _is_running(self) -> bool | None:
        assert self.process.is_alive(), self.log.read_text()[-3000:]
        try:
            status = httpx.get(f"{self._url}/connectors/{self._job.name}/status", trust_env=False).json()
        except (httpx.HTTPError, ValueError):
            return None
        tasks = status.get("tasks", [])
        return True if tasks and all(one["state"] == "RUNNING" for one in tasks) else None

    def stop(self) -> None:
        """In good order."""
        self.process.send(signal.SIGTERM)
        if not self.process.wait(60):
            self.kill()

    def kill(self) -> None:
        self.process.send(signal.SIGKILL)
        self.process.wait(60)


class JobManager:
    """`icestream job-manager` in a process of its own."""

    def __init__(self, job: Job, **more: str) -> None:
        number = len(list(job.folder.glob("manager-*.log")))
        self.log = job.folder / f"manager-{number}.log"
        command = [sys.executable, "-m", "icestream.cli.main", "job-manager"]
        self.process: Process = spawn_with(environment_of(job, **more), command, self.log)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_text(self, text: str) -> None:
        wait_for(lambda: True if text in self.text else None, f"no '{text}' in {self.text}")

    def stop(self) -> None:
        self.process.send(signal.SIGTERM)
        if not self.process.wait(60):
            self.kill()

    def kill(self) -> None:
        self.process.send(signal.SIGKILL)
        self.process.wait(60)


def environment_of(job: Job, **more: str) -> dict[str, str]:
    return {
        "KAFKA_BOOTSTRAP_SERVERS": job.bootstrap,
        "CONNECT_GROUP_ID": job.group,
        "CONTROL_TOPIC": job.control,
        "CATALOG_NAME": CATALOG,
        "CATALOG_TYPE": "jdbc",
        "CATALOG_URI": job.catalog_uri,
        "CATALOG_WAREHOUSE": f"file://{job.folder}/warehouse",
        "COMMIT_INTERVAL_MINUTES": "0.03",
        "COMMIT_TIMEOUT_MINUTES": "0.3",
        "HTTP_PORT": "0",
        **more,
    }


def spawn_with(environ: Mapping[str, str], command: Sequence[str], log: Path) -> Process:
    """What the environment of the tests says of catalogs and Kafka is not the job's business."""
    before = dict(os.environ)
    kept = {key: value for key, value in before.items() if not key.startswith(("CATALOG_", "KAFKA_"))}
    os.environ.clear()
    os.environ.update({**kept, **environ})
    try:
        return spawn(command, output=log, die_with_parent=True)
    finally:
        os.environ.clear()
        os.environ.update(before)


def config_of(job: Job, **more: Any) -> dict[str, Any]:
    """What `IcebergJobConfig` takes."""
    return {
        "bootstrap_servers": job.bootstrap,
        "group_id": job.group,
        "control_topic": job.control,
        "catalog_name": CATALOG,
        "catalog": {
            "type": "jdbc",
            "uri": job.catalog_uri,
            "warehouse": f"file://{job.folder}/warehouse",
        },
        "job_id": job.name,
        "transactional_id": f"{job.group}-job-manager",
        "commit_interval": 2.0,
        "commit_timeout": 20.0,
        **more,
    }
