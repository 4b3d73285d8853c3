"""Every key of the JDBC sink, by what it does: a real manager, a real broker, real databases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import ConfigError, RecordRejected
from icestream.connectors.jdbc.connections import connection_to
from icestream.connectors.jdbc.sink.table import stage_prefix
from icestream.embedded.kafka import Broker
from icestream.plugins import find_connector, sink_plugin
from tests.integration.jdbc.sink_job import AIVEN, CONFLUENT, DEBEZIUM, SinkTest, with_schema

SCHEMAS = {"value.converter.schemas.enable": "true"}
UPSERT = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id"}


@pytest.fixture
def job(broker: Broker, request: pytest.FixtureRequest) -> Iterator[SinkTest]:
    """On PostgreSQL."""
    made = SinkTest(request.getfixturevalue("postgresql").settings, broker)
    yield made
    made.close()


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.long), "sqlite"])
def anywhere(broker: Broker, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkTest]:
    """On every database."""
    settings = {"connection.url": f"jdbc:sqlite:{tmp_path}/rows.db"}
    if request.param != "sqlite":
        settings = dict(request.getfixturevalue(request.param).settings)
    made = SinkTest(settings, broker)
    yield made
    made.close()


# -- keys of rows --


def test_pk_mode_kafka_names_the_origin_of_each_row(anywhere: SinkTest) -> None:
    """`pk.mode=kafka`, `auto.create`; and verify compares every offset."""
    anywhere.produce({"a": 1}, {"a": 2})
    anywhere.run({"pk.mode": "kafka", "auto.create": "true"})
    names = "__connect_topic, __connect_partition, __connect_offset, a"
    expected = [(anywhere.name, 0, 0, 1), (anywhere.name, 0, 1, 2)]
    assert anywhere.rows(f"SELECT {names} FROM T ORDER BY 3") == expected
    assert anywhere.problems() == []


def test_pk_fields_of_kafka_may_have_other_names(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (t TEXT, p INT, o BIGINT, a INT, PRIMARY KEY (t, p, o))")
    job.produce({"a": 1})
    job.run({"pk.mode": "kafka", "pk.fields": "t,p,o"})
    assert job.rows() == [(job.name, 0, 0, 1)]


def test_pk_mode_record_value_takes_fields_of_the_value(anywhere: SinkTest) -> None:
    """`pk.mode=record_value`, `insert.mode=upsert`."""
    anywhere.sql("CREATE TABLE T (a BIGINT, b BIGINT, n BIGINT, PRIMARY KEY (a, b))")
    anywhere.produce({"a": 1, "b": 1, "n": 1}, {"a": 1, "b": 2, "n": 2}, {"a": 1, "b": 1, "n": 3})
    anywhere.run({"pk.mode": "record_value", "pk.fields": "a,b", "insert.mode": "upsert"})
    assert anywhere.rows("SELECT a, b, n FROM T ORDER BY 1, 2") == [(1, 1, 3), (1, 2, 2)]
    anywhere.produce({"a": 1, "b": 2, "n": 5})
    anywhere.run()
    assert anywhere.rows("SELECT a, b, n FROM T ORDER BY 1, 2") == [(1, 1, 3), (1, 2, 5)]


def test_pk_mode_record_key_takes_fields_of_the_key(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id BIGINT PRIMARY KEY, n BIGINT)")
    job.produce({"n": 1}, {"n": 2}, keys=[{"id": 1, "other": 5}, {"id": 1, "other": 6}])
    keys = {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
    }
    job.run({**UPSERT, **keys})
    assert job.rows() == [(1, 2)]


def test_records_without_a_key_fail(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id TEXT PRIMARY KEY, n BIGINT)")
    job.produce({"n": 1}, {"n": 2}, keys=[None, "k"])
    job.run(UPSERT)
    assert (job.rows(), job.dead()) == ([("k", 2)], [{"n": 1}])


def test_insert_mode_update_changes_only_rows_that_are_there(anywhere: SinkTest) -> None:
    anywhere.sql(
        "CREATE TABLE T (id VARCHAR(9) PRIMARY KEY, n BIGINT, kept BIGINT)",
        "INSERT INTO T VALUES ('a', 1, 7)",
    )
    anywhere.produce({"n": 5}, {"n": 6}, {"n": 8}, keys=["a", "a", "b"])
    anywhere.run({**UPSERT, "insert.mode": "update"})
    assert anywhere.rows() == [("a", 6, 7)]


def test_delete_enabled_deletes_also_between_inserts(anywhere: SinkTest) -> None:
    """`delete.enabled` with `insert.mode=insert`: what is before a deletion is gone with it."""
    anywhere.sql("CREATE TABLE T (id VARCHAR(9) PRIMARY KEY, n BIGINT)", "INSERT INTO T VALUES ('x', 0)")
    anywhere.produce({"n": 1}, None, {"n": 2}, None, keys=["a", "a", "a", "x"])
    anywhere.run({"pk.mode": "record_key", "pk.fields": "id", "delete.enabled": "true"})
    assert anywhere.rows() == [("a", 2)]


def test_a_record_without_a_value_fails_if_nothing_may_be_deleted(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id TEXT PRIMARY KEY, n BIGINT)")
    job.produce({"n": 1}, None, keys=["a", "a"])
    job.run(UPSERT)
    assert (job.rows(), job.dead()) == ([("a", 1)], [None])


# -- tables and columns --


def test_table_name_format_routes_topics_to_their_tables(anywhere: SinkTest) -> None:
    """`table.name.format`, `auto.create`; one job, a table for each topic."""
    one, two = f"{anywhere.name}-a", f"{anywhere.name}-b"
    anywhere.produce({"n": 1}, {"n": 2}, topic=one)
    anywhere.produce({"text": "x"}, topic=two)
    anywhere.run({"topics": f"{one},{two}", "table.name.format": "to_${topic}", "auto.create": "true"})
    quote = anywhere.access.quote
    assert anywhere.rows(f"SELECT n FROM {quote('to_' + one)} ORDER BY 1") == [(1,), (2,)]
    assert anywhere.rows(f"SELECT text FROM {quote('to_' + two)}") == [("x",)]
    anywhere.produce({"n": 3}, topic=one)
    anywhere.run()
    assert len(anywhere.rows(f"SELECT n FROM {quote('to_' + one)}")) == 3


def test_auto_create_makes_columns_of_the_schemas_types(anywhere: SinkTest) -> None:
    decimal = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2"},
        "optional": True,
    }
    moment = {
        "type": "int64",
        "name": "org.apache.kafka.connect.data.Timestamp",
        "version": 1,
        "optional": True,
    }
    day = {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1, "optional": True}
    fields: dict[str, Any] = {
        "id": {"type": "int64", "optional": False},
        "i": "int32",
        "f": "float",
        "d": "double",
        "b": "boolean",
        "s": "string",
        "raw": "bytes",
        "money": decimal,
        "at": moment,
        "day": day,
    }
    value = {
        "id": 1,
        "i": 2,
        "f": 1.5,
        "d": 2.5,
        "b": True,
        "s": "ä'\\\"\n",
        "raw": "AP8=",
        "money": "MDk=",
        "at": 1,
        "day": 1,
    }
    nothing = dict.fromkeys(fields) | {"id": 2}
    anywhere.produce(with_schema(fields, value), with_schema(fields, nothing))
    anywhere.run({**SCHEMAS, "auto.create": "true", "pk.mode": "record_value", "pk.fields": "id"})
    first, second = anywhere.rows()
    assert anywhere.dead() == []
    assert first[:4] == (1, 2, 1.5, 2.5) and bool(first[4]) and first[5] == "ä'\\\"\n"
    assert bytes(first[6]) == b"\x00\xff" and Decimal(str(first[7])) == Decimal("123.45")
    if anywhere.access.dialect.kind == "sqlite":
        assert first[8:] == (1, 86_400_000)
    else:
        assert first[8:] == (dt.datetime(1970, 1, 1, 0, 0, 0, 1000), dt.date(1970, 1, 2))
    assert second == (2, *[None] * 9)


def test_auto_create_is_off_by_default(job: SinkTest) -> None:
    job.produce({"n": 1})
    with pytest.raises(ConfigError, match=r"does not exist .* auto\.create=true"):
        job.run({})


def test_auto_evolve_adds_columns(anywhere: SinkTest) -> None:
    anywhere.sql("CREATE TABLE T (id BIGINT)")
    anywhere.produce({"id": 1}, {"id": 2, "name": "x", "n": 5})
    anywhere.run({"auto.evolve": "true"})
    assert anywhere.rows("SELECT id, name, n FROM T ORDER BY 1") == [(1, None, None), (2, "x", 5)]


def test_a_field_that_the_table_lacks_fails_its_record(job: SinkTest) -> None:
    """`auto.evolve=false`."""
    job.sql("CREATE TABLE T (id BIGINT)")
    job.produce({"id": 1}, {"id": 2, "name": "x"})
    job.run({})
    assert (job.rows(), job.dead()) == ([(1,)], [{"id": 2, "name": "x"}])


def test_fields_whitelist_takes_only_these_and_the_key(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id BIGINT PRIMARY KEY, a BIGINT, b BIGINT DEFAULT 9)")
    job.produce({"id": 1, "a": 1, "b": 1, "c": 1})
    job.run({"pk.mode": "record_value", "pk.fields": "id", "fields.whitelist": "a"})
    job.produce(
        with_schema(
            {"id": "int64", "a": "int64", "b": "int64", "c": "int64"}, {"id": 2, "a": 2, "b": 2, "c": 2}
        )
    )
    job.run({**SCHEMAS, "pk.mode": "record_value", "pk.fields": "id", "fields.whitelist": "a"})
    assert job.rows() == [(1, 1, 9), (2, 2, 9)]


def test_columns_that_records_lack_keep_what_they_have(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id TEXT PRIMARY KEY, a BIGINT, b BIGINT)")
    two = with_schema({"a": "int64", "b": "int64"}, {"a": 1, "b": 1})
    one = with_schema({"a": "int64"}, {"a": 2})
    other = with_schema({"b": "int64"}, {"b": None})
    job.produce(two, one, two, other, one, keys=["x", "x", "y", "y", "y"])
    job.run({**SCHEMAS, **UPSERT})
    assert job.rows() == [("x", 2, 1), ("y", 2, None)]


def test_quote_sql_identifiers_never(job: SinkTest) -> None:
    """PostgreSQL then has all names in lower case."""
    job.sql(f"CREATE TABLE up_{job.name} (id BIGINT, name TEXT)")
    job.produce({"id": 1, "name": "x"})
    job.run({"quote.sql.identifiers": "NEVER", "table.name.format": f"UP_{job.name}"})
    assert job.rows(f"SELECT * FROM up_{job.name}") == [(1, "x")]


def test_table_types_may_be_partitioned_tables(job: SinkTest) -> None:
    job.sql(
        "CREATE TABLE T (id BIGINT) PARTITION BY RANGE (id)",
        f"CREATE TABLE {job.name}_1 PARTITION OF T FOR VALUES FROM (0) TO (10)",
    )
    job.produce({"id": 1}, {"id": 10})
    with pytest.raises(ConfigError, match="does not exist"):
        job.run({})
    job.run({"table.types": "TABLE,PARTITIONED_TABLE"})
    assert (job.rows(), job.dead()) == ([(1,)], [{"id": 10}])


def test_table_types_may_be_views(job: SinkTest) -> None:
    job.sql(f"CREATE TABLE {job.name}_1 (id BIGINT)", f"CREATE VIEW T AS SELECT * FROM {job.name}_1")
    job.produce({"id": 1})
    job.run({"table.types": "VIEW"})
    assert job.rows() == [(1,)]


def test_string_output_value_column_name_takes_mere_texts(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (said TEXT)")
    job.produce(b"hello")
    strings = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    job.run({**strings, "string.output.value.column.name": "said"})
    assert job.rows() == [("hello",)]


# -- values --


@pytest.mark.parametrize(("of_days", "day"), [("DB_TIMEZONE", 1), ("UTC", 2)])
def test_db_timezone_and_date_timezone(anywhere: SinkTest, of_days: str, day: int) -> None:
    anywhere.sql("CREATE TABLE T (at TIMESTAMP NULL, day DATE, t TIME)")
    kinds = {"at": "Timestamp", "day": "Date", "t": "Time"}
    fields = {
        name: {
            "type": "int64" if name == "at" else "int32",
            "name": f"org.apache.kafka.connect.data.{kind}",
            "version": 1,
        }
        for name, kind in kinds.items()
    }
    anywhere.produce(with_schema(fields, {"at": 86_400_000, "day": 1, "t": 0}))
    anywhere.run({**SCHEMAS, "db.timezone": "America/New_York", "date.timezone": of_days})
    ((at, held, time),) = anywhere.rows()
    if anywhere.access.dialect.kind == "sqlite":
        assert (at, held, time) == (86_400_000 - 5 * 3_600_000, 86_400_000 * (day - 1), 19 * 3_600_000)
        return
    assert at == dt.datetime(1970, 1, 1, 19)
    assert held == dt.date(1970, 1, day)
    assert time in (dt.time(19), dt.timedelta(hours=19))


@pytest.mark.parametrize(("mode", "factor"), [("MICROSECONDS", 1), ("NANOSECONDS", 1000)])
def test_timestamp_fields_list_and_precision(job: SinkTest, mode: str, factor: int) -> None:
    job.sql("CREATE TABLE T (id BIGINT, at TIMESTAMP)")
    job.produce({"id": 1, "at": 1_700_000_000_123_456 * factor})
    job.run({"timestamp.fields.list": "at", "timestamp.precision.mode": mode})
    assert job.rows() == [(1, dt.datetime(2023, 11, 14, 22, 13, 20, 123456))]


@pytest.mark.parametrize(("replaces", "expected"), [("true", 5), ("false", None)])
def test_replace_null_with_default(job: SinkTest, replaces: str, expected: int | None) -> None:
    job.sql("CREATE TABLE T (id BIGINT, n BIGINT)")
    job.produce(
        with_schema(
            {"id": "int64", "n": {"type": "int64", "default": 5, "optional": True}}, {"id": 1, "n": None}
        )
    )
    converter = {"value.converter.replace.null.with.default": "false"}
    job.run({**SCHEMAS, **converter, "replace.null.with.default": replaces})
    assert job.rows() == [(1, expected)]


def test_objects_and_lists_are_json_and_arrays(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id BIGINT, doc JSONB, tags TEXT[], numbers BIGINT[])")
    job.produce({"id": 1, "doc": {"a": [1, {"b": None}]}, "tags": ["x", 'y"\\', None], "numbers": [1, 2]})
    job.run({})
    assert job.rows() == [(1, {"a": [1, {"b": None}]}, ["x", 'y"\\', None], [1, 2])]


# -- rows that are refused --


def test_a_bad_row_stops_the_job_where_errors_are_not_tolerated(anywhere: SinkTest) -> None:
    anywhere.sql("CREATE TABLE T (id BIGINT PRIMARY KEY)")
    anywhere.produce({"id": 1}, {"id": 2}, {"id": 1}, {"id": 3})
    with pytest.raises(RecordRejected, match="offset 2"):
        anywhere.run({"errors.tolerance": "none"})
    assert anywhere.rows() == [(1,), (2,)]


def test_many_bad_rows_are_found_one_by_one(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id BIGINT PRIMARY KEY, short VARCHAR(3), small SMALLINT CHECK (small <> 13))")
    job.produce(*({"id": n, "short": "x" * (n % 7), "small": n} for n in range(300)))
    job.produce({"id": 900, "short": "x", "small": 40000}, {"id": 901, "short": "nul\0", "small": 1})
    job.run({})
    bad = [n for n in range(300) if n % 7 > 3 or n == 13]
    assert [row[0] for row in job.rows()] == [n for n in range(300) if n not in bad]
    assert sorted(one["id"] for one in job.dead()) == [*bad, 900, 901]


# -- other products' words --


def test_the_simple_name_is_that_of_confluent() -> None:
    assert find_connector("JdbcSinkConnector").class_name == CONFLUENT
    assert find_connector("JdbcSink").class_name == CONFLUENT


def test_keys_of_debezium(job: SinkTest) -> None:
    """`primary.key.mode=record_header`, `primary.key.fields`, `schema.evolution`, `field.exclude.list`,
    `collection.name.format`, `use.time.zone`."""
    job.sql("CREATE TABLE T (id TEXT PRIMARY KEY, n BIGINT)")
    settings = {**job.settings, "connection.username": job.settings["connection.user"]}
    job.settings = {key: value for key, value in settings.items() if key != "connection.user"}
    job.produce({"n": 1, "other": 2}, {"n": 3, "more": "m"}, headers={"id": "h"})
    job.run(
        {
            "connector.class": DEBEZIUM,
            "insert.mode": "upsert",
            "primary.key.mode": "record_header",
            "primary.key.fields": "id",
            "schema.evolution": "basic",
            "field.exclude.list": "other",
            "collection.name.format": job.name,
            "use.time.zone": "UTC",
        }
    )
    assert job.rows("SELECT id, n, more FROM T") == [("h", 3, "m")]


def test_keys_of_aiven(job: SinkTest) -> None:
    """`topics.to.tables.mapping`, `table.name.normalize`, `sql.quote.identifiers`."""
    one, two = f"{job.name}.one", f"{job.name}.two"
    job.sql("CREATE TABLE T (n BIGINT)", f"CREATE TABLE {job.name}_two (n BIGINT)")
    job.produce({"n": 1}, topic=one)
    job.produce({"n": 2}, topic=two)
    job.run(
        {
            "connector.class": AIVEN,
            "topics": f"{one},{two}",
            "topics.to.tables.mapping": f"{one}:{job.name}",
            "table.name.normalize": "true",
            "sql.quote.identifiers": "false",
        }
    )
    assert (job.rows(), job.rows(f"SELECT n FROM {job.name}_two")) == ([(1,)], [(2,)])


# -- the job --


def test_max_retries_and_retry_backoff_are_those_of_outages() -> None:
    """`max.retries`, `retry.backoff.ms`; Debezium's `flush.max.retries`, `flush.retry.delay.ms`."""
    url = {"connection.url": "jdbc:postgresql://db.example.com/shop"}
    mine = sink_plugin(CONFLUENT).retries({**url, "max.retries": "4", "retry.backoff.ms": "250"})
    assert (mine.most, mine.first_seconds) == (4, 0.25)
    theirs = sink_plugin(DEBEZIUM).retries({**url, "flush.max.retries": "7", "flush.retry.delay.ms": "500"})
    assert (theirs.most, theirs.first_seconds) == (7, 0.5)
    assert sink_plugin(CONFLUENT).retries(url).most is None
    assert sink_plugin(CONFLUENT).destination(url) == "postgresql://db.example.com:5432/shop"


