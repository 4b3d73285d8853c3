"""A pipeline whose table gets upserts, the changes that go into it, and a dict of what must come out."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.jobs.sinks.build import batch_runner
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.pipeline import PARTITIONS, Pipeline

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "region", StringType()),
    NestedField(3, "amount", LongType(), required=True),
    identifier_field_ids=[1],
)
SPEC = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="region"))
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """`op` None: a tombstone."""

    id: int
    op: str | None
    region: str = ""
    amount: int = 0

    @property
    def value(self) -> bytes | None:
        if self.op is None:
            return None
        if self.op in "dD":
            # As Debezium tells of a deletion where the table's replica identity is its key.
            return json.dumps({"id": self.id, "region": None, "op": self.op}).encode()
        row = {"id": self.id, "region": self.region, "amount": self.amount, "op": self.op}
        return json.dumps(row).encode()


@dataclass
class UpsertPipeline(Pipeline):
    model: dict[int, Row] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, str]:
        return {
            **super().config,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "iceberg.tables.cdc-field": "op",
            **self.options,
        }

    def create(self) -> UpsertPipeline:
        self.topics.create(self.name, PARTITIONS, 1)
        self.catalog.create_namespace_if_not_exists("db")
        for table in self.tables:
            self.catalog.create_table(table, SCHEMA, partition_spec=SPEC, properties={"format-version": "2"})
        return self

    def change(self, changes: Iterable[Change]) -> None:
        """Send changes, each key to its partition, and follow them in the model."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        for one in changes:
            key = json.dumps({"id": one.id}).encode()
            producer.produce(self.name, one.value, key, partition=one.id % PARTITIONS)
            if one.op is None or one.op in "dD":
                self.model.pop(one.id, None)
            else:
                self.model[one.id] = (one.id, one.region, one.amount)
        assert producer.flush(120) == 0
        producer.close()

    def send_bad(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Records that change no row: values with keys."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value, key in records:
            producer.produce(self.name, value, key, partition=0)
        assert producer.flush(120) == 0
        producer.close()

    def staged_files(self) -> list[Path]:
        return list((self.folder / "warehouse").rglob("*.changes"))

    def rows(self) -> list[Row]:
        """The table as PyIceberg reads it."""
        found = self.table().scan().to_arrow().select(["id", "region", "amount"])
        return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def rows_in_spark(self, spark: SparkPlane) -> list[Row]:
        """The table as Spark reads it."""
        runner = batch_runner(self.name, self.config, self.worker, lambda: spark)
        assert runner.queries is not None
        text = "SELECT id, region, amount FROM crashes.db.t"
        rows = runner.queries.work(java_catalog(self.config), {}, lambda query: query.run(text), "a test")
        return sorted(tuple(row) for row in rows)

    def check(self) -> None:
        rows = self.rows()
        assert rows == sorted(self.model.values()), f"{len(rows)} rows, {len(self.model)} expected"
        assert self.group_offsets() == self.topics.ends(self.partitions)


def random_changes(rng: random.Random, keys: int, count: int) -> Iterator[Change]:
    """Inserts, updates that move a row to another partition, deletions and tombstones."""
    for _ in range(count):
        op = rng.choice(["c", "r", "u", "u", "U", "I", "d", "D", None])
        yield Change(rng.randrange(keys), op, f"region {rng.randrange(4)}", rng.randrange(10**6))


def upsert_pipeline(bootstrap: str, folder: Path, name: str, **options: str) -> UpsertPipeline:
    return UpsertPipeline(bootstrap, folder, name, options=options).create()
