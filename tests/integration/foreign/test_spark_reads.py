"""Spark's own Iceberg runtime reads what our sink wrote: every type, every transform, with pruning."""

import datetime as dt
import decimal
import json
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import transforms as tr
from pyiceberg import types as ty
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import TopicIds, checkpoint_after
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StagedFile, StageWriter
from icestream.connectors.iceberg.table import IcebergTable
from icestream.jsontext.table_rows import RowDecoder
from icestream.records.origins import RowOrigins
from icestream.records.payloads import Payloads

pytestmark = pytest.mark.network

F = ty.NestedField
SCHEMA = Schema(
    F(1, "id", ty.LongType(), required=True),
    F(2, "s", ty.StringType()),
    F(3, "t", ty.TimestamptzType()),
    F(4, "tt", ty.TimestampType()),
    F(5, "d", ty.DateType()),
    F(6, "dec", ty.DecimalType(10, 2)),
    F(7, "b", ty.BinaryType()),
    F(8, "u", ty.UUIDType()),
    F(9, "st", ty.StructType(F(20, "x", ty.IntegerType()), F(21, "y.z", ty.StringType()))),
    F(10, "l", ty.ListType(22, ty.LongType(), False)),
    F(11, "m", ty.MapType(23, ty.StringType(), 24, ty.DoubleType(), False)),
    F(12, "f", ty.FixedType(4)),
    F(13, "bo", ty.BooleanType()),
    F(14, "dbl", ty.DoubleType()),
    F(15, "fl", ty.FloatType()),
    F(16, "i", ty.IntegerType()),
    F(17, "ls", ty.ListType(25, ty.StructType(F(26, "k", ty.StringType(), required=True)), False)),
    F(18, "big", ty.DecimalType(38, 10)),
    F(19, "deep", ty.MapType(27, ty.StringType(), 28, ty.ListType(29, ty.LongType(), False), False)),
)
SPECS: Mapping[str, list[tuple[int, tr.Transform[Any, Any]]]] = {
    "plain": [],
    "identity_and_bucket": [(2, tr.IdentityTransform()), (1, tr.BucketTransform(4))],
    "day_and_hour": [(3, tr.DayTransform()), (4, tr.HourTransform())],
    "year_month_day": [(3, tr.YearTransform()), (4, tr.MonthTransform()), (5, tr.DayTransform())],
    "hour_year_month": [(3, tr.HourTransform()), (5, tr.YearTransform()), (4, tr.YearTransform())],
    "truncate": [
        (2, tr.TruncateTransform(4)),
        (1, tr.TruncateTransform(10)),
        (6, tr.TruncateTransform(50)),
        (7, tr.TruncateTransform(1)),
        (16, tr.TruncateTransform(2)),
    ],
    "void": [(2, tr.VoidTransform()), (16, tr.IdentityTransform())],
    "buckets": [(source, tr.BucketTransform(3)) for source in (2, 8, 5, 3, 4, 6, 7, 16, 12)],
    "nested": [(20, tr.IdentityTransform()), (21, tr.BucketTransform(2))],
    "identities": [(source, tr.IdentityTransform()) for source in (8, 6, 7, 5, 13, 14, 3, 4, 15)],
}
FIRST = dt.datetime(2024, 12, 31, 22, 30, 0, 123456)
AT = Partition("topic", 0)


def record(number: int) -> dict[str, Any]:
    if number % 7 == 0:
        return {"id": number}
    when = FIRST + dt.timedelta(minutes=45 * number)
    if number % 11 == 0:
        when = when.replace(year=1969)
    return {
        "id": number,
        "s": f"str{number % 5}" if number % 10 else "größe ✓" + "x" * 40,
        "t": when.isoformat() + "Z",
        "tt": when.isoformat(),
        "d": when.date().isoformat(),
        "dec": (number - 20) * 12.25,
        "b": ["aGk=", "/////w==", "AAA="][number % 3],
        "u": str(uuid.UUID(int=(number % 4) << 125)),
        "st": {"x": number % 2, "y.z": f"q{number % 3}"},
        "l": [number, None, -1],
        "m": {"a": number / 4, "b": None},
        "f": "AAECAw==" if number % 2 else "/////w==",
        "bo": number % 2 == 0,
        "dbl": number * -1.5,
        "fl": number / 2,
        "i": 20 - number,
        "ls": [{"k": f"v{number}"}, {"k": ""}],
        "big": f"{number}.0000000001",
        "deep": {"k": [1, number]},
    }


