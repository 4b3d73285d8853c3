"""Examples of docs/connectors/ that have no test of their own, as they stand but for addresses and places.

Those of the Iceberg and the Delta sink are in `test_iceberg_examples.py` and `test_delta.py`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from icestream.kafka.topics import Topics
from tests.integration.worker_world import World, eventually

PAGES = Path(__file__).parents[2] / "docs" / "connectors"


def example(page: str) -> str:
    (body,) = re.findall(
        r"<!-- example: .+? -->\n(.*?)<!-- end of example -->", (PAGES / page).read_text(), re.DOTALL
    )
    return str(body)


def blocks(body: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", body, re.DOTALL)


def posted(body: str) -> list[dict[str, Any]]:
    return [json.loads(block) for block in blocks(body, "json")]


@pytest.fixture
def created(world: World) -> Iterator[list[str]]:
    """Names of connectors, which are deleted at the end."""
    names: list[str] = []
    yield names
    for name in names:
        world.client.delete(name)


def produce(world: World, topic: str, records: list[tuple[bytes | None, bytes | None]]) -> None:
    Topics({"bootstrap.servers": world.bootstrap}).create(topic, 1, 1)
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
    assert producer.flush(60) == 0


def values(world: World, topic: str) -> list[str]:
    """All that is in a topic of one partition."""
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": f"read-{topic}"})
    found: list[str] = []
    try:
        partition = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=30)
        consumer.assign([partition])
        while len(found) < end and (message := consumer.poll(10)) is not None:
            if (value := message.value()) is not None:
                found.append(value.decode())
    finally:
        consumer.close()
    return found


def create(world: World, created: list[str], one: Mapping[str, Any], more: Mapping[str, str]) -> None:
    world.client.create(one["name"], {**one["config"], **more})
    created.append(one["name"])


def test_a_file_goes_into_a_topic_and_from_there_into_a_file(world: World, created: list[str]) -> None:
    body = example("file.md")
    source, sink = posted(body)
    lines, promised = blocks(body, "text")
    read, written = (world.folder / one["config"]["file"] for one in (source, sink))
    read.write_text(lines)
    create(world, created, source, {"file": str(read)})
    create(world, created, sink, {"file": str(written)})
    eventually(lambda: written.exists() and written.read_text() == promised)


def test_records_become_objects(world: World, created: list[str], s3: dict[str, str]) -> None:
    body = example("s3.md")
    (one,) = posted(body)
    (lines,) = blocks(body, "jsonl")
    objects = dict(re.findall(r"`(\S+)`:\n\n```text\n(.*?)```", body, re.DOTALL))
    produce(world, one["config"]["topics"], [(None, line.encode()) for line in lines.splitlines()])
    login = {
        "aws_access_key_id": s3["iceberg.catalog.s3.access-key-id"],
        "aws_secret_access_key": s3["iceberg.catalog.s3.secret-access-key"],
        "endpoint_url": s3["iceberg.catalog.s3.endpoint"],
        "region_name": "us-east-1",
    }
    client = boto3.client("s3", **login)
    bucket = one["config"]["s3.bucket.name"]
    client.create_bucket(Bucket=bucket)
    here = {
        "s3.region": "us-east-1",
        "store.url": login["endpoint_url"],
        "aws.access.key.id": login["aws_access_key_id"],
        "aws.secret.access.key": login["aws_secret_access_key"],
    }
    create(world, created, one, here)

    def found() -> dict[str, str]:
        names = [one["Key"] for one in client.list_objects_v2(Bucket=bucket).get("Contents", ())]
        return {
            name: client.get_object(Bucket=bucket, Key=name)["Body"].read().decode()
            for name in names
            if name.startswith("topics/orders/")
        }

    eventually(lambda: found() == objects)


def test_records_change_the_rows_of_their_keys(world: World, created: list[str]) -> None:
    body = example("jdbc-sink.md")
    (one,) = posted(body)
    records, promised = blocks(body, "text")
    pairs = [line.partition(" ")[::2] for line in records.splitlines()]
    produce(
        world,
        one["config"]["topics"],
        [(key.encode(), None if value == "null" else value.encode()) for key, value in pairs],
    )
    file = made(world, one, body)
    create(world, created, one, {"connection.url": f"jdbc:sqlite:{file}"})

    def shown() -> str:
        with closing(sqlite3.connect(file)) as connection:
            rows = connection.execute("SELECT * FROM accounts ORDER BY id").fetchall()
        return "".join("|".join(map(str, row)) + "\n" for row in rows)

    eventually(lambda: shown() == promised)


def test_rows_become_records(world: World, created: list[str]) -> None:
    body = example("jdbc-source.md")
    (one,) = posted(body)
    (promised,) = blocks(body, "jsonl")
    file = made(world, one, body)
    topic = "test-sqlite-jdbc-accounts"
    Topics({"bootstrap.servers": world.bootstrap}).create(topic, 1, 1)
    create(world, created, {**one, "name": "accounts-source"}, {"connection.url": f"jdbc:sqlite:{file}"})
    eventually(lambda: values(world, topic) == promised.splitlines())


def made(world: World, one: Mapping[str, Any], body: str) -> Path:
    """The database of an example, with its tables."""
    file = world.folder / one["config"]["connection.url"].removeprefix("jdbc:sqlite:")
    (statements,) = blocks(body, "sql")
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(statements)
    return file
