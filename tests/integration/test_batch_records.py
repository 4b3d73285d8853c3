"""What jobs tell of their batches adds up to what their targets have, also from a process of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from icestream.api.history import PASSED_OVER, STAGES, BatchRecord, Event, Outcome
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded.kafka import Broker
from icestream.jobs.sinks.target_commits import target_commits
from icestream.kafka.topics import Topics
from icestream.pipeline.spark_runner import SparkPlane
from tests.running import connector_starter
from tests.spark_settings import with_iceberg

PATIENCE = 180.0
JSON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class Told:
    """Keeps all it hears; told by threads of managers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.batches: list[BatchRecord] = []
        self.events: list[Event] = []

    def batch(self, connector: str, record: BatchRecord) -> None:
        with self._lock:
            self.batches.append(record)

    def event(self, connector: str, event: Event) -> None:
        self.events.append(event)

    def forget(self, connector: str) -> None: ...

    @property
    def landed(self) -> list[BatchRecord]:
        with self._lock:
            return [record for record in self.batches if record.landed]

    def read(self) -> int:
        return sum(record.read for record in self.landed)


def wait_for(holds: Callable[[], bool], told: Told) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, told.batches
        time.sleep(0.1)


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    assert producer.flush(30) == 0


def values(first: int, number: int) -> list[bytes | None]:
    return [json.dumps({"id": first + at, "text": "x" * 50}).encode() for at in range(number)]


def table_of(catalog: Catalog) -> str:
    catalog.create_namespace_if_not_exists("ns")
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType()))
    catalog.create_table("ns.records", schema)
    return "ns.records"


def test_the_records_of_batches_add_up_to_the_table(
    broker: Broker, spark: SparkPlane, sqlite_catalog: dict[str, str]
) -> None:
    topic = "batch-records"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 2, 1)
    catalog = open_catalog(sqlite_catalog)
    name = table_of(catalog)
    told = Told()
    start = connector_starter({"bootstrap.servers": broker.bootstrap, **with_iceberg()}, spark, told)
    config = {
        "connector.class": "IcebergSinkConnector",
        "topics": topic,
        "iceberg.tables": name,
        "iceberg.control.commit.interval-ms": "100",
        "errors.tolerance": "all",
        **JSON,
        **sqlite_catalog,
    }
    job = start("batch-records", config, paused=False)
    try:
        send(broker, topic, [*values(0, 300), b"{", None, b"[1"])
        wait_for(lambda: told.read() == 303, told)
        send(broker, topic, values(300, 100))
        wait_for(lambda: told.read() == 403, told)
    finally:
        job.stop()
    table = catalog.load_table(name)
    landed = told.landed
    assert sum(record.written for record in landed) == table.scan().count() == 400
    assert sum(sum(record.rejected.values()) for record in landed) == 2
    assert sum(record.filtered.get(PASSED_OVER, 0) for record in landed) == 1
    for record in landed:
        assert record.read == record.written + sum(record.rejected.values()) + sum(record.filtered.values())
        assert set(record.stages) == set(STAGES)
        inside = sum(record.stages[name] for name in ("read", "convert", "transform", "stage"))
        assert inside <= record.tasks * record.longest_task + 1e-3
        assert record.longest_task + record.stages["queue"] <= record.seconds + 1e-3
    committed = [record for record in landed if record.outcome is Outcome.COMMITTED]
    snapshots = {str(one.snapshot_id): one for one in table.metadata.snapshots}
    assert {record.targets[0].id for record in committed} == set(snapshots)
    sizes = sorted(size for record in landed for size in record.targets[0].file_bytes)
    assert sizes == sorted(table.inspect.files()["file_size_in_bytes"].to_pylist())
    begun = [record.id for record in told.batches if not record.is_over]
    assert set(begun) == {record.id for record in told.batches if record.is_over}
    progress = job.status().progress
    assert progress.lag in (0, None)
    assert told.events[0].text.startswith("RUNNING")

    # The table remembers the same.
    commits = target_commits("batch-records", {**config, "name": "batch-records"}, 50)
    assert {one.id: (one.rows, one.commit) for one in commits} == {
        record.targets[0].id: (record.targets[0].rows, record.id) for record in committed
    }
    assert sum(one.rejected or 0 for one in commits) == 2
    assert sum(one.filtered or 0 for one in commits) == 1
    assert sum(one.bytes or 0 for one in commits) == sum(sizes)


def test_a_job_in_a_process_of_its_own_tells_the_same(broker: Broker, tmp_path: Path) -> None:
    topic = "batch-records-process"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 2, 1)
    told = Told()
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "icestream.job.manager": "process",
        "icestream.file.connectors.enabled": "true",
    }
    start = connector_starter(worker, observer=told)
    file = tmp_path / "lines"
    config = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(file),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    send(broker, topic, [b"line %d" % number for number in range(40)])
    job = start("batch-records-process", config, paused=False)
    try:
        wait_for(lambda: told.read() == 40, told)
        send(broker, topic, [b"more"])
        wait_for(lambda: told.read() == 41, told)
        wait_for(lambda: job.status().progress.lag == 0, told)
        partitions = job.status().progress.partitions
        assert sum(one.next_offset for one in partitions) == 41
        assert [one.lag for one in partitions] == [0, 0]
    finally:
        job.stop()
    landed = told.landed
    assert sum(record.written for record in landed) == len(file.read_text().splitlines()) == 41
    assert sum(size for record in landed for size in record.targets[0].file_bytes) == file.stat().st_size
    assert all(record.stages["commit"] > 0 for record in landed)
