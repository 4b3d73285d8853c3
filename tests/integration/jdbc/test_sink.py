"""The JDBC sink on Spark with a real broker and real databases, as a config has it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from icestream.connectors.jdbc.connections import Access, access_from, connection_to
from icestream.connectors.jdbc.dialects.base import execute, rows_of
from icestream.embedded.kafka import Broker
from icestream.embedded.topics import ensure_topic
from tests.crashes.pipeline import values
from tests.running import RunningConnector, StartConnector

PATIENCE = 120
CLASS = "io.confluent.connect.jdbc.JdbcSinkConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass
class Database:
    """A database with a topic, a table, and a job between them."""

    settings: Mapping[str, str]
    broker: Broker
    start_job: StartConnector
    name: str = field(default_factory=lambda: f"jdbc_{uuid.uuid4().hex[:10]}")
    jobs: list[RunningConnector] = field(default_factory=list)

    @property
    def access(self) -> Access:
        return access_from(self.settings)

    def execute(self, statement: str) -> None:
        with connection_to(self.access, "prepare a test") as connection:
            execute(connection, statement.replace("T1", self.access.dialect.quote(self.name)))
            connection.commit()

    def rows(self, columns: str = "*", table: str = "T1") -> list[tuple[Any, ...]]:
        quote = self.access.dialect.quote
        named = quote(self.name) if table == "T1" else quote(table)
        with connection_to(self.access, "read") as connection:
            return rows_of(connection, f"SELECT {columns} FROM {named} ORDER BY 1")

    def produce(self, records: Sequence[tuple[Any, Any]], topic: str = "") -> None:
        topic = topic or self.name
        ensure_topic(self.broker.bootstrap, topic, 1)
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for key, value in records:
            producer.produce(topic, _bytes(value), _bytes(key), partition=0)
        assert producer.flush(60) == 0

    def start(self, **config: str) -> RunningConnector:
        named = {key.replace("_", "."): value for key, value in config.items()}
        whole = {
            "connector.class": CLASS,
            "name": self.name,
            "topics": self.name,
            "key.converter": STRING,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "icestream.jdbc.commit.interval.ms": "100",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.name}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            **self.settings,
            **named,
        }
        self.jobs.append(self.start_job(self.name, whole, paused=False))
        return self.jobs[-1]

    def dead(self) -> list[bytes | None]:
        return list(values(self.broker.bootstrap, f"{self.name}-dlq", 1))

    def wait(self, rows: Callable[[], Any]) -> None:
        until = time.monotonic() + PATIENCE
        while not rows():
            status = self.jobs[-1].status()
            assert status.trace is None, status.trace
            assert time.monotonic() < until, status
            time.sleep(0.1)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, broker: Broker, start_job: StartConnector
) -> Iterator[Database]:
    settings = {"connection.url": f"jdbc:sqlite:{tmp_path}/rows.db"}
    if request.param != "sqlite":
        settings = dict(request.getfixturevalue(request.param).settings)
    made = Database(settings, broker, start_job)
    yield made
    for job in made.jobs:
        job.stop()


def test_rows_are_inserted(database: Database) -> None:
    database.execute("CREATE TABLE T1 (id BIGINT NOT NULL, name VARCHAR(20), price NUMERIC(10, 2))")
    database.produce([(None, {"id": n, "name": f"n{n}", "price": n / 4}) for n in range(200)])
    database.start()
    database.wait(lambda: len(database.rows()) == 200)
    assert [(int(a), b, float(c)) for a, b, c in database.rows()[:2]] == [(0, "n0", 0.0), (1, "n1", 0.25)]


def test_the_last_record_of_a_key_counts_and_none_deletes_it(database: Database) -> None:
    """`insert.mode=upsert`, `pk.mode=record_key`, `pk.fields`, `delete.enabled`."""
    database.execute("CREATE TABLE T1 (id VARCHAR(20) NOT NULL PRIMARY KEY, n BIGINT)")
    database.produce([(f"k{n % 10}", {"n": n}) for n in range(100)])
    database.produce([("k3", None), ("k4", None), ("k4", {"n": 1000})])
    database.start(insert_mode="upsert", pk_mode="record_key", pk_fields="id", delete_enabled="true")
    expected = [("k0", 90), ("k1", 91), ("k2", 92), ("k4", 1000), *((f"k{n}", 90 + n) for n in range(5, 10))]
    database.wait(lambda: database.rows() == expected)
    database.produce([("k0", None), ("k1", {"n": 7})])
    database.wait(lambda: database.rows() == [("k1", 7), *expected[2:]])


def test_a_row_that_is_refused_is_a_dead_letter_and_the_others_land(database: Database) -> None:
    database.execute("CREATE TABLE T1 (id BIGINT NOT NULL PRIMARY KEY, n BIGINT CHECK (n < 100))")
    good = [{"id": n, "n": n} for n in range(50)]
    bad = [{"id": 3, "n": 3}, {"id": 60, "n": 100}, {"id": 61, "n": "x"}, {"n": 1}]
    database.produce([(None, one) for one in [*good, *bad, {"id": 62, "n": 2}]])
    database.start()
    database.wait(lambda: len(database.rows()) == 51 and len(database.dead()) == len(bad))
    assert sorted(map(str, (json.loads(one) for one in database.dead() if one))) == sorted(map(str, bad))
