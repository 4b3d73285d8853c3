"""The folders of `examples/` run as they stand, but for addresses, logins and places of files."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psycopg2  # type: ignore[import-untyped]
from confluent_kafka import Producer

from icestream.client import ConnectClient
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from icestream.kafka.topics import Topics
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
def running_standalone(
    folder: Path, arguments: Sequence[str], environ: Mapping[str, str], port: int
) -> Iterator[ConnectClient]:
    """`icestream standalone` in the folder of an example."""
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "icestream.cli.main", "standalone", *arguments],
            cwd=folder,
            env={**os.environ, **environ},
            stdout=log,
            stderr=log,
        )
    client = ConnectClient(f"http://127.0.0.1:{port}")
    try:
        eventually(client.is_healthy, 300)
        yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)


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
    port = free_port()
    with (folder / "connect-standalone.properties").open("a") as file:
        file.write(f"listeners=http://127.0.0.1:{port}\nspark.driver.memory=1g\n")
    files = [f"{name}.properties" for name in ("connect-standalone", "source-connector", "sink-connector")]
    with running_standalone(folder, files, {}, port) as client:
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


def test_topics_go_to_json_lines_on_s3(broker: Broker, s3: Mapping[str, str], tmp_path: Path) -> None:
    key, secret = (s3[f"iceberg.catalog.s3.{name}"] for name in ("access-key-id", "secret-access-key"))
    endpoint = s3["iceberg.catalog.s3.endpoint"]
    folder = copied(
        "s3",
        tmp_path,
        {
            "localhost:9092": broker.bootstrap,
            "http://localhost:9000": endpoint,
            "AWS_ACCESS_KEY_ID=minioadmin": f"AWS_ACCESS_KEY_ID={key}",
            "AWS_SECRET_ACCESS_KEY=minioadmin": f"AWS_SECRET_ACCESS_KEY={secret}",
        },
    )
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )
    client.create_bucket(Bucket="test-data-lake")
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    for topic in ("user-events", "order-events"):
        topics.create(topic, 1, 1)
    now = dt.datetime.now(dt.UTC).isoformat()
    good = [{"user_id": number, "event_type": "login", "timestamp": now} for number in range(2000)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for record in ({"user_id": "not a number"}, *good):
        producer.produce("user-events", json.dumps(record), partition=0)
    for number in range(1000):
        producer.produce("order-events", json.dumps({"order": number}), partition=0)
    assert producer.flush(60) == 0
    lines = (folder / "local.env").read_text().splitlines()
    port = free_port()
    environ = {
        **dict(line.split("=", 1) for line in lines),
        "CONNECT_LISTENERS": f"http://127.0.0.1:{port}",
        "CONNECT_SPARK_DRIVER_MEMORY": "1g",
    }

    def records(prefix: str) -> list[dict[str, Any]]:
        listed = client.list_objects_v2(Bucket="test-data-lake", Prefix=prefix).get("Contents", ())
        bodies = [
            client.get_object(Bucket="test-data-lake", Key=one["Key"])["Body"].read()
            for one in listed
            if one["Key"].endswith(".json") and "/_icestream/" not in one["Key"]
        ]
        return [json.loads(line) for body in bodies for line in body.splitlines()]

    today = dt.datetime.now(dt.UTC)
    with running_standalone(folder, ["--topics-file", "application.yml"], environ, port) as worker:
        eventually(lambda: len(records("events/user/user_events/")) == 2000)
        eventually(lambda: len(records("events/order/order-events/")) == 1000)
        assert sorted(worker.names()) == ["order-events", "user-events"]
    assert sorted(one["user_id"] for one in records("events/user/")) == list(range(2000))
    assert len(records(f"events/user/user_events/{today:year=%Y/month=%m/day=%d}/")) == 2000
