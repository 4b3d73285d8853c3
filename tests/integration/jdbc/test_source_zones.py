"""`db.timezone` and what rows are read by: positions and statements must mean the same moment."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from icestream.connectors.jdbc.connections import access_from, connection_to
from icestream.connectors.jdbc.dialects.base import execute
from tests.databases import Server
from tests.integration.jdbc.source_reader import SourceReader


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_sqlite_reads_each_row_once_whatever_the_zone(tmp_path: Path, zone: str) -> None:
    path = f"{tmp_path}/rows.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE z (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)")
        database.execute("INSERT INTO z VALUES (1, '2024-01-01 12:00:00'), (2, '2024-01-01 12:30:00')")
        database.commit()
        reader = SourceReader(
            {
                "connection.url": f"jdbc:sqlite:{path}",
                "mode": "timestamp",
                "timestamp.column.name": "at",
                "topic.prefix": "",
                "db.timezone": zone,
            }
        )
        reader.until(lambda: len(reader.ids("z")) >= 2, limit=1)
        database.execute("INSERT INTO z VALUES (3, '2024-01-01 12:40:00')")
        database.commit()
        reader.until(lambda: 3 in reader.ids("z"))
        for _ in range(5):
            reader.turn()
        reader.close()
    assert reader.ids("z") == [1, 2, 3]


def test_a_timestamp_without_a_zone_beside_one_with_a_zone(postgresql: Server) -> None:
    access = access_from(postgresql.settings)

    def sql(*statements: str) -> None:
        with connection_to(access, "prepare a test") as connection:
            for statement in statements:
                execute(connection, statement)
            connection.commit()

    sql(
        "CREATE TABLE zones_mixed (id BIGINT PRIMARY KEY, a TIMESTAMPTZ, b TIMESTAMP NOT NULL)",
        "INSERT INTO zones_mixed VALUES (1, NULL, '2024-01-01 12:00:00')",
    )
    reader = SourceReader(
        {
            **postgresql.settings,
            "mode": "timestamp",
            "timestamp.column.name": "a,b",
            "topic.prefix": "",
            "db.timezone": "America/New_York",
            "table.whitelist": "zones_mixed",
        }
    )
    reader.until(lambda: reader.ids("zones_mixed") == [1])
    sql("INSERT INTO zones_mixed VALUES (2, NULL, '2024-01-01 12:10:00')")
    reader.until(lambda: 2 in reader.ids("zones_mixed"))
    reader.close()
    sql("DROP TABLE zones_mixed")
    assert reader.ids("zones_mixed") == [1, 2]
