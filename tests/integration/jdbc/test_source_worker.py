"""The JDBC source in a real worker: the example of its page, validate, offsets by hand."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from tests.crashes.processes import JobProcess, wait_for
from tests.databases import Server

PAGE = Path(__file__).parents[3] / "docs" / "connectors" / "jdbc-source.md"
_PATIENCE = 120


@dataclass
class Worker:
    url: str
    bootstrap: str
    process: JobProcess

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        def asked() -> httpx.Response | None:
            # A worker that has just started has no leader for a moment.
            found = httpx.request(method, self.url + path, json=body, timeout=60)
            return None if found.status_code == 409 else found

        answer = wait_for(asked, _PATIENCE, lambda: self.process.text[-3000:])
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def create(self, name: str, config: dict[str, str]) -> None:
        self.ask("POST", "/connectors", {"name": name, "config": config})

    def records(self, topic: str, count: int) -> list[bytes]:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "t", "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []

        def enough() -> bool | None:
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    found.append(message.value() or b"")
            return True if len(found) >= count else None

        try:
            wait_for(enough, _PATIENCE, lambda: f"{found}\n{self.process.text[-3000:]}")
        finally:
            consumer.close()
        return found

    def stop(self, name: str) -> None:
        self.ask("PUT", f"/connectors/{name}/stop")

        def stopped() -> bool | None:
            status = self.ask("GET", f"/connectors/{name}/status")
            return True if status["connector"]["state"] == "STOPPED" and not status["tasks"] else None

        wait_for(stopped, _PATIENCE, lambda: self.process.text[-3000:])


@pytest.fixture(scope="module")
def worker(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder, port = tmp_path_factory.mktemp("jdbc-worker"), free_port()
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "jdbc-worker",
        "exactly.once.source.support": "enabled",
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "topic.creation.enable": "true",
        "icestream.database.folders": str(tmp_path_factory.getbasetemp()),
        **{f"{kind}.storage.topic": f"jdbc-worker-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    }
    file = folder / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    process = JobProcess(folder / "log", ["-m", "icestream.cli.main", "distributed", str(file)])
    url = f"http://127.0.0.1:{port}"

    def is_ready() -> bool | None:
        try:
            return True if httpx.get(f"{url}/connectors", timeout=5).status_code == 200 else None
        except httpx.TransportError:
            return None

    process.wait(is_ready, "not ready")
    yield Worker(url, broker.bootstrap, process)
    process.kill()


def test_the_example_of_the_page(worker: Worker, tmp_path: Path) -> None:
    (example,) = re.findall(
        r"<!-- example: .+? -->\n(.*?)<!-- end of example -->", PAGE.read_text(), re.DOTALL
    )
    sql, posted, lines = re.findall(r"```\w+\n(.*?)```", example, re.DOTALL)
    with closing(sqlite3.connect(tmp_path / "test.db")) as database:
        database.executescript(sql)
    connector = json.loads(posted)
    config = {**connector["config"], "connection.url": f"jdbc:sqlite:{tmp_path}/test.db"}
    config |= {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    worker.create(connector["name"], config)
    expected = lines.encode().splitlines()
    assert worker.records("test-sqlite-jdbc-accounts", len(expected)) == expected
    name = connector["name"]
    stored = {
        "partition": {"protocol": "1", "table": "accounts"},
        "offset": {"incrementing": 2},
    }
    wait_for(
        lambda: True if worker.ask("GET", f"/connectors/{name}/offsets") == {"offsets": [stored]} else None,
        _PATIENCE,
        lambda: str(worker.ask("GET", f"/connectors/{name}/offsets")),
    )
    worker.stop(name)
    moved = {**stored, "offset": {"incrementing": 1}}
    worker.ask("PATCH", f"/connectors/{name}/offsets", {"offsets": [moved]})
    wrong = httpx.request(
        "PATCH",
        f"{worker.url}/connectors/{name}/offsets",
        json={"offsets": [{**stored, "offset": {"timestamp": 1}}]},
        timeout=60,
    )
    assert wrong.status_code == 400 and "incrementing" in wrong.text
    worker.ask("PUT", f"/connectors/{name}/resume")
    assert worker.records("test-sqlite-jdbc-accounts", len(expected) + 1)[2:] == expected[1:]
    worker.stop(name)
    worker.ask("DELETE", f"/connectors/{name}/offsets")
    assert worker.ask("GET", f"/connectors/{name}/offsets") == {"offsets": []}
    worker.ask("DELETE", f"/connectors/{name}")


def test_validate_asks_the_database(worker: Worker, postgresql: Server) -> None:
    config = {
        **postgresql.settings,
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "name": "v",
        "mode": "timestamp",
        "timestamp.column.name": "at",
        "topic.prefix": "v-",
        "table.whitelist": "none_yet",
    }
    path = "/connector-plugins/JdbcSourceConnector/config/validate"
    answer = worker.ask("PUT", path, config)
    assert answer["error_count"] == 0, answer
    for key, value in (
        ("connection.password", "wrong"),
        ("connection.url", "jdbc:postgresql://127.0.0.1:1/x"),
    ):
        answer = worker.ask("PUT", path, {**config, key: value})
        (wrong,) = (one["value"] for one in answer["configs"] if one["value"]["errors"])
        assert wrong["name"].startswith("connection.") and answer["error_count"] == 1
        assert "wrong" not in json.dumps(wrong["errors"]) and postgresql.password not in json.dumps(answer)


def test_values_carry_the_schema_of_their_table(worker: Worker, postgresql: Server) -> None:
    import psycopg2

    connection = psycopg2.connect(postgresql.address, user=postgresql.user, password=postgresql.password)
    connection.autocommit = True
    connection.cursor().execute("CREATE TABLE schemas (id serial PRIMARY KEY, price numeric(6, 2))")
    connection.cursor().execute("INSERT INTO schemas (price) VALUES (12.34), (NULL)")
    connection.close()
    config = {
        **postgresql.settings,
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "mode": "incrementing",
        "table.whitelist": "schemas",
        "topic.prefix": "with-",
        "tasks.max": "3",
        "exactly.once.support": "required",
    }
    worker.create("schemas", config)
    first, second = map(json.loads, worker.records("with-schemas", 2))
    decimal = {
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
    }
    decimal |= {"parameters": {"scale": "2"}, "field": "price"}
    assert (
        first["schema"]
        == second["schema"]
        == {
            "type": "struct",
            "fields": [{"type": "int32", "optional": False, "field": "id"}, decimal],
            "optional": False,
            "name": "schemas",
        }
    )
    assert [first["payload"], second["payload"]] == [{"id": 1, "price": "BNI="}, {"id": 2, "price": None}]
    assert len(worker.ask("GET", "/connectors/schemas/tasks")) == 1
    worker.ask("DELETE", "/connectors/schemas")