def test_icestream_jdbc_checkpoint_table(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id BIGINT)", f"CREATE SCHEMA s_{job.name}")
    job.produce({"id": 1})
    job.run({"icestream.jdbc.checkpoint.table": f"s_{job.name}.places"})
    assert job.rows(f"SELECT job, target FROM s_{job.name}.places") == [(job.name, job.name)]


def test_a_table_that_was_dropped_and_created_again_stops_the_job(job: SinkTest) -> None:
    from icestream.api.errors import LostOffsets

    job.sql("CREATE TABLE T (id BIGINT)")
    job.produce({"id": 1})
    job.run({})
    job.sql("DROP TABLE T", "CREATE TABLE T (id BIGINT)")
    with pytest.raises(LostOffsets, match="dropped and created again"):
        job.run({})


def test_staging_tables_of_dead_batches_are_swept(job: SinkTest) -> None:
    """Those of this job that are old; none of another one, and none that may still be in use."""
    job.sql("CREATE TABLE T (id BIGINT)")
    # The job sweeps, too, by the real clock: to that, all of these are young.
    now = dt.datetime(2096, 11, 16, 12, tzinfo=dt.UTC)
    old, young = (int((now - dt.timedelta(minutes=ago)).timestamp()) for ago in (90, 30))
    mine, other = stage_prefix(job.name, job.name), stage_prefix("another", job.name)
    names = [f"{prefix}{at:x}_{'0' * 8}_{'0' * 12}" for prefix in (mine, other) for at in (old, young)]
    job.sql(*(f"CREATE TABLE {name} (id BIGINT)" for name in (*names, f"{mine}notes")))
    job.produce({"id": 1})
    job.run({})
    sink = sink_plugin(CONFLUENT).open(job.name, job.config)
    (target,) = sink.targets()
    assert target.sweep("some-commit", now) == 1
    with connection_to(job.access, "look") as connection:
        left = {one.name for one in job.access.dialect.tables(connection)}
    assert left.issuperset([*names[1:], f"{mine}notes"]) and names[0] not in left
    sink.close()
