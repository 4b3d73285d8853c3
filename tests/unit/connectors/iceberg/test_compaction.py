"""Small files become large ones with the same rows, the same proof and the same checkpoints."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ty
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import TopicIds, checkpoint_after
from icestream.api.errors import CommitConflict
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.commits.sweep import file_prefix
from icestream.connectors.iceberg.files.stage import StageWriter
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.replace_commit import Replacement, replace_files
from icestream.connectors.iceberg.table import IcebergTable
from icestream.records.origins import RowOrigins
from icestream.tables.file_origins import Origins
from icestream.tables.maintenance.small_files import growing
from tests.unit.connectors.iceberg.maintained import (
    BUCKETS,
    PLAIN,
    Job,
    committed,
    data_files,
    ids,
    loaded,
    new_catalog,
    on_disk,
)

FOUR = CompactionLimits(min_files=4)


@pytest.mark.parametrize(("spec", "folders"), [(PLAIN, 1), (BUCKETS, 3)])
def test_rows_proof_and_checkpoint_stay(tmp_path: Path, spec: PartitionSpec, folders: int) -> None:
    catalog = new_catalog(tmp_path, spec)
    job, other = Job(catalog), Job(catalog, "other", first=1000)
    for _ in range(5):
        job.commit()
    other.commit()
    rows, checkpoint, others = ids(catalog), job.table.found(), other.table.found()
    done = compact(loaded(catalog), FOUR)
    assert (done.files_before, done.files_after, done.rows) == (6 * folders, folders, 60)
    assert data_files(catalog) == folders
    assert ids(catalog) == rows
    assert (job.table.found(), other.table.found()) == (checkpoint, others)
    job.proves(50)
    other.proves(10)
    head = loaded(catalog).current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary.operation.value == "replace"
    assert {"icestream.job.job", "icestream.job.other"} <= head.summary.additional_properties.keys()
    assert head.summary["total-records"] == "60"
    assert head.summary["total-data-files"] == str(folders)
    # The job goes on, and a second run finds nothing.
    assert compact(loaded(catalog), FOUR).files_removed == 0
    job.commit()
    job.proves(60)


def test_few_files_and_large_files_are_left_alone(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 3)
    assert compact(loaded(catalog), FOUR).snapshot_id is None
    job.commit()
    assert compact(loaded(catalog), CompactionLimits(4, target_bytes=100)).snapshot_id is None, (
        "none is small"
    )
    dry = compact(loaded(catalog), FOUR, dry_run=True)
    assert (dry.files_before, dry.files_after, dry.snapshot_id) == (4, 1, None)
    assert data_files(catalog) == 4


def test_what_is_merged_at_least_doubles() -> None:
    def merged(*sizes: int) -> int:
        return len(growing(sizes, lambda size: size))

    assert merged(1, 1, 1) == 3
    assert merged(1, 1, 1, 10) == 3
    assert merged(1, 100, 101) == 3, "a tiny one does not hold up the others"
    assert merged(1, 1, 2, 4, 9) == 4
    assert merged(5) == 0


def test_a_file_larger_than_the_target_is_never_made(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 12)
    size = next(iter(loaded(catalog).scan().plan_files())).file.file_size_in_bytes
    done = compact(loaded(catalog), CompactionLimits(4, target_bytes=size * 3 + size // 2))
    assert done.files_added == 4
    job.proves(120)


def test_offsets_that_were_read_twice_are_twice_in_the_merged_file(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    job, again = Job(catalog), Job(catalog, "again")
    again.source = job.source
    for _ in range(3):
        job.commit()
        again.commit()
    compact(loaded(catalog), FOUR)
    (path,) = [task.file.file_path for task in loaded(catalog).scan().plan_files()]
    origins = Origins.from_footer(pq.read_metadata(path.removeprefix("file://")))
    assert origins is not None
    assert [len(layer) for layer in origins.layers[job.source]] == [30, 30]
    assert origins.rows == 60
    # And so they stay when it is merged again.
    for _ in range(4):
        job.commit(100)
    compact(loaded(catalog), FOUR)
    audit = job.table.audit()
    assert audit.row_offsets is not None
    assert [len(layer) for layer in audit.row_offsets().layers[job.source]] == [430, 30]


def test_files_of_older_schemas_get_the_columns_of_today(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 4)
    with loaded(catalog).update_schema() as update:
        update.add_column("score", DoubleType())
        update.rename_column("text", "words")
    compact(loaded(catalog), FOUR)
    rows = loaded(catalog).scan().to_arrow()
    assert rows.column_names == ["id", "words", "score"]
    assert sorted(rows["words"].to_pylist()) == sorted(f"row {number}" for number in range(40))
    job.proves(40)


def test_rows_of_others_are_counted_and_not_claimed(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 3)
    table = loaded(catalog)
    table.append(table.scan(row_filter="id < 5").to_arrow())
    compact(loaded(catalog), FOUR)
    assert data_files(catalog) == 1
    job.proves(30, unknown=5)


def test_a_batch_that_lands_meanwhile_stays_and_so_does_the_merge(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 4)
    compact(loaded(catalog), FOUR, reached=lambda point: job.commit() if point == "rewritten" else None)
    assert data_files(catalog) == 2
    assert ids(catalog) == Counter(range(50))
    assert job.table.found().offsets == Offsets({job.source: 50})
    job.proves(50)


def test_the_jobs_own_commit_survives_a_merge_meanwhile(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 4)
    sent = catalog.commit_table

    def late(*arguments: object) -> object:
        catalog.__dict__.pop("commit_table")
        compact(loaded(new_catalog(tmp_path)), FOUR)
        return sent(*arguments)  # type: ignore[arg-type]

    catalog.__dict__["commit_table"] = late
    job.commit()
    assert data_files(catalog) == 2
    job.proves(50)


def test_of_two_who_merge_the_same_files_one_lands_and_leaves_nothing(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 4)

    def other(point: str) -> None:
        if point == "rewritten":
            compact(loaded(catalog), FOUR)

    before = on_disk(tmp_path, "*.parquet")
    with pytest.raises(CommitConflict, match="no longer in the table") as conflict:
        compact(loaded(catalog), FOUR, reached=other)
    assert conflict.value.certain
    assert len(on_disk(tmp_path, "*.parquet") - before) == 1, "the one that landed"
    job.proves(40)


def test_rows_that_are_removed_meanwhile_do_not_come_back(tmp_path: Path) -> None:
    catalog, _ = committed(tmp_path, 4)
    with pytest.raises(CommitConflict):
        compact(
            loaded(catalog),
            FOUR,
            reached=lambda point: loaded(catalog).delete("id < 5") if point == "rewritten" else None,
        )
    assert ids(catalog) == Counter(range(5, 40))


def test_manifests_are_merged_and_files_stay(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 10, rows=100)
    done = replace_files(loaded(catalog), Replacement("manifests", merge_manifests=5))
    assert (done.manifests_before, done.manifests_after) == (10, 1)
    assert ids(catalog) == Counter(range(1000))
    job.proves(1000)
    job.commit(100)
    job.proves(1100)


F = NestedField
EVERY_TYPE = Schema(
    F(1, "id", LongType(), required=True),
    F(2, "at", ty.TimestamptzType()),
    F(3, "local", ty.TimestampType()),
    F(4, "day", ty.DateType()),
    F(5, "clock", ty.TimeType()),
    F(6, "price", ty.DecimalType(10, 2)),
    F(7, "big", ty.DecimalType(38, 10)),
    F(8, "raw", ty.BinaryType()),
    F(9, "key", ty.UUIDType()),
    F(10, "four", ty.FixedType(4)),
    F(11, "is_on", ty.BooleanType()),
    F(12, "ratio", DoubleType()),
    F(13, "small", ty.FloatType()),
    F(14, "number", ty.IntegerType()),
    F(15, "inner", ty.StructType(F(20, "x", ty.IntegerType()), F(21, "y.z", ty.StringType()))),
    F(16, "list", ty.ListType(22, ty.LongType(), False)),
    F(17, "map", ty.MapType(23, ty.StringType(), 24, DoubleType(), False)),
    F(18, "deep", ty.ListType(25, ty.StructType(F(26, "k", ty.StringType(), required=True)), False)),
)


def every_type(number: int) -> dict[str, Any]:
    if number % 5 == 0:
        return dict.fromkeys(EVERY_TYPE.column_names[1:14]) | {"id": number}
    return {
        "id": number,
        "at": dt.datetime(2026, 1, 1, 12, 0, 0, number, tzinfo=dt.UTC),
        "local": dt.datetime(1969, 1, 1, 12, 0, 0, number),
        "day": dt.date(2026, 1, 1 + number % 28),
        "clock": dt.time(12, 0, number % 60, number),
        "price": decimal.Decimal(f"{number}.25"),
        "big": decimal.Decimal(f"-{number}.0000000001"),
        "raw": bytes([number % 256]) * 3,
        "key": uuid.UUID(int=number).bytes,
        "four": number.to_bytes(4, "big"),
        "is_on": number % 2 == 0,
        "ratio": number / 3,
        "small": float(number),
        "number": -number,
        "inner": {"x": number, "y.z": "z" * (number % 3)},
        "list": [number, None],
        "map": [("a", number / 2), ("b", None)],
        "deep": [{"k": str(number)}],
    }


@pytest.mark.parametrize("is_changed", [False, True], ids=["as they are", "of an older schema"])
def test_every_type_survives(tmp_path: Path, is_changed: bool) -> None:
    """Files of the table's schema are copied by Arrow, others are read by PyIceberg."""
    catalog = new_catalog(tmp_path)
    catalog.drop_table("ns.t")
    catalog.create_table("ns.t", EVERY_TYPE)
    table = IcebergTable(catalog, "ns.t", "job", write_props={})
    source = Partition("t", 0)
    for start in range(0, 40, 10):
        plan = table.plan({})
        rows = pa.Table.from_pylist([every_type(n) for n in range(start, start + 10)], plan.arrow_schema)
        writer = StageWriter(plan)
        writer.write(rows, RowOrigins.of_one(source, np.arange(start, start + 10)))
        before = table.found().checkpoint
        batch = Batch(f"c{start}", Offsets({source: start}), Offsets({source: start + 10}))
        counts, topics = {source: Counts(10, 10)}, TopicIds("c", {"t": "id"})
        checkpoint = checkpoint_after(before, batch, counts, topics)
        table.commit(Commit(checkpoint, before, plan, Staged(writer.close())))
    if is_changed:
        with loaded(catalog).update_schema() as update:
            update.add_column("extra", ty.StringType())
            update.update_column("number", LongType())

    def by_id() -> list[dict[str, Any]]:
        return sorted(loaded(catalog).scan().to_arrow().to_pylist(), key=lambda row: int(row["id"]))

    bounds = {task.file.file_path: task.file.lower_bounds for task in loaded(catalog).scan().plan_files()}
    expected = by_id()
    assert compact(loaded(catalog), FOUR).files_after == 1
    assert by_id() == expected
    (merged,) = [task.file for task in loaded(catalog).scan().plan_files()]
    assert merged.lower_bounds.keys() >= set.intersection(*(set(one) for one in bounds.values()))


