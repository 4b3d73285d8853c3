"""What the columns of each database become: Connect's types, and values that come back."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
import pytest

from icestream.api.errors import FatalError
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema
from tests.databases import Server
from tests.integration.jdbc.source_reader import SourceReader

_AT = dt.datetime(2024, 2, 29, 12, 34, 56, 789123, tzinfo=dt.UTC)
_AT_MS = _AT.replace(microsecond=789000)
_OPTIONAL_DECIMAL = f"{DECIMAL}?"


def shown(schema: ConnectSchema) -> str:
    name = schema.name or (f"[{shown(schema.value)}]" if schema.value else schema.kind.value)
    return f"{name}{'?' if schema.optional else ''}"


def types_of(reader: SourceReader) -> dict[str, str]:
    schema = reader.batches[0].records[0].value.schema  # type: ignore[union-attr]
    return {field.name: shown(field.schema) for field in schema.fields}


Read = Callable[..., SourceReader]


@pytest.fixture
def read() -> Iterator[Read]:
    with contextlib.ExitStack() as stack:

        def begin(server: dict[str, str], **settings: str) -> SourceReader:
            given = {key.replace("_", "."): value for key, value in settings.items()}
            reader = SourceReader(
                {"mode": "bulk", "topic.prefix": "", "poll.interval.ms": "3600000", **server, **given}
            )
            stack.callback(reader.close)
            reader.until(lambda: bool(reader.rows))
            return reader

        yield begin


_POSTGRESQL = """
CREATE TABLE types (
 id bigserial PRIMARY KEY, i2 int2 NOT NULL, i4 int4, f4 real, f8 float8, yes boolean NOT NULL, txt text,
 vc varchar(10) NOT NULL, ch char(3), bin bytea, d date, t time, ts timestamp, tz timestamptz NOT NULL,
 n numeric(10, 2), n0 numeric(12, 0), n2 numeric(2, 0), wide numeric(60, 5), free numeric, js jsonb, uid uuid,
 ints int[], words text[], one bit, ip inet, wait interval, mood mood, cash money
)
"""
_POSTGRESQL_ROW = """
INSERT INTO types VALUES (1, -2, 4, 1.5, 'NaN', true, E'a "quote",\n', '', 'x', '\\x00ff', '2024-02-29',
 '12:34:56.789', '2024-02-29 12:34:56.789123', '2024-02-29 13:34:56.789123+01', 12.30, 123456789012, 42,
 12345678901234567890123456789012345678901234567890.12345, 3.14159, '{"a": 1}',
 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL,3}', '{a,"b c"}', B'1', '10.0.0.1', '1 day', 'happy', 12.5)
