"""`kill -9` of a JDBC source while others insert, update, wait and roll back: each row is sent once."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from icestream.embedded.kafka import Broker
from icestream.jobs.build import offset_admin
from icestream.kafka.topics import Topics
from tests.crashes.faults import Fault
from tests.crashes.processes import wait_for
from tests.crashes.test_sources import SourceProcess, committed
from tests.databases import Server

_NUMBERS = itertools.count(1)
_PATIENCE = 120


class Writers:
    """Applications at work: short transactions and long ones, which commit in any order or not at all."""

    def __init__(self, server: Server, table: str, *, updates: bool) -> None:
        self._server, self._table, self._updates = server, table, updates
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(seed,)) for seed in range(4)]
        for thread in self._threads:
            thread.start()

    def connection(self) -> Any:
        return psycopg2.connect(self._server.address, user=self._server.user, password=self._server.password)

    def _work(self, seed: int) -> None:
        chance = random.Random(seed)
        connection = self.connection()
        cursor = connection.cursor()
        while not self._stop.is_set():
            for _ in range(chance.randrange(1, 6)):
                cursor.execute(f"INSERT INTO {self._table} DEFAULT VALUES RETURNING id")
                (id_,) = cursor.fetchone()
                if self._updates and chance.random() < 0.5:
                    # Writers of the same rows wait for each other, but in one order, so none for ever.
                    older = id_ - chance.randrange(1, 50)
                    cursor.execute(
                        f"UPDATE {self._table} SET version = version + 1, at = now() WHERE id = %s", (older,)
                    )
                    connection.commit()
                time.sleep(chance.choice((0, 0, 0.002, 0.02)))
            if chance.random() < 0.1:
                time.sleep(0.5)
            connection.rollback() if chance.random() < 0.2 else connection.commit()
        connection.close()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def rows(self) -> list[tuple[int, int]]:
        connection = self.connection()
        cursor = connection.cursor()
        cursor.execute(f"SELECT id, version FROM {self._table} ORDER BY id")
        found = cursor.fetchall()
        connection.close()
        return found


@pytest.fixture(
    params=["incrementing", pytest.param("timestamp", marks=pytest.mark.long), "timestamp+incrementing"]
)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"jdbc_{next(_NUMBERS)}"
    Topics({"bootstrap.servers": broker.bootstrap}).create(name, 1, 1)
    return name


@pytest.fixture
def writers(postgresql: Server, topic: str, mode: str) -> Iterator[Writers]:
    connection = psycopg2.connect(postgresql.address, user=postgresql.user, password=postgresql.password)
    connection.autocommit = True
    connection.cursor().execute(
        f"CREATE TABLE {topic} (id bigserial PRIMARY KEY, version int NOT NULL DEFAULT 0, "
        "at timestamptz NOT NULL DEFAULT now())"
    )
    connection.close()
    at_work = Writers(postgresql, topic, updates="timestamp" in mode)
    yield at_work
    at_work.stop()


def test_rows_that_are_written_meanwhile_are_sent_once_though_the_source_is_killed(
    broker: Broker, postgresql: Server, topic: str, mode: str, writers: Writers, tmp_path: Path
) -> None:
    config = {
        **postgresql.settings,
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "mode": mode,
        "incrementing.column.name": "id",
        "timestamp.column.name": "at",
        "table.whitelist": topic,
        "topic.prefix": "",
        "poll.interval.ms": "20",
        "batch.max.rows": "1",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "crashes",
        "offset.storage.topic": "crashes-offsets",
        "offset.storage.replication.factor": "1",
        "exactly.once.source.support": "enabled",
    }
    for point, turn in (("records sent", 2), ("sent", 3), ("committed", 2)):
        process = SourceProcess(tmp_path, topic, config, worker, [Fault(point, "kill", turn)])
        process.kills_itself()
    last = SourceProcess(tmp_path, topic, config, worker)
    last.wait_text("# committed")
    writers.stop()
    final = writers.rows()
    assert len(final) > 100

    def sent() -> list[tuple[int, int]]:
        values = [json.loads(value or b"") for _, value in committed(broker, topic)]
        return [(value["id"], value["version"]) for value in values]

    try:
        wait_for(lambda: True if set(final) <= set(sent()) else None, _PATIENCE, lambda: last.text)
    finally:
        last.kill()
    once = sent()
    assert [row for row, count in Counter(once).items() if count > 1] == []
    # Of each row the last version was sent last.
    assert dict(once) == dict(final)
    if mode == "incrementing":
        assert once == final
    (stored,) = offset_admin(worker).read(topic, config)
    assert stored.partition == {"protocol": "1", "table": f"public.{topic}"}
