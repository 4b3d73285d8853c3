"""Spark compacts, merges and expires our table through the same catalog; our job goes on with its offsets."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from pyiceberg import types as ty
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from tests.running import RunningConnector, StartConnector

pytestmark = pytest.mark.network

SCHEMA = Schema(
    ty.NestedField(1, "id", ty.LongType(), required=True),
    ty.NestedField(2, "at", ty.TimestamptzType()),
    ty.NestedField(3, "text", ty.StringType()),
)
SPEC = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=DayTransform(), name="at_day"),
    PartitionField(source_id=1, field_id=1001, transform=BucketTransform(2), name="id_bucket"),
)


def records(first: int, until: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "at": f"2026-11-{1 + number % 3:02d}T10:00:00Z", "text": f"text {number}"}
        for number in range(first, until)
    ]


def test_a_job_goes_on_after_compaction_merge_and_expiry(
    sqlite_catalog: dict[str, str],
    foreign_spark: Any,
    start_job: StartConnector,
    produce: Callable[[str, Sequence[Mapping[str, Any]]], None],
    drained: Callable[[RunningConnector, int], None],
) -> None:
    config = {
        **sqlite_catalog,
        "name": "foreign-writes",
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "foreign-writes",
        "tasks.max": "2",
        "iceberg.tables": "ns.written",
        "iceberg.control.commit.interval-ms": "500",
    }
    catalog = open_catalog(config)
    catalog.create_namespace("ns")
    catalog.create_table("ns.written", SCHEMA, partition_spec=SPEC)
    name = sqlite_catalog["iceberg.catalog"]

    def counted() -> Counter[int]:
        (result,) = foreign_spark(config, "SELECT id FROM ns.written")
        return Counter(row[0] for row in result.rows)

    produce("foreign-writes", records(0, 300))
    job = start_job("foreign-writes", config, paused=False)
    drained(job, 300)
    produce("foreign-writes", records(300, 600))
    drained(job, 600)
    assert counted() == Counter(range(600))

    # While the job runs: every file anew, one row changed, one row of Spark's own.
    rewritten, *_ = foreign_spark(
        config,
        f"CALL {name}.system.rewrite_data_files(table => 'ns.written',"
        " options => map('rewrite-all', 'true'));"
        "MERGE INTO ns.written USING (SELECT 5L AS id, 'merged' AS text UNION SELECT -1L, 'inserted') new"
        " ON written.id = new.id WHEN MATCHED THEN UPDATE SET text = new.text"
        " WHEN NOT MATCHED THEN INSERT (id, text) VALUES (new.id, new.text)",
    )
    assert rewritten.rows[0][0] >= 6
    produce("foreign-writes", records(600, 900))
    drained(job, 900)
    assert counted() == Counter(range(-1, 900))
    job.stop()

    # While the job is away: every snapshot but Spark's own newest is gone, and our checkpoint with them.
    foreign_spark(
        config,
        f"CALL {name}.system.rewrite_data_files(table => 'ns.written',"
        " options => map('rewrite-all', 'true'));"
        f"CALL {name}.system.expire_snapshots(table => 'ns.written', retain_last => 1,"
        " older_than => timestamp'2999-01-01 00:00:00')",
    )
    snapshots = catalog.load_table("ns.written").metadata.snapshots
    assert [snapshot.summary.operation.value for snapshot in snapshots if snapshot.summary] == ["replace"]
    produce("foreign-writes", records(900, 1200))
    again = start_job("foreign-writes", config, paused=False)
    drained(again, 1200)
    again.stop()
    assert counted() == Counter(range(-1, 1200))
    (texts,) = foreign_spark(config, "SELECT text FROM ns.written WHERE id IN (-1, 5) ORDER BY id")
    assert texts.rows == (("inserted",), ("merged",))
