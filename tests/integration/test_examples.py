"""The folders of `examples/` run as they stand, but for addresses, logins and places of files."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2  # type: ignore[import-untyped]

from icestream.client import ConnectClient
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from icestream.embedded.process import spawn
from tests.databases import Server
from tests.integration.worker_world import eventually

EXAMPLES = Path(__file__).parents[2] / "examples"


def copied(example: str, folder: Path, instead: Mapping[str, str]) -> Path:
    """The files of an example with other words in place of some."""
    target = folder / example
    shutil.copytree(EXAMPLES / example, target)
    for file in target.rglob("*"):
        if file.is_file() and file.suffix != ".md":
            text = file.read_text()
            for words, others in instead.items():
                text = text.replace(words, others)
            file.write_text(text)
    return target


@contextmanager
def running_standalone(folder: Path, worker: str, *connectors: str) -> Iterator[ConnectClient]:
    port = free_port()
    with (folder / worker).open("a") as file:
        file.write(f"listeners=http://127.0.0.1:{port}\nspark.driver.memory=1g\n")
    files = [str(folder / name) for name in (worker, *connectors)]
    command = [sys.executable, "-m", "icestream.cli.main", "standalone", *files]
    process = spawn(command, output=folder / "worker.log", die_with_parent=True)
    client = ConnectClient(f"http://127.0.0.1:{port}")
    try:
        eventually(client.is_healthy, 300)
        yield client
    finally:
        process.send(signal.SIGTERM)
        assert process.wait(90), (folder / "worker.log").read_text()[-2000:]


class Database:
    def __init__(self, server: Server) -> None:
        address = server.address.removeprefix("postgresql://")
        place, _, name = address.partition("/")
        host, _, port = place.partition(":")
        self._connection = psycopg2.connect(
            host=host, port=port, dbname=name, user=server.user, password=server.password
        )
        self._connection.autocommit = True

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """In the order of their ids; none if there is no such table yet."""
        try:
            return self.run(f'SELECT {columns} FROM "{table}" ORDER BY id')
        except psycopg2.errors.UndefinedTable:
            return []

    def close(self) -> None:
        self._connection.close()


def test_tables_go_into_kafka_and_from_there_into_tables(
    broker: Broker, postgresql: Server, tmp_path: Path
) -> None:
    folder = copied(
        "jdbc",
        tmp_path,
        {
            "localhost:9092": broker.bootstrap,
            "jdbc:postgresql://localhost:5432/mydb": f"jdbc:{postgresql.address}",
            "connection.user=user": f"connection.user={postgresql.user}",
            "connection.password=password": f"connection.password={postgresql.password}",
            "/tmp/connect.offsets": f"{tmp_path}/offsets",
        },
    )
    database = Database(postgresql)
    database.run((folder / "tables.sql").read_text())
    names = ["source-connector.properties", "sink-connector.properties"]
    with running_standalone(folder, "connect-standalone.properties", *names) as client:
        amounts = [(1, 1, 12.5), (2, 2, 99.0), (3, 1, 3.0)]
        eventually(lambda: database.rows("postgres-orders", "id, user_id, amount") == amounts)
        eventually(
            lambda: (
                database.rows("postgres-users", "id, name, email")
                == [(1, "Ada", "ada@example.com"), (2, "Grace", None)]
            )
        )
        assert database.rows("postgres-orders", "placed") == database.rows("orders", "placed")
        database.run("INSERT INTO orders (user_id, amount, placed) VALUES (2, 7, '2026-11-16 10:00:00')")
        eventually(lambda: database.rows("postgres-orders", "id, amount")[-1:] == [(4, 7.0)])
        assert sorted(client.names()) == ["postgres-sink", "postgres-source"]
    for table in ("postgres-orders", "postgres-users", "orders", "users"):
        database.run(f'DROP TABLE "{table}"')
    database.close()
