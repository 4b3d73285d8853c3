"""Spark's own Iceberg runtime reads tables that we created from records: every type that a schema can name,
and tables that have grown since."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pytest

from icestream.embedded.kafka import Broker
from icestream.embedded.minio_tables import sqlite_catalog
from tests.integration.foreign.conftest import ForeignSpark
from tests.integration.local_job import World

pytestmark = pytest.mark.network

CONNECT = "org.apache.kafka.connect.data."
TIME, DATA = "io.debezium.time.", "io.debezium.data."
UUID = "12345678-1234-5678-1234-567812345678"
MOMENT = dt.datetime(2026, 11, 15, 10, 20, 30, 123456)
MICROS = 1794738030123456
CREATES = {
    "iceberg.tables.auto-create-enabled": "true",
    "iceberg.tables.evolve-schema-enabled": "true",
    "errors.tolerance": "none",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark opens a catalog once."""
    return tmp_path_factory.mktemp("new-tables")


def struct(*fields: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), **facts}


def field(name: str, kind: str, logical: str | None = None, **facts: Any) -> dict[str, Any]:
    return {"field": name, "type": kind, **({"name": logical} if logical else {}), **facts}


FIELDS: list[tuple[dict[str, Any], Any, str, Any]] = [
    (field("i8", "int8"), 1, "int", 1),
    (field("i32", "int32"), 2, "int", 2),
    (field("i64", "int64"), 3, "bigint", 3),
    (field("f32", "float"), 1.5, "float", 1.5),
    (field("f64", "double"), 2.5, "double", 2.5),
    (field("yes", "boolean"), True, "boolean", True),
    (field("text", "string"), "t", "string", "t"),
    (field("raw", "bytes"), base64.b64encode(b"raw").decode(), "binary", b"raw"),
    (
        field("price", "bytes", f"{CONNECT}Decimal", parameters={"scale": "2"}),
        base64.b64encode((12345).to_bytes(2, "big")).decode(),
        "decimal(38,2)",
        decimal.Decimal("123.45"),
    ),
    (field("day", "int32", f"{CONNECT}Date"), 20772, "date", dt.date(2026, 11, 15)),
    (
        field("at", "int64", f"{CONNECT}Timestamp"),
        MICROS // 1000,
        "timestamp",
        MOMENT.replace(microsecond=123000),
    ),
    (field("d_day", "int32", f"{TIME}Date"), 20772, "date", dt.date(2026, 11, 15)),
    (field("d_micros", "int64", f"{TIME}MicroTimestamp"), MICROS, "timestamp_ntz", MOMENT),
    (field("d_nanos", "int64", f"{TIME}NanoTimestamp"), MICROS * 1000 + 9, "timestamp_ntz", MOMENT),
    (field("d_zoned", "string", f"{TIME}ZonedTimestamp"), f"{MOMENT.isoformat()}Z", "timestamp", MOMENT),
    (field("d_uuid", "string", f"{DATA}Uuid"), UUID, "string", UUID),
    (field("d_json", "string", f"{DATA}Json"), '{"a":1}', "string", '{"a":1}'),
    (
        {"field": "inner", **struct(field("n", "int32"), field("u", "string", "uuid"))},
        {"n": 5, "u": UUID},
        "struct<n:int,u:string>",
        (5, UUID),
    ),
    (
        {"field": "maybe", **struct(field("n", "int32")), "optional": True},
        None,
        "struct<n:int>",
        None,
    ),
    (
        {"field": "grid", "type": "array", "items": {"type": "array", "items": {"type": "int64"}}},
        [[1, 2], [], [3]],
        "array<array<bigint>>",
        [[1, 2], [], [3]],
    ),
    (
        {"field": "props", "type": "map", "keys": {"type": "string"}, "values": struct(field("x", "double"))},
        {"k": {"x": 0.5}},
        "map<string,struct<x:double>>",
        {"k": (0.5,)},
    ),
]


