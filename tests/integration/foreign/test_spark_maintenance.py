"""Our maintenance and Spark's on one table: after each step Spark reads the same rows, ours are proved."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionSpec

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.expiry import ExpiryLimits, expire
from icestream.connectors.iceberg.maintenance.orphans import remove_orphans
from icestream.connectors.iceberg.maintenance.replace_commit import Replacement, replace_files
from tests.unit.connectors.iceberg.maintained import BUCKETS, PLAIN, SCHEMA, Job, data_files, loaded

pytestmark = pytest.mark.network

LAST = ExpiryLimits(dt.timedelta(0), retain_last=1)
LATER = dt.datetime.now(dt.UTC) + dt.timedelta(days=5)


def deletes(catalog: Catalog) -> int:
    head = loaded(catalog).current_snapshot()
    assert head is not None
    assert head.summary is not None
    return int(head.summary["total-delete-files"] or 0)


@pytest.mark.parametrize("spec", [PLAIN, BUCKETS], ids=["plain", "partitioned"])
def test_spark_reads_the_same_rows_after_each_step(
    sqlite_catalog: dict[str, str], foreign_spark: Any, spec: PartitionSpec
) -> None:
    catalog = open_catalog(sqlite_catalog)
    catalog.create_namespace("ns")
    name = sqlite_catalog["iceberg.catalog"]
    properties = {
        "format-version": "2",
        **{f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")},
    }
    catalog.create_table("ns.t", SCHEMA, partition_spec=spec, properties=properties)
    job = Job(catalog)

    def spark(*statements: str) -> list[Any]:
        return foreign_spark(sqlite_catalog, ";".join(statements))  # type: ignore[no-any-return]

    def seen() -> Counter[int]:
        (result,) = spark("SELECT id FROM ns.t")
        return Counter(row[0] for row in result.rows)

    for _ in range(6):
        job.commit(100)
    folders = data_files(catalog) // 6
    compact(loaded(catalog), CompactionLimits(4), merge_manifests=2)
    assert seen() == Counter(range(600))
    job.proves(600)

    # Rows that Spark deletes and changes are in delete files and files of its own; a merge applies them.
    spark("DELETE FROM ns.t WHERE id % 10 = 3", "UPDATE ns.t SET text = 'changed' WHERE id % 10 = 4")
    job.commit(100)
    left = Counter(number for number in range(600) if number % 10 != 3) + Counter(range(600, 700))
    assert seen() == left
    had = deletes(catalog)
    done = compact(loaded(catalog), CompactionLimits(2))
    assert done.deletes_removed == had > 0
    assert deletes(catalog) == 0
    assert data_files(catalog) <= 3 * folders
    assert seen() == left
    (changed,) = spark("SELECT count(*), count(DISTINCT id) FROM ns.t WHERE text = 'changed'")
    assert tuple(changed.rows[0]) == (60, 60)
    head = loaded(catalog).current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary["total-records"] == str(left.total())
    # What came after the deletes is still proved, the rest is counted.
    audit = job.table.audit()
    assert audit.row_offsets is not None
    found = audit.row_offsets()
    assert found.foreign_rows == 540
    assert [len(layer) for layer in found.layers[job.source]] == [100]

    # Spark's own compaction keeps the rows and drops the origins, ours goes on after it.
    spark(
        f"CALL {name}.system.rewrite_data_files(table => 'ns.t', options => map('rewrite-all', 'true'))",
        f"CALL {name}.system.rewrite_manifests('ns.t')",
    )
    for _ in range(3):
        job.commit(100)
    left += Counter(range(700, 1000))
    compact(loaded(catalog), CompactionLimits(2))
    replace_files(loaded(catalog), Replacement("manifests", merge_manifests=2))
    expire(lambda: loaded(catalog), LAST, LATER)
    remove_orphans(loaded(catalog), {}, dt.timedelta(days=1), LATER)
    assert seen() == left
    job.proves(1000, unknown=640)
    assert job.at == 1000

    # And Spark's expiry after ours: the checkpoint is still there.
    job.commit(100)
    spark(
        f"CALL {name}.system.expire_snapshots(table => 'ns.t', retain_last => 1,"
        " older_than => timestamp'2999-01-01 00:00:00')"
    )
    assert job.at == 1100
    assert seen() == left + Counter(range(1000, 1100))