"""


@pytest.fixture
def of_postgresql(postgresql: Server) -> Iterator[dict[str, str]]:
    connection = psycopg2.connect(postgresql.address, user=postgresql.user, password=postgresql.password)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("DROP SCHEMA IF EXISTS source_types CASCADE; CREATE SCHEMA source_types")
    cursor.execute("SET search_path TO source_types")
    cursor.execute("CREATE TYPE mood AS ENUM ('happy')")
    cursor.execute(_POSTGRESQL)
    cursor.execute(_POSTGRESQL_ROW)
    cursor.execute("INSERT INTO types (id, i2, yes, vc, tz) VALUES (2, 3, false, 'null', 'epoch')")
    yield {**postgresql.settings, "schema.pattern": "source_types"}
    connection.close()


def test_types_of_postgresql(of_postgresql: dict[str, str], read: Read) -> None:
    reader = read(of_postgresql)
    assert types_of(reader) == {
        "id": "INT64",
        "i2": "INT16",
        "i4": "INT32?",
        "f4": "FLOAT32?",
        "f8": "FLOAT64?",
        "yes": "BOOLEAN",
        "txt": "STRING?",
        "vc": "STRING",
        "ch": "STRING?",
        "bin": "BYTES?",
        "d": f"{DATE}?",
        "t": f"{TIME}?",
        "ts": f"{TIMESTAMP}?",
        "tz": TIMESTAMP,
        "js": "STRING?",
        "uid": "STRING?",
        "ints": "[INT32?]?",
        **dict.fromkeys(("n", "n0", "n2", "wide", "free"), _OPTIONAL_DECIMAL),
        "words": "[STRING?]?",
        "one": "BOOLEAN?",
        "ip": "STRING?",
        "wait": "STRING?",
        "mood": "STRING?",
        "cash": "FLOAT64?",
    }
    first, second = reader.rows["types"]
    assert str(first.pop("f8")) == "nan"
    assert first == {
        "id": 1,
        "i2": -2,
        "i4": 4,
        "f4": 1.5,
        "yes": True,
        "txt": 'a "quote",\n',
        "vc": "",
        "ch": "x  ",
        "bin": b"\x00\xff",
        "d": dt.date(2024, 2, 29),
        "t": dt.time(12, 34, 56, 789000),
        "ts": _AT_MS,
        "tz": _AT_MS,
        "n": Decimal("12.30"),
        "n0": Decimal(123456789012),
        "n2": Decimal(42),
        "wide": Decimal("12345678901234567890123456789012345678901234567890.12345"),
        "free": Decimal("3.14159"),
        "js": '{"a": 1}',
        "uid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "ints": [1, None, 3],
        "words": ["a", "b c"],
        "one": True,
        "ip": "10.0.0.1/32",
        "wait": "1 day",
        "mood": "happy",
        "cash": 12.5,
    }
    assert second["vc"] == "null" and second["txt"] is None and second["n"] is None
    schema = reader.batches[0].records[0].value.schema  # type: ignore[union-attr]
    assert schema.name == "types" and not schema.optional
    assert [schema[name].parameter("scale") for name in ("n", "n0", "wide", "free")] == ["2", "0", "5", "18"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"numeric_mapping": "none"}, [_OPTIONAL_DECIMAL] * 5),
        (
            {"numeric_precision_mapping": "true"},
            [_OPTIONAL_DECIMAL, "INT64?", "INT8?", *[_OPTIONAL_DECIMAL] * 2],
        ),
        (
            {"numeric_mapping": "precision_only"},
            [_OPTIONAL_DECIMAL, "INT64?", "INT8?", *[_OPTIONAL_DECIMAL] * 2],
        ),
        ({"numeric_mapping": "best_fit"}, ["FLOAT64?", "INT64?", "INT8?", _OPTIONAL_DECIMAL, "FLOAT64?"]),
        (
            {"numeric_mapping": "best_fit_eager_double"},
            ["FLOAT64?", "INT64?", "INT8?", "FLOAT64?", "FLOAT64?"],
        ),
    ],
)
def test_numbers(
    of_postgresql: dict[str, str], read: Read, settings: dict[str, str], expected: list[str]
) -> None:
    reader = read(of_postgresql, **settings)
    assert [types_of(reader)[name] for name in ("n", "n0", "n2", "wide", "free")] == expected
    assert [float(reader.rows["types"][0][name]) for name in ("n", "n0", "n2")] == [12.3, 123456789012, 42]


@pytest.mark.parametrize(
    ("granularity", "kind", "expected"),
    [
        ("micros_long", "INT64", 1709210096789123),
        ("micros_string", "STRING", "1709210096789123"),
        ("micros_iso_datetime_string", "STRING", "2024-02-29T12:34:56.789123"),
        ("nanos_long", "INT64", 1709210096789123000),
        ("nanos_string", "STRING", "1709210096789123000"),
        ("nanos_iso_datetime_string", "STRING", "2024-02-29T12:34:56.789123000"),
    ],
)
def test_timestamps_of_finer_grain(
    of_postgresql: dict[str, str], read: Read, granularity: str, kind: str, expected: Any
) -> None:
    reader = read(of_postgresql, timestamp_granularity=granularity)
    assert types_of(reader)["tz"] == kind and types_of(reader)["ts"] == f"{kind}?"
    assert [reader.rows["types"][0][name] for name in ("ts", "tz")] == [expected, expected]


def test_a_zone_of_timestamps_that_have_none(of_postgresql: dict[str, str], read: Read) -> None:
    row = read(of_postgresql, db_timezone="Europe/Berlin").rows["types"][0]
    assert row["ts"] == _AT_MS - dt.timedelta(hours=1) and row["tz"] == _AT_MS


def test_a_value_that_cannot_be_sent_is_named(of_postgresql: dict[str, str], read: Read) -> None:
    with pytest.raises(FatalError, match="column 'x'"):
        read(of_postgresql, query="SELECT 'infinity'::timestamp AS x")


_MYSQL = """
CREATE TABLE source_types (
 id BIGINT AUTO_INCREMENT PRIMARY KEY, i1 TINYINT NOT NULL, u1 TINYINT UNSIGNED, i2 SMALLINT, u4 INT UNSIGNED,
 f4 FLOAT, f8 DOUBLE, n DECIMAL(10, 2), txt TEXT, vc VARCHAR(10) NOT NULL, bin VARBINARY(4), d DATE,
 t TIME(3), ts DATETIME(6), tz TIMESTAMP(6) NULL, js JSON, e ENUM('a', 'b'), one BIT, y YEAR
) CHARACTER SET utf8mb4
"""
_MYSQL_ROW = """
INSERT INTO source_types VALUES (1, -1, 255, 2, 4000000000, 1.5, 2.5, 12.30, 'a "b"', 'ü😀', x'00ff',
 '2024-02-29', '12:34:56.789', '2024-02-29 12:34:56.789123', '2024-02-29 12:34:56.789123', '{"a": 1}', 'b',
 b'1', 2024)
