"""Commits of Java's files: each file once, whoever else commits, and whatever the catalog answers."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)

from icestream.api.errors import CommitUnknown, FatalError
from icestream.connectors.iceberg.coordinator.events import DataWritten, TableReference, WrittenFile
from icestream.connectors.iceberg.coordinator.rounds import Envelope
from icestream.connectors.iceberg.coordinator.table_commits import JavaJob, Outcome, Round, TableCommits

JOB = JavaJob("control", "connect-x", "x-0")
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with closing(SqlCatalog("iceberg", uri=uri, warehouse=f"file://{tmp_path}")) as made:
        made.create_namespace("db")
        yield made


def table(catalog: SqlCatalog, name: str = "db.t", schema: Schema = SCHEMA, **more: Any) -> Table:
    return catalog.create_table(name, schema, **more)


def envelope(table: Table, offset: int, *paths: str, partition: int = 0, **more: Any) -> Envelope:
    *namespace, name = table.name()
    reference = TableReference("iceberg", tuple(namespace), name, table.metadata.table_uuid)
    files = tuple(WrittenFile(path, "PARQUET", 10, 1000, **more) for path in paths)
    return Envelope(partition, offset, DataWritten(uuid.uuid4(), reference, files))


def commit(
    catalog: SqlCatalog,
    *envelopes: Envelope,
    positions: dict[int, int] | None = None,
    through: dt.datetime | None = None,
    reached: Callable[[str], None] = lambda point: None,
    ends: dict[int, int] | None = None,
) -> list[Outcome]:
    commits = TableCommits(catalog, JOB, 4, lambda: ends or {0: 10**6, 1: 10**6})
    last = max((one.offset for one in envelopes), default=0) + 1
    round_ = Round(uuid.uuid4(), positions or {0: last}, through)
    try:
        return commits.commit(round_, envelopes, lambda: None, reached)
    finally:
        commits.close()


def paths(catalog: SqlCatalog, name: str = "db.t") -> list[str]:
    return sorted(task.file.file_path for task in catalog.load_table(name).scan().plan_files())


def floor(catalog: SqlCatalog, name: str = "db.t") -> Any:
    snapshot = catalog.load_table(name).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    return json.loads(snapshot.summary.additional_properties[JOB.offsets_key])


def test_files_land_once_each_and_say_up_to_where(catalog: SqlCatalog) -> None:
    t = table(catalog)
    through = dt.datetime(2026, 8, 1, 10, 15, 30, tzinfo=dt.UTC)
    first = envelope(t, 3, "file:/a", "file:/b")
    (outcome,) = commit(
        catalog, first, envelope(t, 5, "file:///b", "file:/c"), positions={0: 7, 1: 2}, through=through
    )
    assert (outcome.files, outcome.rows, outcome.failure) == (3, 30, None)
    assert paths(catalog) == ["file:/a", "file:/b", "file:/c"] and floor(catalog) == {"0": 7, "1": 2}
    snapshot = catalog.load_table("db.t").current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    said = snapshot.summary.additional_properties
    assert (said["kafka.connect.task-id"], said["kafka.connect.valid-through-ts"]) == (
        "x-0",
        "2026-08-01T10:15:30Z",
    )
    # What is before the table's offsets is in it; positions never go back.
    (again,) = commit(catalog, first, envelope(t, 6, "file:/c"), positions={0: 7})
    assert again.snapshot_id is None and again.failure is None
    commit(catalog, envelope(t, 8, "file:/d"), positions={0: 9})
    assert floor(catalog) == {"0": 9, "1": 2}


def test_a_lost_answer_is_not_a_lost_commit(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    t = table(catalog)
    sent = catalog.commit_table

    def landed_and_lost(*arguments: Any, **named: Any) -> Any:
        sent(*arguments, **named)
        raise OSError("connection reset")

    monkeypatch.setattr(catalog, "commit_table", landed_and_lost)
    (outcome,) = commit(catalog, envelope(t, 0, "file:/a"))
    assert outcome.failure is None
    assert outcome.snapshot_id == catalog.load_table("db.t").metadata.current_snapshot_id


def test_a_catalog_that_goes_away_leaves_the_files_waiting(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = table(catalog)

    def away(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(catalog, "load_table", away)
        raise OSError("no route")

    with monkeypatch.context() as broken:
        broken.setattr(catalog, "commit_table", away)
        broken.setattr(catalog, "load_table", catalog.load_table)
        (outcome,) = commit(catalog, envelope(t, 0, "file:/a"))
        assert isinstance(outcome.failure, CommitUnknown)
    monkeypatch.undo()
    assert paths(catalog) == []
    (outcome,) = commit(catalog, envelope(t, 0, "file:/a"))
    assert outcome.failure is None and paths(catalog) == ["file:/a"]


def test_others_may_append_at_the_same_time(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    t = table(catalog)
    sent, lost = catalog.commit_table, []

    def refused_first(*arguments: Any, **named: Any) -> Any:
        if not lost:
            lost.append(1)
            raise CommitFailedException("somebody was faster")
        return sent(*arguments, **named)

    monkeypatch.setattr(catalog, "commit_table", refused_first)
    (outcome,) = commit(catalog, envelope(t, 0, "file:/a"))
    assert outcome.failure is None and paths(catalog) == ["file:/a"] and lost


def test_files_that_another_coordinator_committed_meanwhile_are_not_committed_again(
    catalog: SqlCatalog,
) -> None:
    t = table(catalog)
    first, second = envelope(t, 0, "file:/a"), envelope(t, 1, "file:/b")

    def overtake(point: str) -> None:
        if point == "prepared" and not paths(catalog):
            commit(catalog, first)

    (outcome,) = commit(catalog, first, second, reached=overtake)
    assert outcome.failure is None and outcome.files == 1
    assert paths(catalog) == ["file:/a", "file:/b"] and floor(catalog) == {"0": 2}


def test_expired_snapshots_do_not_bring_old_files_back(catalog: SqlCatalog) -> None:
    t = table(catalog)
    old = envelope(t, 0, "file:/a")
    commit(catalog, old)
    with catalog.load_table("db.t").transaction() as by_somebody_else:
        by_somebody_else.update_snapshot().fast_append().commit()
    first = catalog.load_table("db.t").metadata.snapshots[0].snapshot_id
    catalog.load_table("db.t").maintenance.expire_snapshots().by_id(first).commit()
    (outcome,) = commit(catalog, old, positions={0: 5})
    assert outcome.snapshot_id is None and outcome.failure is None


def test_a_topic_that_ends_before_the_tables_offset_is_another_one(catalog: SqlCatalog) -> None:
    t = table(catalog)
    commit(catalog, envelope(t, 7, "file:/a"))
    with pytest.raises(FatalError, match="was deleted and created again"):
        commit(catalog, envelope(t, 0, "file:/b"), ends={0: 1})
    # Read by another coordinator that is ahead of us: nothing is wrong.
    (outcome,) = commit(catalog, envelope(t, 0, "file:/b"), ends={0: 9})
    assert outcome.snapshot_id is None


def test_many_tables_at_the_same_time(catalog: SqlCatalog) -> None:
    tables = [table(catalog, f"db.t{number}") for number in range(12)]
    outcomes = commit(catalog, *(envelope(one, at, f"file:/{at}") for at, one in enumerate(tables)))
    assert all(one.failure is None for one in outcomes) and len(outcomes) == 12
    assert [paths(catalog, f"db.t{number}") for number in range(12)] == [[f"file:/{n}"] for n in range(12)]


def test_partition_values_of_every_kind_are_committed(catalog: SqlCatalog) -> None:
    schema = Schema(
        NestedField(1, "amount", DecimalType(9, 2)),
        NestedField(2, "id", UUIDType()),
        NestedField(3, "raw", BinaryType()),
        NestedField(4, "at", TimestampType()),
        NestedField(5, "name", StringType()),
    )
    fields = [PartitionField(at, 999 + at, IdentityTransform(), f"p{at}") for at in range(1, 6)]
    spec = PartitionSpec(*fields, PartitionField(4, 1010, DayTransform(), "day"))
    t = table(catalog, schema=schema, partition_spec=spec)
    amount = (-12345).to_bytes(4, "big", signed=True)
    id_ = uuid.UUID(int=7)
    values = (amount, id_.bytes, b"\x00\xff", 1_785_579_330_123_456, "x", 20666)
    (outcome,) = commit(
        catalog,
        envelope_of(t, values),
        replace(envelope_of(t, (None,) * 6), offset=1),
    )
    assert outcome.failure is None
    found = [task.file.partition for task in catalog.load_table("db.t").scan().plan_files()]
    read = sorted(([one[at] for at in range(6)] for one in found), key=str)
    expected = [decimal.Decimal("-123.45"), id_.bytes, b"\x00\xff", 1_785_579_330_123_456, "x", 20666]
    assert [one.bytes if isinstance(one, uuid.UUID) else one for one in read[0]] == expected
    assert read[1] == [None] * 6


def envelope_of(table: Table, values: tuple[Any, ...]) -> Envelope:
    made = envelope(table, 0)
    path = f"file:/{uuid.uuid4()}"
    file = WrittenFile(path, "PARQUET", 10, 1000, partition=values)
    return replace(made, written=replace(made.written, data_files=(file,)))


def test_a_table_of_format_3_is_left_to_java(catalog: SqlCatalog) -> None:
    t = table(catalog, partition_spec=UNPARTITIONED_PARTITION_SPEC)
    file = Path(t.metadata_location.removeprefix("file://"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "format-version": 3, "next-row-id": 0}))
    with pytest.raises(FatalError, match=r"format version 3.*hand the job back"):
        commit(catalog, envelope(t, 0, "file:/a"))
