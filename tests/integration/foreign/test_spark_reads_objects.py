"""Spark reads the objects of the S3 sink: JSON Lines with gzip, Parquet, and folders as columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icestream.converters.registry.avro_connect import PRECISION
from icestream.records.schema import (
    DECIMAL,
    OPTIONAL_STRING,
    SCALE,
    STRING,
    ConnectSchema,
    Kind,
    array,
    date,
    map_of,
    struct,
    timestamp,
)
from tests.integration.foreign.conftest import ForeignSpark
from tests.unit.connectors.s3.topic_records import group, structs, written

pytestmark = pytest.mark.network

PARQUET = "io.confluent.connect.s3.format.parquet.ParquetFormat"
HOURLY = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "timestamp.extractor": "Record",
    "locale": "en",
    "timezone": "UTC",
}
NOON = 1_772_971_200_000
AMOUNT = ConnectSchema(Kind.BYTES, name=DECIMAL, version=1, parameters=((SCALE, "2"), (PRECISION, "12")))
SCHEMA = struct(
    ("id", ConnectSchema(Kind.INT16)),
    ("text", OPTIONAL_STRING),
    ("amount", AMOUNT),
    ("on", date()),
    ("at", timestamp(optional=True)),
    ("tags", array(STRING)),
    ("counts", map_of(STRING, ConnectSchema(Kind.INT64, optional=True))),
    ("inner", struct(("x", STRING), optional=True)),
)


def orders() -> list[Any]:
    at = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    full = {
        "id": 0, "text": "é\n", "amount": Decimal("-12.50"), "on": dt.date(2026, 1, 31), "at": at,
        "tags": ["a", "b"], "counts": [("k", 1), ("l", None)], "inner": {"x": "y"},
    }  # fmt: skip
    bare = {**full, "id": 1, "text": None, "at": None, "tags": [], "counts": [], "inner": None}
    return [group(structs(SCHEMA, [full, bare]), [0, 1], times=[NOON, NOON + 3_600_000])]


def put(folder: Path, settings: dict[str, Any]) -> str:
    bucket, [taken] = written([orders()], settings)
    assert not taken.failed
    for key, data in bucket.objects.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(data)
    return f"{folder}/topics/orders"


def test_json_lines_with_folders_as_columns(
    foreign_spark: ForeignSpark, sqlite_catalog: dict[str, str], tmp_path: Path
) -> None:
    path = put(tmp_path, {**HOURLY, "s3.compression.type": "gzip", "json.decimal.format": "NUMERIC"})
    columns = "id, text, amount, `on`, at, tags, counts.k, inner.x, year, month, hour"
    (result,) = foreign_spark(sqlite_catalog, f"SELECT {columns} FROM json.`{path}` ORDER BY id")
    assert [tuple(row) for row in result.rows] == [
        (0, "é\n", -12.5, 20_484, 1_769_860_800_000, ["a", "b"], 1, "y", 2026, 3, 12),
        (1, None, -12.5, 20_484, None, [], None, None, 2026, 3, 13),
    ]


def test_parquet(foreign_spark: ForeignSpark, sqlite_catalog: dict[str, str], tmp_path: Path) -> None:
    """`parquet.codec`, all that Spark reads."""
    codecs = ["none", "snappy", "gzip", "zstd", "lz4_raw", "lz4"]
    columns = "id, text, amount, `on`, unix_millis(at), tags, counts['k'], inner.x, hour"
    paths = [put(tmp_path / one, {**HOURLY, "format.class": PARQUET, "parquet.codec": one}) for one in codecs]
    text = "; ".join(f"SELECT {columns} FROM parquet.`{path}` ORDER BY id" for path in paths)
    day = dt.date(2026, 1, 31)
    results = foreign_spark(sqlite_catalog, text)
    assert len(results) == len(codecs)
    for result in results:
        assert [tuple(row) for row in result.rows] == [
            (0, "é\n", Decimal("-12.50"), day, 1_769_860_800_000, ["a", "b"], 1, "y", 12),
            (1, None, Decimal("-12.50"), day, None, [], None, None, 13),
        ]