def test_what_a_killed_merge_leaves_is_swept_with_the_files_of_dead_batches(tmp_path: Path) -> None:
    catalog, job = committed(tmp_path, 4)

    class Killed(BaseException):
        pass

    def kill(point: str) -> None:
        raise Killed

    prefix = file_prefix("job", loaded(catalog).metadata.table_uuid)
    known = on_disk(tmp_path, "*.parquet")
    with pytest.raises(Killed):
        compact(loaded(catalog), FOUR, file_prefix=prefix, reached=kill)
    (left,) = on_disk(tmp_path, "*.parquet") - known
    compact(loaded(catalog), FOUR, file_prefix=prefix)
    (merged,) = on_disk(tmp_path, "*.parquet") - known - {left}
    job.commit()
    checkpoint = job.table.found().checkpoint
    assert checkpoint is not None
    now = dt.datetime.now(dt.UTC)
    assert job.table.sweep(checkpoint.commit, now) == 0, "it is young"
    # A merge that waits for a long commit of the job lands after it: nothing of it may be gone by then.
    assert job.table.sweep(checkpoint.commit, now + dt.timedelta(hours=20)) == 0
    assert job.table.sweep(checkpoint.commit, now + dt.timedelta(hours=25)) == 1
    assert left not in on_disk(tmp_path, "*.parquet")
    assert merged in on_disk(tmp_path, "*.parquet")
    job.proves(50)
