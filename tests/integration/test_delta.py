"""The Delta sink through a real worker with Spark: the examples of docs/connectors/delta.md, as they are
there but for folder and interval; tables that records name, in a bucket; verify."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from icestream.connectors.delta.storage import Storage
from icestream.kafka.topics import Topics
from tests.integration.worker_world import World, eventually

PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "delta.md"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Example:
    title: str
    name: str
    config: dict[str, str]
    records: list[dict[str, Any]]
    tables: dict[str, Rows]


def examples() -> list[Example]:
    return [
        _example(title, body)
        for title, body in re.findall(
            r"<!-- example: (.+?) -->\n(.*?)<!-- end of example -->", PAGE.read_text(), re.DOTALL
        )
    ]


def _example(title: str, body: str) -> Example:
    posted, tables = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", body, re.DOTALL))
    (lines,) = re.findall(r"```jsonl\n(.*?)```", body, re.DOTALL)
    records = [json.loads(line) for line in lines.splitlines()]
    return Example(title, posted["name"], posted["config"], records, tables)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_an_example_does_what_the_page_says(example: Example, world: World) -> None:
    topic, folder = f"delta-{example.config['topics']}", world.folder / "delta"
    send(world, topic, example.records)
    config = {**example.config, "topics": topic, "delta.location": f"file://{folder}"}
    config["delta.control.commit.interval-ms"] = "200"
    world.client.create(f"delta-{example.name}", config)
    for table, rows in example.tables.items():
        place = str(folder / table.replace(".", "/"))
        eventually(lambda place=place, rows=rows: found(place, list(rows[0])) == rows)
    assert "streaming.apilogs" in verified(world, f"delta-{example.name}")
    world.client.delete(f"delta-{example.name}")


def test_records_name_their_tables_in_a_bucket(world: World, s3: dict[str, str]) -> None:
    """By a template, created from their records, with fields that come later; exactly the rows that were
    sent, in each."""
    topic = "delta-routed"
    config = {
        "connector.class": "DeltaSinkConnector",
        "topics": topic,
        "tasks.max": "2",
        "delta.location": "s3://warehouse/delta-routed",
        "delta.tables.route-template": "${topic.1}.${value.kind}",
        "delta.tables.auto-create-enabled": "true",
        "delta.tables.evolve-schema-enabled": "true",
        "delta.tables.default-partition-by": "day",
        "delta.control.commit.interval-ms": "200",
        "delta.control.commit.timeout-ms": "60000",
        "delta.connect.group-id": "of-its-own",
        "delta.coordinator.transactional.prefix": "some-",
        **{key.replace("iceberg.catalog.", "delta.storage."): value for key, value in s3.items()},
    }
    config.pop("delta.storage.client.region")
    config["delta.storage.s3.region"] = "us-east-1"
    options = Storage.from_config(config).for_delta("s3://warehouse")

    def values(start: int, until: int) -> Rows:
        days = ("2026-01-30", "2026-01-31")
        return [{"value": {"id": n, "kind": f"k{n % 3}", "day": days[n % 2]}} for n in range(start, until)]

    send(world, topic, values(0, 30))
    world.client.create("delta-routed", config)
    places = [f"s3://warehouse/delta-routed/delta-routed/k{kind}" for kind in range(3)]
    for kind, place in enumerate(places):
        eventually(lambda kind=kind, place=place: ids(place, options) == list(range(kind, 30, 3)))
    more = values(30, 60)
    more[0]["value"]["extra"] = "new"
    send(world, topic, more)
    for kind, place in enumerate(places):
        eventually(lambda kind=kind, place=place: ids(place, options) == list(range(kind, 60, 3)))
    table = DeltaTable(places[0], storage_options=options)
    assert "extra" in [field.name for field in table.schema().fields]
    assert table.metadata().partition_columns == ["day"]
    assert "60" in verified(world, "delta-routed")
    world.client.delete("delta-routed")


def send(world: World, topic: str, records: Rows) -> None:
    Topics({"bootstrap.servers": world.bootstrap}).create(topic, 1, 1)
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for record in records:
        producer.produce(topic, json.dumps(record["value"]).encode(), partition=0)
    assert producer.flush(60) == 0


def found(place: str, columns: list[str]) -> Rows:
    """The rows of a table by id, of the columns that the page shows."""
    try:
        rows: Rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    except DeltaError:
        return []
    shown = [{column: row.get(column) for column in columns} for row in rows]
    return sorted(shown, key=lambda row: int(row["id"]))


def ids(place: str, options: dict[str, str]) -> list[int]:
    try:
        rows = DeltaTable(place, storage_options=options).to_pyarrow_table()
    except DeltaError:
        return []
    return sorted(rows["id"].to_pylist())


def verified(world: World, name: str) -> str:
    done = world.command("verify", name, "--deep", "--url", world.url, "--bootstrap-servers", world.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
