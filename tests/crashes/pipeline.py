"""What each crash test has for itself: a topic, its connector and tables, and the count of every id."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from icestream.api.errors import RetriableError
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.jobs.sinks.build import batch_runner, sink_manager
from icestream.jobs.sinks.manager import SinkManager
from icestream.jobs.worker_resources import WorkerResources
from icestream.kafka.topics import Topics
from icestream.pipeline.spark_runner import SparkPlane
from tests.spark_settings import SPARK

_T = TypeVar("_T", int, bytes)

PARTITIONS = 3
PATIENCE = 180.0
"""Seconds until a test gives up; generous, because machines are slow at times."""
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "time", TimestamptzType(), required=False),
    NestedField(3, "bucket", StringType(), required=False),
)
SPEC = PartitionSpec(PartitionField(source_id=3, field_id=1000, transform=IdentityTransform(), name="bucket"))


def record(number: int) -> bytes:
    second = f"{number // 60 % 60:02}:{number % 60:02}"
    return b'{"id":%d,"time":"2026-11-15T10:%s.000Z","bucket":"b%d"}' % (number, second.encode(), number % 4)


def broken(number: int) -> bytes:
    """No JSON, and different from every other one."""
    return b'{"id":broken-%d' % number


@dataclass
class Pipeline:
    """One topic, its connector, its tables; `sent` and `spoiled` are all that was produced."""

    bootstrap: str
    folder: Path
    name: str
    tables: Sequence[str] = ("db.t",)
    options: Mapping[str, str] = field(default_factory=dict)
    sent: Counter[int] = field(default_factory=Counter)
    spoiled: Counter[bytes] = field(default_factory=Counter)

    @property
    def worker(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **SPARK}

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.name}-dlq"

    @property
    def config(self) -> dict[str, str]:
        return {
            "name": self.name,
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": self.name,
            "tasks.max": "2",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "iceberg.tables": ",".join(self.tables),
            "iceberg.catalog": "crashes",
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{self.folder}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{self.folder}/warehouse",
            "iceberg.control.commit.interval-ms": "200",
            # One after the other, so that it is known which tables have a batch when the process dies.
            "iceberg.control.commit.threads": "1",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": self.dead_letter_topic,
            **self.options,
        }

    @property
    def topics(self) -> Topics:
        return Topics({"bootstrap.servers": self.bootstrap})

    @property
    def partitions(self) -> list[Partition]:
        return [Partition(self.name, number) for number in range(PARTITIONS)]

    @property
    def catalog(self) -> Catalog:
        return open_catalog(self.config)

    def table(self, name: str | None = None) -> Table:
        return self.catalog.load_table(name or self.tables[0])

    def create(self) -> Pipeline:
        self.topics.create(self.name, PARTITIONS, 1)
        self.catalog.create_namespace_if_not_exists("db")
        for table in self.tables:
            self.catalog.create_table(table, SCHEMA, partition_spec=SPEC)
        return self

    # -- load --

    def produce(self, ids: Iterable[int], spoil: Iterable[int] = ()) -> None:
        """Send a good record per id and a broken one per number of `spoil`, spread over the partitions."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        for number in ids:
            self.send(producer, number, record(number))
            self.sent[number] += 1
        for number in spoil:
            self.send(producer, number, broken(number))
            self.spoiled[broken(number)] += 1
        assert producer.flush(120) == 0
        producer.close()

    def send(self, producer: Producer, number: int, value: bytes) -> None:
        while True:
            try:
                producer.produce(self.name, value, partition=number % PARTITIONS)
                return
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                # A broker that has just come back does not know its topics yet.
                if error.args[0].code() != KafkaError._UNKNOWN_TOPIC:
                    raise
                producer.poll(0.1)

    # -- the job in this process --

    def manager(
        self,
        spark: SparkPlane,
        reached: Callable[[str], None] = lambda point: None,
        shared: WorkerResources | None = None,
    ) -> SinkManager:
        runner = batch_runner(self.name, self.config, self.worker, lambda: spark)
        return sink_manager(self.name, self.config, self.worker, runner, reached, shared)

    def drain(self, spark: SparkPlane, reached: Callable[[str], None] = lambda point: None) -> None:
        """Run the job in this process until nothing waits, as the next manager after a crash would."""
        manager = self.manager(spark, reached)
        try:
            drain(manager)
        finally:
            manager.close()

    # -- what came of it --

    def ids(self, table: str | None = None) -> Counter[int]:
        rows = self.table(table).scan(selected_fields=("id",)).to_arrow()
        return Counter(rows.column("id").to_pylist())

    def dead_letters(self) -> Counter[bytes]:
        return Counter(values(self.bootstrap, self.dead_letter_topic, 1))

    def group_offsets(self) -> Offsets:
        found = self.topics.group_offsets(f"connect-{self.name}", self.partitions)
        return Offsets({partition: offset.next for partition, offset in found.items()})

    def check(self) -> None:
        """Every id is in every table once, every broken record a dead letter once, the group at the end."""
        for table in self.tables:
            assert_same(self.ids(table), self.sent, table)
        if self.spoiled:
            assert_same(self.dead_letters(), self.spoiled, self.dead_letter_topic)
        assert self.group_offsets() == self.topics.ends(self.partitions)


def assert_same(found: Counter[_T], wanted: Counter[_T], where: str) -> None:
    missing = [item for item in wanted if item not in found]
    strange = [item for item in found if item not in wanted]
    wrong = {item: count for item, count in found.items() if item in wanted and count != wanted[item]}
    assert not (missing or strange or wrong), (
        f"{where}: {len(missing)} missing {missing[:5]}, "
        f"{len(wrong)} not once {dict(list(wrong.items())[:5])}, "
        f"{len(strange)} never sent {strange[:5]}, of {wanted.total()}"
    )


def values(bootstrap: str, topic: str, partitions: int) -> Iterator[bytes]:
    """All committed values of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "crash-tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ended: set[int] = set()
    try:
        while len(ended) < partitions:
            message = consumer.poll(60)
            assert message is not None, f"topic '{topic}' sends nothing"
            error = message.error()
            if error is None:
                yield message.value() or b""
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
            else:
                raise AssertionError(error.str())
    finally:
        consumer.close()


def drain(manager: SinkManager, seconds: float = PATIENCE) -> None:
    """Repeat the manager's turns until nothing waits."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            pause = manager.tick()
        except RetriableError as error:
            print("retry", error, flush=True)
            pause = 0.2
        else:
            if pause and manager.progress.lag == 0:
                return
        time.sleep(pause)
    raise AssertionError(f"not drained after {seconds} s: {manager.progress}")