"""


@pytest.fixture
def of_mysql(mariadb: Server) -> Iterator[dict[str, str]]:
    host, _, port = mariadb.address.partition("://")[2].partition("/")[0].partition(":")
    connection = pymysql.connect(
        host=host, port=int(port), user=mariadb.user, password=mariadb.password, database=mariadb.user
    )
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("DROP TABLE IF EXISTS source_types")
        cursor.execute(_MYSQL)
        cursor.execute(_MYSQL_ROW)
        cursor.execute("INSERT INTO source_types (i1, vc) VALUES (0, '')")
    connection.commit()
    yield {**mariadb.settings, "table.whitelist": "source_types"}
    connection.close()


@pytest.mark.parametrize(
    ("value", "told"), [("-10:00:00", "-10:00:00"), ("-00:00:00.5", "-0:00:00.500000"), ("25:00:00", "1 day")]
)
def test_a_time_of_mysql_that_is_no_time_of_day_is_named(
    mariadb: Server, read: Read, value: str, told: str
) -> None:
    with pytest.raises(FatalError, match=f"column 't'.*{told}.* is no time of day"):
        read(dict(mariadb.settings), query=f"SELECT CAST('{value}' AS TIME(3)) AS t")


def test_types_of_mysql(of_mysql: dict[str, str], read: Read) -> None:
    reader = read(of_mysql)
    assert types_of(reader) == {
        "id": "INT64",
        "i1": "INT8",
        "u1": "INT16?",
        "i2": "INT16?",
        "u4": "INT64?",
        "f4": "FLOAT32?",
        "f8": "FLOAT64?",
        "n": _OPTIONAL_DECIMAL,
        "txt": "STRING?",
        "vc": "STRING",
        "bin": "BYTES?",
        "d": f"{DATE}?",
        "t": f"{TIME}?",
        "ts": f"{TIMESTAMP}?",
        "tz": f"{TIMESTAMP}?",
        "js": "STRING?",
        "e": "STRING?",
        "one": "INT8?",
        "y": f"{DATE}?",
    }
    first, second = reader.rows["source_types"]
    assert first == {
        "id": 1,
        "i1": -1,
        "u1": 255,
        "i2": 2,
        "u4": 4000000000,
        "f4": 1.5,
        "f8": 2.5,
        "n": Decimal("12.30"),
        "txt": 'a "b"',
        "vc": "ü😀",
        "bin": b"\x00\xff",
        "d": dt.date(2024, 2, 29),
        "t": dt.time(12, 34, 56, 789000),
        "ts": _AT_MS,
        "tz": _AT_MS,
        "js": '{"a": 1}',
        "e": "b",
        "one": 1,
        "y": dt.date(2024, 1, 1),
    }
    assert second["vc"] == "" and second["n"] is None and second["t"] is None


def test_types_of_sqlite(tmp_path: Path, read: Read) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "types.db")) as connection:
        connection.execute(
            "CREATE TABLE types (id INTEGER PRIMARY KEY, "
            "big BIGINT, small SMALLINT, x REAL, n NUMERIC(6, 2), "
            "dec DECIMAL(8, 3), yes BOOLEAN, "
            "txt TEXT, vc VARCHAR(5) NOT NULL, bin BLOB, d DATE, ts TIMESTAMP, "
            "at DATETIME)"
        )
        row = (1, 2**40, 3, 1.5, 2.25, 3.125, 1, "a", "b", b"\x00", "2024-02-29")
        for ts in ("2024-02-29 12:34:56.789", 1709210096789):
            values = (*row, ts, ts)
            if connection.execute("SELECT count(*) FROM types").fetchone()[0]:
                values = (2, *values[1:])
            connection.execute(f"INSERT INTO types VALUES ({', '.join('?' * 13)})", values)
        connection.execute("INSERT INTO types (vc) VALUES ('nulls')")
        connection.commit()
    reader = read({"connection.url": f"jdbc:sqlite:{tmp_path}/types.db"})
    assert types_of(reader) == {
        "id": "INT64",
        "big": "INT64?",
        "small": "INT16?",
        "x": "FLOAT64?",
        "n": _OPTIONAL_DECIMAL,
        "dec": _OPTIONAL_DECIMAL,
        "yes": "BOOLEAN?",
        "txt": "STRING?",
        "vc": "STRING",
        "bin": "BYTES?",
        "d": f"{DATE}?",
        "ts": f"{TIMESTAMP}?",
        "at": f"{TIMESTAMP}?",
    }
    first, second, third = reader.rows["types"]
    assert {**first, "id": 2} == second
    assert first == {
        "id": 1,
        "big": 2**40,
        "small": 3,
        "x": 1.5,
        "n": Decimal("2.25"),
        "dec": Decimal("3.125"),
        "yes": True,
        "txt": "a",
        "vc": "b",
        "bin": b"\x00",
        "d": dt.date(2024, 2, 29),
        "ts": _AT_MS,
        "at": _AT_MS,
    }
    assert third["ts"] is None and third["n"] is None and third["yes"] is None
