"""The JDBC source on PostgreSQL: its modes, and the rows that other sources lose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest

from icestream.api.offset_admin import OffsetEntry
from tests.databases import Server
from tests.integration.jdbc.source_reader import SourceReader

_NUMBERS = itertools.count(1)
Execute = Callable[..., Any]


@pytest.fixture
def connect(postgresql: Server) -> Iterator[Callable[[], Any]]:
    opened: list[Any] = []

    def connection() -> Any:
        opened.append(
            psycopg2.connect(postgresql.address, user=postgresql.user, password=postgresql.password)
        )
        return opened[-1]

    yield connection
    for one in opened:
        one.close()


@pytest.fixture
def sql(connect: Callable[[], Any]) -> Execute:
    connection = connect()
    connection.autocommit = True

    def execute(statement: str, *parameters: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else None

    return execute


@pytest.fixture
def schema(sql: Execute) -> str:
    name = f"source_{next(_NUMBERS)}"
    sql(f"CREATE SCHEMA {name}")
    sql(f"SET search_path TO {name}")
    return name


@pytest.fixture
def start(postgresql: Server, schema: str) -> Iterator[Callable[..., SourceReader]]:
    started: list[SourceReader] = []

    def begin(stored: list[OffsetEntry] | None = None, tasks: int = 1, **settings: str) -> SourceReader:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        base = {**postgresql.settings, "topic.prefix": "p-", "schema.pattern": schema, **given}
        started.append(SourceReader(base, stored or [], tasks))
        return started[-1]

    yield begin
    for one in started:
        one.close()


def test_rows_come_once_by_their_number(sql: Execute, start: Any, schema: str) -> None:
    sql("CREATE TABLE t (id bigserial PRIMARY KEY, name text)")
    sql("INSERT INTO t (name) SELECT 'n' || i FROM generate_series(1, 1000) i")
    reader = start(mode="incrementing", incrementing_column_name="id", table_whitelist="t")
    reader.quiet(limit=300)
    assert reader.ids("p-t") == list(range(1, 1001))
    assert reader.stored == [OffsetEntry({"protocol": "1", "table": f"{schema}.t"}, {"incrementing": 1000})]
    sql("INSERT INTO t (name) VALUES ('later')")
    reader.until(lambda: len(reader.ids("p-t")) == 1001)
    assert reader.rows["p-t"][-1] == {"id": 1001, "name": "later"}


def test_a_lower_number_that_is_committed_later_is_not_lost(sql: Execute, start: Any, connect: Any) -> None:
    sql("CREATE TABLE t (id serial PRIMARY KEY, name text)")
    reader = start(mode="incrementing")
    slow = connect()
    slow.cursor().execute("SET search_path TO " + sql("SHOW search_path")[0][0])
    slow.cursor().execute("INSERT INTO t (name) VALUES ('slow')")
    sql("INSERT INTO t (name) VALUES ('fast')")
    reader.quiet()
    assert reader.ids("p-t") == []
    slow.commit()
    reader.until(lambda: len(reader.ids("p-t")) == 2)
    assert reader.ids("p-t") == [1, 2]
