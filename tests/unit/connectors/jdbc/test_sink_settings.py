"""What configs of the JDBC sink mean, and what is wrong with some."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.jdbc.sink import settings
from icestream.connectors.jdbc.sink.plugin import DebeziumJdbcSinkPlugin, JdbcSinkPlugin
from icestream.connectors.jdbc.sink.sink import JdbcSink
from icestream.connectors.jdbc.sink.table_names import table_id

URL = {"connection.url": "jdbc:sqlite:rows.db"}


def problems(**keys: str) -> list[str]:
    given = {key.replace("_", "."): value for key, value in keys.items()}
    return [one.message for one in JdbcSinkPlugin().problems({**URL, **given})]


def test_what_does_not_go_together_is_told() -> None:
    assert problems() == []
    assert "set pk.mode to where it is from, such as record_key" in problems(insert_mode="upsert")[0]
    assert "needs pk.mode=record_key" in problems(delete_enabled="true")[0]
    assert "three columns" in problems(pk_mode="kafka", pk_fields="a,b")[0]
    assert "is no name of a table" in problems(table_name_format="a..b")[0]


def test_other_classes_for_logins_are_refused() -> None:
    default = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"
    settings.of_confluent({**URL, "jdbc.credentials.provider.class": default})
    with pytest.raises(ConfigError, match="classes of Java are not loaded"):
        settings.of_confluent({**URL, "jdbc.credentials.provider.class": "com.example.Vault"})


def test_an_address_is_checked_with_the_config() -> None:
    given = {"connection.url": "jdbc:oracle:thin:@db:1521/x"}
    assert "is no database" in JdbcSinkPlugin().problems(given)[0].message


def test_keys_without_effect_are_told() -> None:
    told = JdbcSinkPlugin().warnings(
        {
            **URL,
            "batch.size": "10",
            "date.calendar.system": "PROLEPTIC_GREGORIAN",
            "mssql.use.merge.holdlock": "false",
            "trim.sensitive.log": "true",
        }
    )
    assert [one.partition("'")[2].partition("'")[0] for one in told] == [
        "batch.size",
        "date.calendar.system",
        "mssql.use.merge.holdlock",
        "trim.sensitive.log",
    ]
    told = DebeziumJdbcSinkPlugin().warnings(
        {
            **URL,
            "quote.identifiers": "false",
            "use.reduction.buffer": "true",
            "connection.restart.on.errors": "true",
            "connection.pool.max_size": "3",
        }
    )
    assert len(told) == 4
    assert all("has no effect" in one for one in told)


def test_a_pool_of_connections_is_taken() -> None:
    meant = settings.of_debezium({**URL, "connection.pool.min_size": "5", "connection.pool.timeout": "9"})
    assert meant.access.address.parameters == {}


def test_tables_and_deletions_of_debezium() -> None:
    keys = {"primary.key.mode": "record_key", "delete.enabled": "true"}
    meant = settings.of_debezium({**URL, **keys, "table.name.format": "of_${topic}"})
    assert (meant.names.format, meant.rules.deletes) == ("of_${topic}", True)


def test_fields_of_debezium_may_have_their_topic() -> None:
    meant = settings.of_debezium({**URL, "field.include.list": "orders:id,name"})
    assert meant.rules.fields == ("id", "name")


def test_commits_have_an_interval() -> None:
    options = JdbcSinkPlugin().options({**URL, "icestream.jdbc.commit.interval.ms": "250"})
    assert options.commit_seconds == 0.25


def test_records_may_name_so_many_tables() -> None:
    config = {**URL, "icestream.jdbc.tables.max": "7", "topics": "a,b"}
    sink = JdbcSink("job", config, settings.of_confluent(config))
    assert sink.routing is not None and sink.routing.most_targets == 7
    assert list(sink.targets()) == []


@pytest.mark.parametrize("config", [{"topics": "a"}, {"topics": "a,b", "table.name.format": "t"}])
def test_one_table_needs_no_routes(config: dict[str, str]) -> None:
    sink = JdbcSink("job", config, settings.of_confluent({**URL, **config}))
    assert sink.routing is None and len(sink.targets()) == 1


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("t", ("", "", "t")),
        ("s.t", ("", "s", "t")),
        ("c.s.t", ("c", "s", "t")),
        ('"a.b"."c""d"', ("", "a.b", 'c"d')),
        ("`a.b`.t", ("", "a.b", "t")),
        ("odd name-1", ("", "", "odd name-1")),
    ],
)
def test_names_of_tables_have_parts(name: str, parts: tuple[str, str, str]) -> None:
    assert tuple(table_id(name)) == parts


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a.b.c.d", 'a"b', '"a"b', "a\0"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a table"):
        table_id(name)