def test_every_type_that_a_schema_names(broker: Broker, folder: Path, foreign_spark: ForeignSpark) -> None:
    times = field("d_time", "int64", f"{TIME}MicroTime")
    schema = struct(field("id", "int64"), *(one for one, *_ in FIELDS))
    payload = {"id": 1, **{one["field"]: value for one, value, *_ in FIELDS}}
    options = {**CREATES, "value.converter.schemas.enable": "true"}
    options |= {"iceberg.tables.default-partition-by": "days(at), bucket(d_uuid, 4), truncate(price, 100)"}
    world = World(broker, folder, name="types", options=options, creates_table=True)
    world.produce([{"schema": schema, "payload": payload}])
    world.drain()
    name = f"ns.{world.name}"
    table = world.catalog.load_table(name)
    assert table.schema().find_field("i64").required
    assert table.schema().find_field("inner.n").required
    assert not table.schema().find_field("maybe").required
    described, rows = foreign_spark(sqlite_catalog(str(folder)), f"DESCRIBE {name}; SELECT * FROM {name}")
    kinds = {row[0]: row[1] for row in described.rows}
    assert {one["field"]: kinds[one["field"]] for one, *_ in FIELDS} == {
        one["field"]: kind for one, _, kind, _ in FIELDS
    }
    (row,) = rows.rows
    found = dict(zip(rows.columns, row, strict=True))
    for one, _, _, expected in FIELDS:
        assert found[one["field"]] == expected, one["field"]
    # Records of another schema: wider, with times, without what was required.
    grown = struct(field("id", "int64"), field("i32", "int64"), field("text", "string", optional=True), times)
    others = [one for one, *_ in FIELDS if one["field"] not in ("i32", "text")]
    grown["fields"] += others
    more = {**payload, "id": 2, "i32": 2**40, "text": None, "d_time": 3_600_000_001}
    world.produce([{"schema": grown, "payload": more}])
    world.drain()
    (row,) = world.catalog.load_table(name).scan("id == 2").to_arrow().to_pylist()
    assert (row["i32"], row["text"], row["d_time"]) == (2**40, None, 3_600_000_001)
    (counted,) = foreign_spark(
        sqlite_catalog(str(folder)),
        f"SELECT id, i32, text FROM {name} WHERE inner.n = 5 AND props['k'].x = 0.5 ORDER BY id",
    )
    assert counted.rows == ((1, 2, "t"), (2, 2**40, None))


def test_a_table_that_grew_on_every_level_without_schemas(
    broker: Broker, folder: Path, foreign_spark: ForeignSpark
) -> None:
    options = {
        **CREATES,
        "iceberg.tables.schema-case-insensitive": "true",
        "icestream.iceberg.kafka-columns": "topic,partition,offset,timestamp",
    }
    world = World(broker, folder, name="grown", options=options, creates_table=True)
    world.produce(
        [
            {"id": 1, "empty": [], "none": None, "nothing": {}, "mixed": 1, "items": [{"a": 1}]},
            {"id": 2, "mixed": "text", "items": [{"a": 1.5, "b": {"c": True}}]},
        ]
    )
    world.drain()
    world.produce(
        [{"ID": 3, "Items": [{"A": 2, "B": {"C": False, "d": [[1]]}}], "free": {"any": {"thing": 1}}}]
    )
    world.drain()
    name = f"ns.{world.name}"
    described, rows = foreign_spark(
        sqlite_catalog(str(folder)),
        f"DESCRIBE {name}; SELECT id, mixed, items, free, _kafka_metadata_offset FROM {name} ORDER BY id",
    )
    kinds = {row[0]: row[1] for row in described.rows}
    assert "empty" not in kinds
    assert "none" not in kinds
    assert kinds["items"] == "array<struct<a:double,b:struct<c:boolean,d:array<array<bigint>>>>>"
    assert (kinds["mixed"], kinds["free"]) == ("string", "struct<any:struct<thing:bigint>>")
    assert kinds["_kafka_metadata_timestamp"] == "timestamp"
    assert rows.rows == (
        (1, "1", [(1.0, None)], None, 0),
        (2, "text", [(1.5, (True, None))], None, 1),
        (3, None, [(2.0, (False, [[1]]))], ((1,),), 2),
    )