def stage(table: IcebergTable, records: list[dict[str, Any]], first: int = 0) -> list[StagedFile]:
    """Write records as the pipeline's worker does, and commit them as the job manager does."""
    plan = table.plan({})
    payloads = Payloads.of([json.dumps(each).encode() for each in records])
    decoded = RowDecoder(plan.arrow_schema).decode(payloads)
    assert not decoded.failed
    writer = StageWriter(plan)
    writer.write(decoded.rows, RowOrigins.of_one(AT, decoded.index + first))
    files = writer.close()
    before = table.found().checkpoint
    batch = Batch("job", Offsets({AT: first}), Offsets({AT: first + len(records)}))
    checkpoint = checkpoint_after(
        before, batch, {AT: Counts(len(records), len(records))}, TopicIds("cluster", {"topic": "id"})
    )
    table.commit(Commit(checkpoint, before, plan, Staged(files)))
    return files


def make_table(catalog: Catalog, name: str, fields: list[tuple[int, tr.Transform[Any, Any]]]) -> IcebergTable:
    spec = PartitionSpec(
        *(
            PartitionField(source_id=source, field_id=1000 + at, transform=transform, name=f"p{at}")
            for at, (source, transform) in enumerate(fields)
        )
    )
    catalog.create_namespace_if_not_exists("ns")
    catalog.create_table(f"ns.{name}", SCHEMA, partition_spec=spec)
    return IcebergTable(catalog, f"ns.{name}", "job", write_props={})


