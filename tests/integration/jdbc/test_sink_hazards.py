"""What a database can do to a JDBC sink between two of its steps, and unexpected settings of servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.connectors.jdbc.dialects.base import rows_of
from icestream.embedded.kafka import Broker
from tests.databases import Server
from tests.integration.jdbc.sink_job import SinkTest, with_schema


@pytest.fixture
def job(postgresql: Server, broker: Broker) -> Iterator[SinkTest]:
    made = SinkTest(postgresql.settings, broker)
    yield made
    made.close()


@pytest.fixture
def job_of_mariadb(mariadb: Server, broker: Broker) -> Iterator[SinkTest]:
    made = SinkTest(mariadb.settings, broker)
    yield made
    made.close()


def test_staged_rows_that_a_crash_of_the_database_took_are_staged_again(job: SinkTest) -> None:
    """After a crash or a failover a table that is not logged is there, and empty."""
    lost: list[str] = []

    def reached(point: str) -> None:
        if point == "staged" and not lost:
            found = job.rows("SELECT relname FROM pg_class WHERE relname LIKE 'icestream_stage_%'")
            lost.extend(name for (name,) in found)
            job.sql(*(f"TRUNCATE {name}" for name in lost))

    job.sql("CREATE TABLE T (id BIGINT)")
    job.reached = reached
    job.produce({"id": 1}, {"id": 2})
    with pytest.raises(SinkUnavailable, match="0 of the 2 rows"):
        job.run({})
    assert lost
    job.run()
    assert job.rows() == [(1,), (2,)]


def test_a_constraint_that_is_checked_at_commit_refuses_only_its_rows(job: SinkTest) -> None:
    parents = f"{job.name}_parents"
    job.sql(
        f"CREATE TABLE {parents} (id BIGINT PRIMARY KEY)",
        f"INSERT INTO {parents} VALUES (1), (3)",
        f"CREATE TABLE T (id BIGINT REFERENCES {parents} DEFERRABLE INITIALLY DEFERRED)",
    )
    job.produce({"id": 1}, {"id": 2}, {"id": 3})
    job.run({})
    assert job.rows() == [(1,), (3,)]
    assert job.dead() == [{"id": 2}]


def test_texts_are_utf8_whatever_the_encoding_of_the_role(job: SinkTest) -> None:
    job.sql("CREATE TABLE T (id BIGINT, name TEXT)", "ALTER ROLE records SET client_encoding = 'LATIN1'")
    try:
        job.produce({"id": 1, "name": "é€"})
        job.run({})
    finally:
        job.sql("ALTER ROLE records RESET client_encoding")
    assert job.rows() == [(1, "é€")]


def test_names_of_jobs_and_tables_that_differ_in_case_have_checkpoints_of_their_own(
    job_of_mariadb: SinkTest,
) -> None:
    job = job_of_mariadb
    other = job.name.upper()
    job.sql("CREATE TABLE T (id BIGINT)", f"CREATE TABLE {other} (id BIGINT)")
    job.produce({"id": 1}, {"id": 2})
    job.produce({"id": 3}, topic=other)
    job.run({"topics": f"{job.name},{other}"})
    assert job.rows() == [(1,), (2,)]
    assert job.rows(f"SELECT * FROM {other}") == [(3,)]
    query = f"SELECT target FROM icestream_checkpoints WHERE job = '{job.name}' ORDER BY 1"
    assert job.rows(query) == [(other,), (job.name,)]


def test_a_table_whose_engine_has_no_transactions_is_refused(job_of_mariadb: SinkTest) -> None:
    job_of_mariadb.sql("CREATE TABLE T (id BIGINT PRIMARY KEY) ENGINE=MyISAM")
    job_of_mariadb.produce({"id": 1})
    with pytest.raises(ConfigError, match="engine MyISAM"):
        job_of_mariadb.run({})


def test_sqlite_keeps_no_staged_rows(broker: Broker, tmp_path: Path) -> None:
    job = SinkTest({"connection.url": f"jdbc:sqlite:{tmp_path}/rows.db"}, broker)
    job.sql("CREATE TABLE T (id BIGINT)")
    job.produce({"id": 1})
    job.run({})
    assert job.manager is not None
    connection = job.manager._sink._sink._session._connection  # type: ignore[attr-defined]
    assert rows_of(connection, "SELECT count(*) FROM sqlite_temp_master") == [(0,)]
    job.close()


@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_two_schemas_in_turns_are_two_staging_tables_and_keys_keep_their_order(
    job: SinkTest, mode: str
) -> None:
    """One table for each turn would be more than a database can lock."""
    tables: list[int] = []

    def reached(point: str) -> None:
        if point == "staged":
            tables.append(len(job.rows("SELECT 1 FROM pg_class WHERE relname LIKE 'icestream_stage_%'")))

    job.reached = reached
    fields = ("a", "b")
    of_key = 4 if mode == "upsert" else 1
    rows = [(at // of_key, fields[at // 2 % 2], at) for at in range(400)]
    is_key = "PRIMARY KEY" if mode == "upsert" else ""
    job.sql(f"CREATE TABLE T (id BIGINT {is_key}, a BIGINT, b BIGINT)")
    before = len(job.rows("SELECT 1 FROM pg_class WHERE relname LIKE 'icestream_stage_%'"))
    job.produce(*(with_schema({"id": "int64", name: "int64"}, {"id": key, name: n}) for key, name, n in rows))
    keys = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}
    job.run({"value.converter.schemas.enable": "true", **(keys if mode == "upsert" else {})})
    assert max(tables) - before <= 4
    expected: dict[int, dict[str, int]] = {}
    for key, name, n in rows:
        expected.setdefault(key, {})[name] = n
    assert job.rows() == [(key, held.get("a"), held.get("b")) for key, held in sorted(expected.items())]
