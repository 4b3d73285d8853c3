"""What the dialects say of real databases: tables, columns, keys, errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.errors import FatalError, SinkUnavailable
from icestream.connectors.jdbc.connections import Access, access_from, close, connect
from icestream.connectors.jdbc.dialects.base import Connection, ErrorKind, TableId, execute
from icestream.embedded import ports

Opened = tuple[Access, Connection]
_TABLE = """
CREATE TABLE "Orders" (id BIGINT NOT NULL, "part key" VARCHAR(20) NOT NULL, price NUMERIC(10, 2), note TEXT,
count INTEGER DEFAULT 1, {generated}, PRIMARY KEY ("part key", id))
"""
_GENERATED = {
    "postgresql": "twice BIGINT GENERATED ALWAYS AS (id * 2) STORED",
    "mysql": "twice BIGINT AS (id * 2) STORED",
    "sqlite": "twice BIGINT AS (id * 2) STORED",
}


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    settings = {"connection.url": f"jdbc:sqlite:{tmp_path}/rows.db"}
    if request.param != "sqlite":
        settings = request.getfixturevalue(request.param).settings
    access = access_from(settings)
    connection = connect(access)
    quote = access.dialect.quote_sign
    execute(connection, _TABLE.format(generated=_GENERATED[access.dialect.kind]).replace('"', quote))
    connection.commit()
    yield access, connection
    connection.rollback()
    execute(connection, f"DROP TABLE {access.dialect.quote('Orders')}")
    connection.commit()
    close(access, connection)


def test_a_table_is_known_with_its_columns_and_key(opened: Opened) -> None:
    access, connection = opened
    dialect = access.dialect
    found = dialect.find(connection, TableId("", "", "Orders"))
    assert found is not None
    assert found in dialect.tables(connection)
    assert dialect.primary_key(connection, found) == ["part key", "id"]
    columns = {column.name: column for column in dialect.columns(connection, found)}
    assert list(columns) == ["id", "part key", "price", "note", "count", "twice"]
    assert not columns["id"].is_nullable and columns["note"].is_nullable
    assert (columns["price"].precision, columns["price"].scale) == (10, 2)
    assert columns["part key"].length == 20
    assert columns["count"].has_default and not columns["note"].has_default
    assert [name for name, column in columns.items() if column.is_generated] == ["twice"]
    assert dialect.find(connection, TableId("", "", "nowhere")) is None


def test_refused_rows_are_told_from_wrong_statements(opened: Opened) -> None:
    access, connection = opened
    dialect = access.dialect
    table = dialect.quote("Orders")
    cursor = connection.cursor()
    with pytest.raises(dialect.errors()) as caught:
        cursor.execute(f"INSERT INTO {table} (id) VALUES (NULL)")
    assert dialect.kind_of(caught.value) is ErrorKind.REFUSED_ROW
    connection.rollback()
    with pytest.raises(dialect.errors()) as caught:
        cursor.execute(f"INSERT INTO {table} (no_column) VALUES (1)")
    assert dialect.kind_of(caught.value) is ErrorKind.FATAL
    cursor.close()


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_wrong_login_fails_at_once(request: pytest.FixtureRequest, name: str) -> None:
    server = request.getfixturevalue(name)
    with pytest.raises(FatalError, match="refuses the login") as caught:
        connect(access_from({**server.settings, "connection.password": "wrong-secret"}), pytest.fail)
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_database_that_is_away_is_tried_again(scheme: str) -> None:
    """`connection.attempts` and `connection.backoff.ms`."""
    slept: list[float] = []
    away = {
        "connection.url": f"jdbc:{scheme}://{ports.HOST}:{ports.free_port()}/x",
        "connection.attempts": "4",
        "connection.backoff.ms": "250",
    }
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        connect(access_from(away), slept.append)
    assert slept == [0.25] * 3
