"""What records do to rows by their keys, what of it is staged, and the statement that merges it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg import types as it
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema

from icestream.api.connector import SparkCatalog
from icestream.api.errors import ConfigError
from icestream.api.offsets import Partition
from icestream.api.sink import TargetTask, WriterTask
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import TablePlan
from icestream.connectors.iceberg.settings import id_columns, is_upsert, problems
from icestream.connectors.iceberg.sink import table_from
from icestream.connectors.iceberg.table import IcebergTable
from icestream.connectors.iceberg.upserts.commit import Upserts
from icestream.connectors.iceberg.upserts.merge import ReadChanges, merge_statement, view_columns
from icestream.connectors.iceberg.writer import IcebergWriter
from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.records.values import Value, object_fields
from icestream.tables.upserts.changes import KIND, OFFSET, OWN_COLUMNS, StagedChanges

P = Partition("t", 0)
SCHEMA = Schema(
    it.NestedField(1, "id", it.LongType(), required=True),
    it.NestedField(2, "text", it.StringType(), required=True),
    it.NestedField(3, "token", it.UUIDType()),
    it.NestedField(4, "inner", it.StructType(it.NestedField(5, "raw", it.FixedType(2)))),
    identifier_field_ids=[1],
)
SPARK_CATALOG = SparkCatalog("lake", "some.Catalog", {})


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


def upsert_table(
    catalog: Catalog, schema: Schema = SCHEMA, ids: tuple[str, ...] = (), cdc: str | None = "op", **more: str
) -> IcebergTable:
    catalog.create_table("ns.t", schema, properties=more)
    return IcebergTable(
        catalog, "ns.t", "job", write_props={}, upserts=Upserts(ids, cdc, SPARK_CATALOG, None)
    )


def objects(values: list[Any]) -> Value:
    return object_fields(JsonSource([json.dumps(value).encode() for value in values]))


def group(value: Value, key: Value, rows: list[int]) -> Records:
    numbers = np.array(rows, np.int64)
    return Records(
        numbers, "t", np.zeros(len(rows), np.int64), pa.array([0] * len(rows)), key, value, (), numbers
    )


class Staging:
    """One task; `rows` are what Spark would read."""

    def __init__(self, table: IcebergTable) -> None:
        self.plan = table.plan({})
        self.writer = IcebergWriter(WriterTask([TargetTask("ns.t", self.plan)], "batch"))

    def write(self, *groups: Records) -> dict[int, str]:
        length = sum(len(one) for one in groups)
        written = self.writer.write(groups, RowOrigins.of_one(P, np.arange(length)))
        assert not written.skipped
        return {row: failure.reason for row, failure in written.failed.items()}

    def close(self) -> tuple[int, list[dict[str, Any]], list[StagedChanges]]:
        staged = self.writer.close()["ns.t"]
        read = ReadChanges(staged.payload, self.plan.location, self.plan.io_properties, "ns.t")
        batches = [batch for part in range(len(read.paths)) for batch in read(part)]
        rows = [row for batch in batches for row in batch.to_pylist()]
        return staged.rows, sorted(rows, key=lambda row: row["id"]), list(staged.payload)


def test_the_newest_change_of_each_key_is_staged(catalog: Catalog) -> None:
    token = uuid.UUID(int=7)
    staging = Staging(upsert_table(catalog))
    values = [
        {"id": 1, "text": "old", "op": "c"},
        {"id": 2, "text": "x", "op": "R"},
        {"id": 1, "text": "new", "op": "update", "token": str(token), "inner": {"raw": "AQI="}},
        {"id": 3, "text": "no kind"},
        {"id": 2, "op": "d"},
    ]
    assert not staging.write(group(objects(values), None, [0, 1, 2, 3, 4]))
    count, rows, _ = staging.close()
    assert count == 5
    assert [(row["id"], row["text"], row[KIND]) for row in rows] == [
        (1, "new", 1),
        (2, None, 0),
        (3, "no kind", 1),
    ]
    assert rows[0]["token"] == str(token) and rows[0]["inner"] == {"raw": b"\1\2"}


def test_order_is_that_of_offsets_whatever_the_order_of_groups(catalog: Catalog) -> None:
    staging = Staging(upsert_table(catalog))
    later = group(objects([{"id": 1, "text": "later"}]), None, [1])
    earlier = group(objects([{"id": 1, "text": "earlier"}]), None, [0])
    assert not staging.write(later, earlier)
    _, rows, _ = staging.close()
    assert [(row["text"], row[OFFSET]) for row in rows] == [("later", 1)]


@pytest.mark.parametrize(
    ("key", "ids"),
    [
        (objects([{"id": 5}]), [5]),
        (Column(pa.array([5])), [5]),
        (Column(pa.array(["5"])), [5]),
        (Column(pa.array(["five"])), "key.converter"),
        (objects([{"other": 5}]), "id column 'id' has no value in the key"),
        (None, "it has no key"),
    ],
)
def test_a_record_without_a_value_deletes_the_row_of_its_key(
    catalog: Catalog, key: Value, ids: list[int] | str
) -> None:
    staging = Staging(upsert_table(catalog))
    failed = staging.write(group(None, key, [0]))
    count, rows, _ = staging.close()
    if isinstance(ids, str):
        assert ids in failed[0] and not rows and count == 0
    else:
        assert not failed and [(row["id"], row[KIND]) for row in rows] == [(5, 0)]


def test_bad_changes_fail_with_a_reason(catalog: Catalog) -> None:
    staging = Staging(upsert_table(catalog))
    values = [
        {"id": None, "text": "a", "op": "d"},
        {"id": 1, "text": "a", "op": "x-ray"},
        {"id": 2, "op": "u"},
        {"id": "two", "text": "a", "op": "u"},
    ]
    failed = staging.write(group(objects(values), None, [0, 1, 2, 3]))
    assert "id column 'id' has no value in the value" in failed[0]
    assert "'x-ray'" in failed[1] and "'text' is required" in failed[2] and len(failed) == 4


def test_a_truncate_undoes_what_was_before_it_in_its_partition(catalog: Catalog) -> None:
    staging = Staging(upsert_table(catalog))
    values = [{"id": 1, "text": "gone"}, {"op": "t"}, {"id": 2, "text": "after"}]
    assert not staging.write(group(objects(values), None, [0, 1, 2]))
    count, rows, files = staging.close()
    assert count == 3 and [row["id"] for row in rows] == [2]
    assert [list(file.truncates.values()) for file in files] == [[1]]
    alone = Staging(IcebergTable(catalog, "ns.t", "job", write_props={}, upserts=upserts("op")))
    assert not alone.write(group(objects([{"op": "T"}]), None, [0]))
    count, rows, files = alone.close()
    assert count == 1 and not rows and files[0].truncates and not files[0].path


def upserts(cdc: str | None) -> Upserts:
    return Upserts((), cdc, SPARK_CATALOG, None)


def test_what_a_failed_task_staged_is_removed(catalog: Catalog, tmp_path: Path) -> None:
    staging = Staging(upsert_table(catalog))
    staging.write(group(objects([{"id": 1, "text": "a"}]), None, [0]))
    staging.writer.close()
    assert list(tmp_path.rglob("*.changes"))
    staging.writer.discard()
    assert not list(tmp_path.rglob("*.changes"))


@pytest.mark.parametrize(
    ("schema", "ids", "properties", "reason"),
    [
        (SCHEMA, (), {"format-version": "1"}, "has format-version 1, and upserts need 2"),
        (Schema(it.NestedField(1, "id", it.LongType())), (), {}, "default-id-columns"),
        (SCHEMA, ("nobody",), {}, "has no column 'nobody'"),
        (SCHEMA, ("inner",), {}, "cannot identify a row"),
        (Schema(it.NestedField(1, "id", it.DoubleType())), ("id",), {}, "cannot identify a row"),
        (Schema(it.NestedField(1, "id", it.TimeType())), ("id",), {}, "type time, which Spark's MERGE"),
        (Schema(it.NestedField(1, KIND, it.LongType())), (KIND,), {}, "a name that upserts need themselves"),
    ],
)
def test_tables_that_cannot_get_upserts_are_refused(
    catalog: Catalog, schema: Schema, ids: tuple[str, ...], properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        upsert_table(catalog, schema, ids, **properties).plan({})


def test_names_and_types_in_the_words_of_spark() -> None:
    schema = Schema(
        it.NestedField(1, "odd `name", it.DecimalType(9, 2)),
        it.NestedField(2, "at", it.TimestampType()),
        it.NestedField(3, "tags", it.MapType(4, it.StringType(), 5, it.ListType(6, it.TimestamptzType()))),
    )
    columns = view_columns(schema)
    assert columns.startswith(
        "`odd ``name` DECIMAL(9, 2), `at` TIMESTAMP_NTZ, `tags` MAP<STRING, ARRAY<TIMESTAMP>>, "
    )
    statement = merge_statement("`a`.`t`", schema, ["odd `name", "s.x"], several=True, truncates=True)
    assert "ON t.`odd ``name` = s.`odd ``name` AND t.`s`.`x` = s.`s`.`x`" in statement
    assert "PARTITION BY `odd ``name`, `s`.`x`" in statement
    assert statement.endswith("WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert "ROW_NUMBER" not in merge_statement("`t`", schema, ["at"], several=False, truncates=False).upper()


def test_the_keys_of_upserts() -> None:
    config = {
        "iceberg.tables": "a.b,a.c",
        "iceberg.catalog.type": "rest",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.tables.cdc-field": "_cdc.op",
        "iceberg.tables.default-id-columns": "x, y",
        "iceberg.table.a.b.id-columns": "id",
    }
    assert not [one for one in problems(config) if "not supported" in one.message]
    assert id_columns(config, "a.b") == ["id"] and id_columns(config, "a.c") == ["x", "y"]
    assert is_upsert(config) and is_upsert({"iceberg.tables.cdc-field": "op"})
    assert not is_upsert({"iceberg.tables.default-id-columns": "id"})


def test_no_record_brings_a_column_of_a_name_that_upserts_need(catalog: Catalog) -> None:
    config = {"iceberg.tables": "ns.t", "iceberg.tables.evolve-schema-enabled": "true"}
    table = table_from(upsert_table(catalog, SCHEMA, ("id",)) and catalog, "ns.t", "job", config)
    plan = table.plan({})
    assert isinstance(plan, TablePlan) and plan.growth is not None
    assert plan.growth.reserved >= OWN_COLUMNS


def test_plans_do_not_show_the_logins_of_stores() -> None:
    login = {"s3.secret-access-key": "hunter2"}
    plan = TablePlan("lake.t", "s3://lake/t", "{}", "{}", {}, login)
    assert "hunter2" not in repr(plan)
    assert "hunter2" not in repr(ReadChanges([], "s3://lake/t", login, "lake.t"))
