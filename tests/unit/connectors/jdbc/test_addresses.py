"""Addresses of databases: what is taken, and what nobody may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.jdbc.addresses import DatabaseAddress, database_address, file_problem
from icestream.connectors.jdbc.connections import access_from


def address(url: str, **more: str) -> DatabaseAddress:
    keys = {f"connection.{key}": value for key, value in more.items()}
    return database_address({"connection.url": url, **keys})


def test_a_server_with_its_login_apart() -> None:
    found = address(
        "jdbc:postgresql://db.example.com/shop?ssl=true&currentSchema=sales", user="me", password="x/y"
    )
    assert found.hosts == (("db.example.com", 5432),)
    assert (found.database, found.user, found.password) == ("shop", "me", "x/y")
    assert found.parameters["sslmode"] == "verify-full"
    assert found.parameters["options"] == "-c search_path=sales"
    assert "x/y" not in repr(found) and "x/y" not in str(found)


def test_parameters_may_be_keys() -> None:
    """Under `connection.`, as in Java."""
    found = address("jdbc:mysql://db:3307/shop?user=me&password=in-url", connectTimeout="3000")
    assert found.hosts == (("db", 3307),)
    assert (found.user, found.password) == ("me", "in-url")
    assert found.parameters["connect_timeout"] == "3"


def test_sqlite_is_a_file() -> None:
    assert address("jdbc:sqlite:/data/rows.db").database == "/data/rows.db"
    assert address("jdbc:sqlite:file:/data/rows.db?mode=rwc").database == "/data/rows.db"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "is missing"),
        ("jdbc:oracle:thin:@db:1521/x", "'jdbc:oracle:…' is no database"),
        ("jdbc:sqlserver://db;databaseName=x", "use PostgreSQL, MySQL, MariaDB or"),
        ("jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil/x.sql'", "is no database"),
        ("postgresql://db/x", "is no database"),
        ("jdbc:postgresql:///x", "host is missing"),
        ("jdbc:postgresql://db/x?socketFactory=org.evil.X&socketFactoryArg=http://e", "socketFactory"),
        ("jdbc:postgresql://db/x?loggerFile=/etc/cron.d/x", "loggerFile"),
        ("jdbc:mysql://db/x?allowLoadLocalInfile=true", "allowLoadLocalInfile"),
        ("jdbc:mysql://db/x?autoDeserialize=true", "autoDeserialize"),
        ("jdbc:mysql://(host=a,port=1)/x", "one host"),
        ("jdbc:mysql://a,b/x", "one host"),
        ("jdbc:postgresql://db:1/x@evil/db", "more than one way"),
        ("jdbc:postgresql://db/x#?a=b", "more than one way"),
        ("jdbc:postgresql://db:99999/x", "no port"),
        ("jdbc:postgresql://db/x?currentSchema=a -c log_statement=all", "more than one way|currentSchema"),
        ("jdbc:sqlite::memory:", "colon"),
        ("jdbc:sqlite::resource:http://evil/x.db", "colon"),
        ("jdbc:sqlite:", "in memory"),
    ],
)
def test_other_addresses_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        address(url)


def test_a_password_in_an_address_is_not_told() -> None:
    with pytest.raises(ConfigError) as caught:
        address("jdbc:oracle:thin:me/secret@db")
    assert "secret" not in str(caught.value)


def test_a_dialect_of_another_database_is_refused() -> None:
    config = {"connection.url": "jdbc:sqlite:x.db", "dialect.name": "OracleDatabaseDialect"}
    with pytest.raises(ConfigError, match=r"dialect\.name: 'OracleDatabaseDialect' is not for sqlite"):
        access_from(config)


def test_a_worker_may_name_the_folders_of_databases(tmp_path: Path) -> None:
    worker = {"icestream.database.folders": str(tmp_path)}
    inside = {"connection.url": f"jdbc:sqlite:{tmp_path}/a.db"}
    outside = {"connection.url": f"jdbc:sqlite:{tmp_path}/../a.db"}
    assert file_problem(inside, worker) is None
    problem = file_problem(outside, worker)
    assert problem is not None and "none of the folders" in problem.message


def test_a_worker_that_names_no_folder_opens_no_file(tmp_path: Path) -> None:
    problem = file_problem({"connection.url": f"jdbc:sqlite:{tmp_path}/a.db"}, {})
    assert problem is not None and "this worker opens no files of SQLite" in problem.message
    assert file_problem({"connection.url": "jdbc:postgresql://db/lake"}, {}) is None
