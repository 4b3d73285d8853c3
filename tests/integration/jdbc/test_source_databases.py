"""The JDBC source on MariaDB and SQLite: modes, and rows that are committed late."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest

from icestream.api.offset_admin import OffsetEntry
from tests.databases import Server
from tests.integration.jdbc.source_reader import SourceReader

_NUMBERS = itertools.count(1)


@dataclass
class Database:
    kind: str
    settings: dict[str, str]
    connect: Callable[[], Any]
    table: str
    stack: contextlib.ExitStack

    def sql(self, *statements: str) -> None:
        connection = self.connect()
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
        connection.close()

    def start(self, stored: list[OffsetEntry] | None = None, **settings: str) -> SourceReader:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        base = {"topic.prefix": "", "table.whitelist": self.table, **self.settings, **given}
        reader = SourceReader(base, stored or [])
        self.stack.callback(reader.close)
        return reader


@pytest.fixture(params=["mariadb", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    table = f"source_{next(_NUMBERS)}"
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            file = tmp_path / "rows.db"
            yield Database(
                "sqlite",
                {"connection.url": f"jdbc:sqlite:{file}"},
                lambda: sqlite3.connect(file, timeout=5),
                table,
                stack,
            )
            return
        server: Server = request.getfixturevalue("mariadb")
        host, _, port = server.address.partition("://")[2].partition("/")[0].partition(":")

        def connect() -> Any:
            connection = pymysql.connect(
                host=host, port=int(port), user=server.user, password=server.password, database=server.user
            )
            connection.cursor().execute("SET time_zone = '+00:00'")
            return connection

        # The account lacks PROCESS, so a read waits this long for transactions that it cannot see.
        settings = {**server.settings, "icestream.jdbc.transaction.wait.ms": "300"}
        yield Database("mariadb", settings, connect, table, stack)


def _id(database: Database) -> str:
    return (
        "INTEGER PRIMARY KEY AUTOINCREMENT" if database.kind == "sqlite" else "INT AUTO_INCREMENT PRIMARY KEY"
    )


def test_rows_by_their_number(database: Database) -> None:
    table = database.table
    database.sql(
        f"CREATE TABLE {table} (id {_id(database)}, name VARCHAR(20))",
        f"INSERT INTO {table} (name) VALUES ('a'), ('b'), ('c'), ('d'), ('e')",
    )
    reader = database.start(mode="incrementing")
    reader.until(lambda: len(reader.ids(table)) == 5, limit=2)
    database.sql(f"INSERT INTO {table} (name) VALUES ('f')")
    reader.until(lambda: len(reader.ids(table)) == 6)
    assert reader.rows[table][-1] == {"id": 6, "name": "f"}
    (stored,) = reader.stored
    assert stored.offset == {"incrementing": 6}
    full = table if database.kind == "sqlite" else f"records.{table}"
    assert stored.partition == {"protocol": "1", "table": full}


def test_rows_by_timestamp_and_number(database: Database) -> None:
    table = database.table
    database.sql(
        f"CREATE TABLE {table} (id {_id(database)}, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)",
        *(f"INSERT INTO {table} (at) VALUES ('2024-01-01 00:00:0{second}')" for second in (1, 1, 2, 1)),
    )
    for mode in ("timestamp", "timestamp+incrementing"):
        reader = database.start(mode=mode, timestamp_column_name="at")
        while len(reader.ids(table)) < 4:
            if reader.turn(1):
                reader.seek()
        assert reader.ids(table) == [1, 2, 4, 3]
        (stored,) = reader.stored
        assert stored.offset is not None and stored.offset["timestamp"] == 1704067202000


def test_rows_of_the_running_second_wait_for_its_end(database: Database) -> None:
    """Its clock has whole seconds: another row of the same may be on its way."""
    table = database.table
    database.sql(
        f"CREATE TABLE {table} (id {_id(database)}, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    reader = database.start(mode="timestamp", timestamp_column_name="at")
    end = time.monotonic() + 3
    count = 0
    while time.monotonic() < end:
        database.sql(f"INSERT INTO {table} (id) VALUES (NULL)")
        count += 1
        reader.turn()
    reader.until(lambda: len(reader.ids(table)) >= count)
    assert sorted(reader.ids(table)) == list(range(1, count + 1))


def test_a_row_that_is_committed_late_is_not_lost(database: Database) -> None:
    table = database.table
    database.sql(
        f"CREATE TABLE {table} (id {_id(database)}, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    waits = {"icestream_jdbc_transaction_wait_ms": "2500"} if database.kind == "mariadb" else {}
    reader = database.start(mode="timestamp+incrementing", timestamp_column_name="at", **waits)
    slow = database.connect()
    slow.cursor().execute(f"INSERT INTO {table} (id) VALUES (NULL)")
    if database.kind == "mariadb":
        database.sql(f"INSERT INTO {table} (id) VALUES (NULL)")
    reader.quiet(1.0)
    assert reader.ids(table) == []
    slow.commit()
    slow.close()
    if database.kind == "sqlite":
        database.sql(f"INSERT INTO {table} (id) VALUES (NULL)")
    reader.until(lambda: len(reader.ids(table)) == 2)
    assert reader.ids(table) == [1, 2]


def test_rows_of_a_query(database: Database) -> None:
    table = database.table
    database.sql(
        f"CREATE TABLE {table} (id {_id(database)}, name VARCHAR(20) NOT NULL, n DECIMAL(5, 2))",
        f"INSERT INTO {table} (name, n) VALUES ('a', 1.5), ('b', 2.5)",
    )
    reader = database.start(
        mode="incrementing",
        incrementing_column_name="id",
        query=f"SELECT id, name, n FROM {table} WHERE name LIKE '%b%'",
        table_whitelist="",
        topic_prefix="queried",
    )
    reader.until(lambda: reader.ids("queried") == [2])
    assert str(reader.rows["queried"][0]["n"]) == "2.50"
    assert reader.stored == [OffsetEntry({"query": "query"}, {"incrementing": 2})]


def test_all_rows(database: Database) -> None:
    table = database.table
    database.sql(
        f"CREATE TABLE {table} (id {_id(database)})",
        *(f"INSERT INTO {table} (id) VALUES (NULL)" for _ in range(5)),
    )
    reader = database.start(mode="bulk")
    reader.until(lambda: len(reader.ids(table)) >= 10, limit=2)
    assert reader.ids(table)[:10] == [*range(1, 6)] * 2


def test_an_account_that_sees_transactions_waits_for_those_that_write(mariadb: Server) -> None:
    table = f"source_{next(_NUMBERS)}"
    host, _, port = mariadb.address.partition("://")[2].partition("/")[0].partition(":")
    login = {"host": host, "port": int(port), "password": mariadb.password, "database": mariadb.user}
    slow, fast = (pymysql.connect(user=mariadb.user, **login) for _ in range(2))  # type: ignore[arg-type]
    fast.cursor().execute(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY)")
    slow.cursor().execute(f"INSERT INTO {table} VALUES (NULL)")
    fast.cursor().execute(f"INSERT INTO {table} VALUES (NULL)")
    fast.commit()
    watcher = {"connection.user": f"{mariadb.user}_watcher", "topic.prefix": "", "table.whitelist": table}
    waits = {"mode": "incrementing", "icestream.jdbc.transaction.wait.ms": "100"}
    reader = SourceReader({**mariadb.settings, **watcher, **waits})
    reader.quiet(1.0)
    assert reader.rows == {}
    slow.commit()
    reader.until(lambda: reader.ids(table) == [1, 2])
    reader.close()
    slow.close()
    fast.close()


def test_a_list_of_transactions_that_others_keep_alive_is_not_taken_for_a_new_one(mariadb: Server) -> None:
    """InnoDB answers from the same list until nobody has read it for 0.1 s."""
    from icestream.connectors.jdbc.source.databases.mysql import _listed_now

    host, _, port = mariadb.address.partition("://")[2].partition("/")[0].partition(":")
    login = {"host": host, "port": int(port), "password": mariadb.password, "database": mariadb.user}
    table = f"source_{next(_NUMBERS)}"
    with contextlib.ExitStack() as stack:
        writer, asking, monitor = (
            stack.enter_context(pymysql.connect(user=user, autocommit=True, **login))  # type: ignore[call-overload]
            for user in (mariadb.user, f"{mariadb.user}_watcher", f"{mariadb.user}_watcher")
        )
        writer.cursor().execute(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY)")

        def keep_alive() -> None:
            with monitor.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM information_schema.innodb_trx")

        time.sleep(0.2)
        keep_alive()
        writer.begin()
        writer.cursor().execute(f"INSERT INTO {table} VALUES (NULL)")
        keep_alive()
        found = _listed_now(asking)
        assert found is not None and len(found.writing) == 1
        writer.rollback()
