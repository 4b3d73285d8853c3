"""A table with jobs that commit to it, without Kafka and Spark, for the tests of maintenance."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap64

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import TopicIds, checkpoint_after
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit, Receipt
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StagedFile, StageWriter
from icestream.connectors.iceberg.table import IcebergTable
from icestream.records.origins import RowOrigins

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType()))
BUCKETS = PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "id_bucket"))
PLAIN = UNPARTITIONED_PARTITION_SPEC


def catalog_config(folder: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "t",
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }


def new_catalog(folder: Path, spec: PartitionSpec = PLAIN) -> Catalog:
    """With the empty table ns.t."""
    catalog = open_catalog(catalog_config(folder))
    catalog.create_namespace_if_not_exists("ns")
    catalog.create_table_if_not_exists("ns.t", SCHEMA, partition_spec=spec)
    return catalog


@dataclass
class Job:
    """Commits its own records, 0, 1, 2 and so on plus `first`, to ns.t."""

    catalog: Catalog
    name: str = "job"
    first: int = 0
    table: IcebergTable = field(init=False)

    def __post_init__(self) -> None:
        self.table = IcebergTable(self.catalog, "ns.t", self.name, write_props={})
        self.source = Partition(f"topic-{self.name}", 0)

    @property
    def at(self) -> int:
        """Where the table says the job is."""
        return self.table.found().offsets.get(self.source) or 0

    def commit(self, rows: int = 10) -> Receipt:
        start = self.at
        batch = Batch(str(uuid.uuid4()), Offsets({self.source: start}), Offsets({self.source: start + rows}))
        before = self.table.found().checkpoint
        counts = {self.source: Counts(rows, rows)}
        topics = TopicIds("cluster", {self.source.topic: "id"})
        checkpoint = checkpoint_after(before, batch, counts, topics)
        plan = self.table.plan({})
        files = Staged(self.stage(start, start + rows, batch.id))
        return self.table.commit(Commit(checkpoint, before, plan, files))

    def stage(self, start: int, until: int, batch: str) -> list[StagedFile]:
        plan = self.table.plan({})
        ids = range(self.first + start, self.first + until)
        rows = pa.table({"id": ids, "text": [f"row {id_}" for id_ in ids]}, schema=plan.arrow_schema)
        writer = StageWriter(plan, batch)
        writer.write(rows, RowOrigins.of_one(self.source, np.arange(start, until)))
        return writer.close()

    def proves(self, until: int, unknown: int = 0) -> None:
        """What `verify --deep` reads: each offset once, and no row whose origin nobody knows."""
        audit = self.table.audit()
        assert audit.row_offsets is not None
        found = audit.row_offsets()
        assert found.foreign_rows == unknown
        if not unknown:
            assert found.layers.get(self.source, []) == ([BitMap64(range(until))] if until else [])


def committed(folder: Path, batches: int, rows: int = 10) -> tuple[Catalog, Job]:
    """A table without partitions, and the job that has committed so many batches to it."""
    catalog = new_catalog(folder)
    job = Job(catalog)
    for _ in range(batches):
        job.commit(rows)
    return catalog, job


def loaded(catalog: Catalog) -> Table:
    return catalog.load_table("ns.t")


def ids(catalog: Catalog) -> Counter[int]:
    return Counter(loaded(catalog).scan().to_arrow()["id"].to_pylist())


def data_files(catalog: Catalog) -> int:
    return len(list(loaded(catalog).scan().plan_files()))


def on_disk(folder: Path, pattern: str) -> set[str]:
    return {str(path) for path in folder.rglob(pattern)}