def as_spark(value: Any, kind: pa.DataType) -> Any:
    """A value that Arrow read from our file as Spark shows it."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(as_spark(value[field.name], field.type) for field in kind)
    if pa.types.is_map(kind):
        return {key: as_spark(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [as_spark(item, kind.value_type) for item in value]
    if isinstance(value, uuid.UUID):
        return str(value)
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def as_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(
        tuple(as_spark(row[field.name], field.type) for field in table.schema) for row in table.to_pylist()
    )


Row = Mapping[str, Any]
PREDICATES: Mapping[str, Callable[[Row], bool]] = {
    "id = 17": lambda row: row["id"] == 17,
    "id BETWEEN 10 AND 19": lambda row: 10 <= row["id"] <= 19,
    "s = 'str3'": lambda row: row["s"] == "str3",
    "s > 'str2'": lambda row: row["s"] > "str2",
    "s LIKE 'größe%'": lambda row: row["s"].startswith("größe"),
    "s IS NULL": lambda row: row["id"] % 7 == 0,
    "t < timestamp'2025-01-01 00:00:00Z'": lambda row: row["t"] < "2025-01-01",
    "t >= timestamp'2025-01-01 10:00:00Z'": lambda row: row["t"] >= "2025-01-01T10",
    "t < timestamp'1970-01-01 00:00:00Z'": lambda row: row["t"] < "1970",
    "tt < timestamp_ntz'2025-01-01 00:00:00'": lambda row: row["tt"] < "2025-01-01",
    "tt BETWEEN timestamp_ntz'2025-01-01 03:00:00' AND timestamp_ntz'2025-01-01 09:00:00'": lambda row: (
        "2025-01-01T03" <= row["tt"] <= "2025-01-01T09:00:00"
    ),
    "d = date'2025-01-01'": lambda row: row["d"] == "2025-01-01",
    "d < date'1970-01-01'": lambda row: row["d"] < "1970",
    "dec < 0": lambda row: row["dec"] < 0,
    "dec = 49.00": lambda row: row["dec"] == 49.0,
    "b = X'6869'": lambda row: row["b"] == "aGk=",
    "b > X'80'": lambda row: row["b"] == "/////w==",
    "u = '20000000-0000-0000-0000-000000000000'": lambda row: row["u"][0] == "2",
    "u >= '40000000-0000-0000-0000-000000000000'": lambda row: row["u"][0] >= "4",
    "st.x = 1": lambda row: row["st"]["x"] == 1,
    "st.`y.z` = 'q2'": lambda row: row["st"]["y.z"] == "q2",
    "f = X'FFFFFFFF'": lambda row: row["f"] == "/////w==",
    "bo": lambda row: row["bo"],
    "dbl <= -30": lambda row: row["dbl"] <= -30,
    "fl > 10": lambda row: row["fl"] > 10,
    "i < 0": lambda row: row["i"] < 0,
    "i IN (1, 2, 19)": lambda row: row["i"] in (1, 2, 19),
    "big > 30": lambda row: float(row["big"]) > 30,
}


def predicates_for(name: str) -> dict[str, Callable[[Row], bool]]:
    """All of them for the table without partitions; else those on a column that it is partitioned by."""
    columns = {SCHEMA.find_column_name(source) for source, _ in SPECS[name]}
    tops = {str(column).partition(".")[0] for column in columns}
    return {
        sql: holds
        for sql, holds in PREDICATES.items()
        if not tops or re.split(r"\W", sql, maxsplit=1)[0] in tops
    }


def holds(predicate: Callable[[Row], bool], row: Row) -> bool:
    try:
        return predicate(row)
    except KeyError:
        return False


@pytest.mark.parametrize("name", SPECS)
def test_spark_reads_every_type_and_every_filter_finds_its_rows(
    name: str, sqlite_catalog: dict[str, str], foreign_spark: Any
) -> None:
    catalog = open_catalog(sqlite_catalog)
    records = [record(number) for number in range(60)]
    files = stage(make_table(catalog, name, SPECS[name]), records)
    if SPECS[name]:
        assert len(files) > 1

    predicates = predicates_for(name)
    everything, filtered = foreign_spark(
        sqlite_catalog,
        f"SELECT * FROM ns.{name};"
        + " UNION ALL ".join(
            f"SELECT {at}, id FROM ns.{name} WHERE {sql}" for at, sql in enumerate(predicates)
        ),
    )
    ours = as_rows(pa.concat_tables(pq.read_table(urlsplit(file.path).path) for file in files))
    assert sorted(everything.rows) == ours
    assert len(ours) == 60
    first = next(row for row in ours if row[0] == 1)
    assert first[2] == dt.datetime(2024, 12, 31, 23, 15, 0, 123456)
    assert first[5:8] == (decimal.Decimal("-232.75"), b"\xff\xff\xff\xff", str(uuid.UUID(int=1 << 125)))

    for at, (sql, predicate) in enumerate(predicates.items()):
        found = sorted(row[1] for row in filtered.rows if row[0] == at)
        assert found == [row["id"] for row in records if holds(predicate, row)], sql


def test_files_of_other_partitions_and_ranges_are_not_opened(
    sqlite_catalog: dict[str, str], foreign_spark: Any
) -> None:
    """The files that a filter rules out are gone: only an engine that prunes by our metadata can answer."""
    catalog = open_catalog(sqlite_catalog)
    by_day = make_table(catalog, "by_day", [(3, tr.DayTransform())])
    by_range = make_table(catalog, "by_range", [])
    records = [record(number) for number in range(60)]
    new_year = (dt.date(2025, 1, 1) - dt.date(1970, 1, 1)).days
    remove([file for file in stage(by_day, records) if file.partition != (new_year,)])
    first_half = stage(by_range, records[:30])
    stage(by_range, records[30:], first=30)
    remove(first_half)
    day, numbers = foreign_spark(
        sqlite_catalog,
        "SELECT count(*) FROM ns.by_day"
        " WHERE t >= timestamp'2025-01-01 00:00:00Z' AND t < timestamp'2025-01-02 00:00:00Z';"
        "SELECT count(*), min(id) FROM ns.by_range WHERE id >= 30",
    )
    assert day.rows[0][0] == sum(row.get("t", "").startswith("2025-01-01") for row in records) > 10
    assert numbers.rows == ((30, 30),)


def remove(files: list[StagedFile]) -> None:
    assert files
    for file in files:
        Path(urlsplit(file.path).path).unlink()


def test_a_column_of_times_is_written_for_engines_that_know_them(sqlite_catalog: dict[str, str]) -> None:
    catalog = open_catalog(sqlite_catalog)
    catalog.create_namespace("ns")
    catalog.create_table("ns.times", Schema(F(1, "id", ty.LongType()), F(2, "at", ty.TimeType())))
    stage(IcebergTable(catalog, "ns.times", "job", write_props={}), [{"id": 1, "at": "10:11:12.000013"}])
    rows = catalog.load_table("ns.times").scan("at > '10:00:00'").to_arrow().to_pylist()
    assert rows == [{"id": 1, "at": dt.time(10, 11, 12, 13)}]
