"""What an Iceberg table does besides what every target does: new columns, changes by others, refusals."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.errors import CommitConflict, ConfigError
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StagedFile, StageWriter
from icestream.connectors.iceberg.table import IcebergTable
from icestream.records.origins import RowOrigins

P = Partition("t", 0)
SOURCE = TopicIds("cluster", {"t": "id"})
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType()))
SPECS = {
    "plain": UNPARTITIONED_PARTITION_SPEC,
    "partitioned": PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "id_bucket")),
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    opened = open_catalog(
        {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        }
    )
    opened.create_namespace("ns")
    return opened


@pytest.fixture(params=sorted(SPECS))
def table(request: pytest.FixtureRequest, catalog: Catalog) -> Iterator[IcebergTable]:
    catalog.create_table("ns.t", SCHEMA, partition_spec=SPECS[request.param])
    yield IcebergTable(catalog, "ns.t", "job", write_props={})


def staged(table: IcebergTable, start: int, until: int) -> list[StagedFile]:
    plan = table.plan({})
    rows = pa.table({"id": range(start, until), "text": ["x"] * (until - start)}, schema=plan.arrow_schema)
    writer = StageWriter(plan)
    writer.write(rows, RowOrigins.of_one(P, np.arange(start, until)))
    return writer.close()


def commit(table: IcebergTable, start: int, until: int, before: Checkpoint | None) -> None:
    batch = Batch(f"commit-{start}", Offsets({P: start}), Offsets({P: until}))
    checkpoint = checkpoint_after(before, batch, {P: Counts(until - start, until - start)}, SOURCE)
    table.commit(Commit(checkpoint, before, table.plan({}), Staged(staged(table, start, until))))


def ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist())


def test_new_columns_come_with_the_rows_that_have_them(table: IcebergTable, catalog: Catalog) -> None:
    fields = {("extra",): pa.int64()}
    plan = table.plan(fields)
    assert "extra" not in catalog.load_table("ns.t").schema().column_names
    rows = pa.table({"id": [1], "text": ["a"], "extra": [5]}, schema=plan.arrow_schema)
    writer = StageWriter(plan)
    writer.write(rows, RowOrigins.of_one(P, np.arange(1)))
    batch = Batch("c", Offsets({P: 0}), Offsets({P: 1}))
    checkpoint = checkpoint_after(None, batch, {P: Counts(1, 1)}, SOURCE)
    table.commit(Commit(checkpoint, None, plan, Staged(writer.close())))
    loaded = catalog.load_table("ns.t")
    assert loaded.scan().to_arrow().to_pylist() == [{"id": 1, "text": "a", "extra": 5}]
    assert len(loaded.metadata.metadata_log) == 1


def test_a_schema_that_somebody_changed_meanwhile_is_a_conflict(
    table: IcebergTable, catalog: Catalog
) -> None:
    files, plan = staged(table, 0, 5), table.plan({})
    with catalog.load_table("ns.t").update_schema() as update:
        update.add_column("theirs", StringType())
    batch = Batch("c", Offsets({P: 0}), Offsets({P: 5}))
    checkpoint = checkpoint_after(None, batch, {P: Counts(5, 5)}, SOURCE)
    with pytest.raises(CommitConflict, match="changed while a batch was written"):
        table.commit(Commit(checkpoint, None, plan, Staged(files)))


def test_a_partition_spec_that_somebody_changed_meanwhile_is_a_conflict(
    table: IcebergTable, catalog: Catalog
) -> None:
    files, plan = staged(table, 0, 5), table.plan({})
    with catalog.load_table("ns.t").update_spec() as update:
        update.add_identity("text")
    batch = Batch("c", Offsets({P: 0}), Offsets({P: 5}))
    checkpoint = checkpoint_after(None, batch, {P: Counts(5, 5)}, SOURCE)
    with pytest.raises(CommitConflict, match=r"partition spec of ns\.t changed"):
        table.commit(Commit(checkpoint, None, plan, Staged(files)))
    assert ids(catalog) == []
    commit(table, 0, 5, None)
    assert catalog.load_table("ns.t").scan("text == 'x'").count() == 5


def test_a_missing_table_is_named(catalog: Catalog) -> None:
    with pytest.raises(ConfigError, match=r"Table 'ns\.absent' is not in catalog"):
        IcebergTable(catalog, "ns.absent", "job", write_props={}).found()


def test_a_table_that_wants_other_files_is_refused(catalog: Catalog) -> None:
    catalog.create_table("ns.orc", SCHEMA, properties={"write.format.default": "orc"})
    with pytest.raises(ConfigError, match=r"write\.format\.default: 'orc' is not parquet"):
        IcebergTable(catalog, "ns.orc", "job", write_props={}).plan({})
    IcebergTable(catalog, "ns.orc", "job", write_props={"write.format.default": "parquet"}).plan({})
