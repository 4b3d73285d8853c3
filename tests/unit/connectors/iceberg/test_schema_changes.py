"""Columns that a batch needs are added; those of the table widen, or are no longer required."""

from pathlib import Path

import pyarrow as pa
from pyiceberg import types as it
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction

from icestream.connectors.iceberg.schemas import arrow_schema, change_fields
from icestream.rows.new_columns import NO_LONGER_REQUIRED

TABLE = Schema(
    it.NestedField(1, "id", it.IntegerType(), required=True),
    it.NestedField(2, "ratio", it.FloatType()),
    it.NestedField(3, "inner", it.StructType(it.NestedField(4, "n", it.IntegerType(), required=True))),
)


def _changed(folder: Path, fields: dict[tuple[str, ...], pa.DataType]) -> Schema:
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.events", TABLE)
    transaction = Transaction(table, autocommit=False)
    with transaction.update_schema() as update:
        change_fields(update, table.schema(), fields)
    catalog.close()
    return transaction.table_metadata.schema()


def test_new_columns_keep_the_types_of_a_schema(tmp_path: Path) -> None:
    kinds = {
        ("day",): pa.date32(),
        ("clock",): pa.time64("us"),
        ("at",): pa.timestamp("us", "UTC"),
        ("price",): pa.decimal128(38, 2),
        ("small",): pa.int32(),
        ("real",): pa.float32(),
        ("raw",): pa.binary(),
        ("props",): pa.map_(pa.string(), pa.list_(pa.int64())),
        ("inner", "more"): pa.struct([("x", pa.bool_())]),
    }
    changed = _changed(tmp_path, kinds)
    assert {
        name: str(changed.find_type(name)) for name in ("day", "clock", "at", "price", "small", "real")
    } == {
        "day": "date",
        "clock": "time",
        "at": "timestamptz",
        "price": "decimal(38, 2)",
        "small": "int",
        "real": "float",
    }
    assert str(changed.find_type("raw")) == "binary"
    assert arrow_schema(changed).field("props").type.item_type.value_type == pa.int64()
    assert str(changed.find_type("inner.more.x")) == "boolean"
    assert not any(changed.find_field(".".join(path)).required for path in kinds)


def test_a_column_widens_or_is_no_longer_required(tmp_path: Path) -> None:
    changed = _changed(
        tmp_path,
        {("id",): pa.int64(), ("ratio",): pa.float64(), ("inner", "n", NO_LONGER_REQUIRED): pa.null()},
    )
    assert (str(changed.find_type("id")), changed.find_field("id").required) == ("long", True)
    assert str(changed.find_type("ratio")) == "double"
    assert (str(changed.find_type("inner.n")), changed.find_field("inner.n").required) == ("int", False)
