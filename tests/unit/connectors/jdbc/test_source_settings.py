"""The settings of the JDBC source: what goes together, what has no effect, how tasks share the tables."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry
from icestream.connectors.jdbc.connections import access_from
from icestream.connectors.jdbc.dialects.base import TableId
from icestream.connectors.jdbc.source.keys import JDBC_SOURCE
from icestream.connectors.jdbc.source.plugin import JdbcSourcePlugin
from icestream.connectors.jdbc.source.settings import settings_from
from icestream.connectors.jdbc.source.tables import TaskShare

PLUGIN = JdbcSourcePlugin()
BASE = {
    "connection.url": "jdbc:postgresql://host/db",
    "mode": "incrementing",
    "topic.prefix": "p-",
}


def blamed(**settings: str) -> list[str]:
    config = {**BASE, **{key.replace("_", "."): value for key, value in settings.items()}}
    return [problem.key for problem in (*JDBC_SOURCE.problems(config), *PLUGIN.problems(config))]


def test_the_defaults_are_those_of_java() -> None:
    own = JDBC_SOURCE.parse(BASE)
    assert {key: own[key] for key in own if own[key] not in (None, "", [])} == {
        "connection.url": BASE["connection.url"],
        "mode": "incrementing",
        "topic.prefix": "p-",
        "connection.attempts": 3,
        "connection.backoff.ms": 10000,
        "table.types": ["TABLE"],
        "jdbc.credentials.provider.class": "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider",
        "numeric.precision.mapping": False,
        "date.calendar.system": "LEGACY",
        "db.timezone": "UTC",
        "quote.sql.identifiers": "ALWAYS",
        "timestamp.granularity": "connect_logical",
        "validate.non.null": True,
        "query.retry.attempts": -1,
        "transaction.isolation.mode": "DEFAULT",
        "poll.interval.ms": 5000,
        "batch.max.rows": 1000,
        "max.buffer.size": 0,
        "poll.linger.ms": 5000,
        "table.poll.interval.ms": 60000,
        "table.monitoring.startup.polling.limit.ms": 10000,
        "timestamp.delay.interval.ms": 0,
        "table.names.qualify": True,
        "sql.quote.identifiers": True,
        "engine.shutdown.timeout": 0,
        "icestream.jdbc.transaction.wait.ms": 60000,
    }


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"mode": "often"}, "mode"),
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"table_whitelist": "a", "table_blacklist": "b"}, "table.blacklist"),
        ({"table_whitelist": "a", "table_include_list": "b"}, "table.include.list"),
        ({"table_include_list": "("}, "table.include.list"),
        ({"query": "SELECT 1", "table_whitelist": "a", "incrementing_column_name": "x"}, "table.whitelist"),
        ({"query": "SELECT 1"}, "incrementing.column.name"),
        ({"query": "SELECT 1", "query_masked": "SELECT 2", "incrementing_column_name": "x"}, "query.masked"),
        ({"incrementing_column_mapping": "no colon"}, "incrementing.column.mapping"),
        (
            {"incrementing_column_mapping": "a:b", "incrementing_column_name": "x"},
            "incrementing.column.mapping",
        ),
        ({"mode": "timestamp", "timestamp_columns_mapping": "(:[b]"}, "timestamp.columns.mapping"),
        ({"db_timezone": "Nowhere"}, "db.timezone"),
        ({"numeric_mapping": "better"}, "numeric.mapping"),
        ({"timestamp_granularity": "years"}, "timestamp.granularity"),
        ({"transaction_isolation_mode": "SQL_SERVER_SNAPSHOT"}, "transaction.isolation.mode"),
        ({"jdbc_credentials_provider_class": "com.example.Mine"}, "jdbc.credentials.provider.class"),
        ({"dialect_name": "MySqlDatabaseDialect"}, "dialect.name"),
        ({"connection_url": "jdbc:oracle:thin:@host"}, "connection.url"),
        ({"connection_socketFactory": "evil"}, "connection.socketFactory"),
        ({"connection_attempts": "0"}, "connection.attempts"),
        ({"batch_max_rows": "0"}, "batch.max.rows"),
        ({"topic_prefix": "no blanks"}, "topic.prefix"),
    ],
)
def test_what_does_not_go_is_blamed_on_its_key(settings: dict[str, str], key: str) -> None:
    assert blamed(**settings) == [key]


def test_keys_without_effect_are_told() -> None:
    config = {
        **BASE,
        "poll.linger.ms": "1",
        "max.buffer.size": "5",
        "table.monitoring.startup.polling.limit.ms": "1",
        "date.calendar.system": "LEGACY",
        "table.names.qualify": "false",
        "sql.quote.identifiers": "false",
        "engine.shutdown.timeout": "1",
    }
    assert JDBC_SOURCE.problems(config) == []
    assert [warning.split("'")[1] for warning in PLUGIN.warnings(config)] == [
        *("poll.linger.ms", "max.buffer.size", "table.monitoring.startup.polling.limit.ms"),
        *("date.calendar.system", "table.names.qualify", "sql.quote.identifiers", "engine.shutdown.timeout"),
    ]


def test_a_turn_has_a_hundred_times_batch_max_rows() -> None:
    assert settings_from({**BASE, "batch.max.rows": "7"}).most == 700


def test_how_the_database_is_reached() -> None:
    config = {
        **BASE,
        "connection.user": "me",
        "connection.password": "secret",
        "connection.loginTimeout": "5",
        "connection.attempts": "7",
        "connection.backoff.ms": "250",
        "dialect.name": "PostgreSqlDatabaseDialect",
        "jdbc.credentials.provider.any": "x",
    }
    assert blamed(**{key.replace(".", "_"): value for key, value in config.items()}) == []
    access = access_from(config)
    assert (access.attempts, access.backoff_seconds) == (7, 0.25)
    assert access.address.user == "me" and access.address.parameters["connect_timeout"] == "5"
    assert "secret" not in repr(access) and "secret" not in repr(settings_from(config))


def test_tasks_share_the_tables() -> None:
    assert [task["tables"] for task in PLUGIN.tasks({**BASE, "table.whitelist": "a, b,c"}, 2)] == ["a,c", "b"]
    assert len(PLUGIN.tasks({**BASE, "query": "SELECT 1"}, 5)) == 1
    assert len(PLUGIN.tasks({**BASE, "query.masked": "SELECT 1"}, 5)) == 1
    shares = [settings_from(task).share for task in PLUGIN.tasks(BASE, 3)]
    for name in "abcdefgh":
        assert sum(share.has(TableId("", "public", name)) for share in shares) == 1
    assert str(shares[1]) == str(TaskShare(1, 3))


def test_a_masked_query_is_in_no_text() -> None:
    settings = settings_from({**BASE, "query.masked": "SELECT secret"})
    assert settings.query == "SELECT secret" and "secret" not in repr(settings)


def test_exactly_once_is_not_for_dumps() -> None:
    assert PLUGIN.exactly_once_problem(BASE) is None
    assert PLUGIN.exactly_once_problem({**BASE, "mode": "bulk"})


@pytest.mark.parametrize(
    ("mode", "partition", "offset", "is_good"),
    [
        ("incrementing", {"protocol": "1", "table": "public.t"}, {"incrementing": 5}, True),
        ("incrementing", {"table": "t"}, {"incrementing": 5}, True),
        ("incrementing", {"table": "t"}, {"incrementing": "5"}, False),
        ("incrementing", {"table": "t"}, {"timestamp": 5}, False),
        ("incrementing", {"protocol": "2", "table": "t"}, {"incrementing": 5}, False),
        ("timestamp", {"table": "t"}, {"timestamp": 5, "timestamp_nanos": 5000000}, True),
        ("timestamp+incrementing", {"table": "t"}, {"timestamp": 5, "incrementing": 1}, True),
        ("timestamp", {"query": "query"}, {"timestamp": 5}, False),
        ("bulk", {"table": "t"}, {"incrementing": 5}, False),
    ],
)
def test_offsets_by_hand(mode: str, partition: dict[str, str], offset: dict[str, Any], is_good: bool) -> None:
    config = {**BASE, "mode": mode, "timestamp.column.name": "at"}
    entries = [OffsetEntry(partition, offset), OffsetEntry({"table": "t"}, None)]
    if is_good:
        PLUGIN.check_offsets(config, entries)
        return
    with pytest.raises(BadOffsets):
        PLUGIN.check_offsets(config, entries)


@pytest.mark.parametrize(("attempts", "most"), [("-1", None), ("0", 0), ("2", 2)])
def test_a_database_that_is_away_is_asked_again(attempts: str, most: int | None) -> None:
    config = {**BASE, "query.retry.attempts": attempts, "connection.password": "secret"}
    assert PLUGIN.retries(config).most == most
    assert PLUGIN.destination(config) == "postgresql://host:5432/db"
