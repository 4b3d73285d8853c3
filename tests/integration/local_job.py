"""A sink job without Spark around it, for tests that look at records: a real broker, a real table, the job
manager, and what a Spark task does."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from icestream.api.batch import Batch, BatchResult
from icestream.api.offsets import Partition
from icestream.api.sink import SinkPlan
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded.kafka import Broker
from icestream.embedded.minio_tables import sqlite_catalog
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterReader
from icestream.jobs.sinks.build import sink_manager
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings

JSON = "org.apache.kafka.connect.json.JsonConverter"
MEGABYTE = 2**20
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "text", StringType()),
    NestedField(3, "amount", DoubleType()),
)
_NUMBERS = itertools.count(1)
_LARGE = {"max.message.bytes": str(16 * MEGABYTE)}


class InThisProcess(InWorkerRunner):
    """Counts the batches that were too large."""

    def __init__(self, kafka: Mapping[str, str], records: RecordSettings) -> None:
        super().__init__(kafka, records)
        self.overflows = 0

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult:
        result = super().run(batch, sink, stages=stages)
        self.overflows += result.overflow
        return result


@dataclass
class World:
    """A topic with one partition, its connector and its table."""

    broker: Broker
    folder: Path
    schema: Schema = SCHEMA
    name: str = field(default_factory=lambda: f"local-{next(_NUMBERS)}")
    options: dict[str, str] = field(default_factory=dict)
    partitions: int = 1
    """0: the test makes the topic."""
    creates_table: bool = False
    """Whether the connector does, and not the test."""
    overflows: int = 0
    """How many batches of the last `drain` had too many rejected records."""

    def __post_init__(self) -> None:
        if self.partitions:
            self.topics.create(self.name, self.partitions, 1, _LARGE)
        if not self.creates_table:
            self.catalog.create_namespace_if_not_exists("ns")
            self.catalog.create_table(f"ns.{self.name}", self.schema)

    @property
    def settings(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    @property
    def topics(self) -> Topics:
        return Topics(self.settings)

    @property
    def catalog(self) -> Catalog:
        return open_catalog(sqlite_catalog(str(self.folder)))

    @property
    def config(self) -> dict[str, str]:
        return {
            "connector.class": "IcebergSinkConnector",
            "topics": self.name,
            "tasks.max": "1",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "iceberg.tables": f"ns.{self.name}",
            "iceberg.control.commit.interval-ms": "1000",
            **sqlite_catalog(str(self.folder)),
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.name}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
            **self.options,
        }

    def produce(self, values: Iterable[Any]) -> None:
        """Bytes as they are, all else as JSON."""
        producer = Producer(
            {**self.settings, "message.max.bytes": 32 * MEGABYTE, "linger.ms": 20, "compression.type": "lz4"}
        )
        for value in values:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            while True:
                try:
                    producer.produce(self.name, body)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def drain(self) -> None:
        """Run the job until nothing waits."""
        runner = InThisProcess(self.settings, RecordSettings.of(self.config))
        manager = sink_manager(self.name, self.config, self.settings, runner)
        deadline = time.monotonic() + 300
        try:
            while not (manager.tick() and manager.progress.lag == 0):
                assert time.monotonic() < deadline, manager.progress
        finally:
            self.overflows = runner.overflows
            manager.close()

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.catalog.load_table(f"ns.{self.name}").scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])

    def ids(self) -> list[int]:
        column = self.catalog.load_table(f"ns.{self.name}").scan(selected_fields=("id",)).to_arrow()["id"]
        return sorted(column.to_pylist())

    def wait_settled(self, topic: str) -> None:
        """Kafka shows a transaction to readers a moment after it told the writer of its end."""
        place = Partition(topic, 0)
        looker = Consumer({**self.settings, "group.id": "looker", "isolation.level": "read_uncommitted"})
        try:
            deadline = time.monotonic() + 60
            while (
                self.topics.ends([place])[place] < looker.get_watermark_offsets(TopicPartition(topic, 0))[1]
            ):
                assert time.monotonic() < deadline, f"a transaction of {topic} does not end"
                time.sleep(0.05)
        finally:
            looker.close()

    def letters(self) -> list[DeadLetter]:
        if f"{self.name}-dlq" in self.topics.describe([f"{self.name}-dlq"]):
            self.wait_settled(f"{self.name}-dlq")
        reader = SliceReader(self.settings)
        try:
            queue = DeadLetterReader(f"{self.name}-dlq", self.name, self.topics, reader)
            return list(queue.dead_letters())
        finally:
            reader.close()

    def reasons(self) -> dict[int, tuple[str, str]]:
        """Offset → stage and reason of each letter."""
        return {
            letter.origin_offset or 0: (letter.context["stage"], letter.context["exception.message"])
            for letter in self.letters()
        }
