"""The examples of docs/connectors/iceberg.md, as they are there but for catalog and interval: posted to a
real worker, their records sent, their tables read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyiceberg.exceptions import NoSuchTableError

from icestream.embedded.minio_tables import sqlite_catalog
from icestream.kafka.topics import Topics
from tests.integration.worker_world import World, eventually

PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "iceberg.md"
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


def test_there_is_one_of_each() -> None:
    assert [one.title for one in examples()] == ["appends", "routing", "upserts", "change events"]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_an_example_does_what_the_page_says(example: Example, world: World) -> None:
    # Its database is made with the first namespace.
    world.catalog.create_namespace_if_not_exists("ns")
    Topics({"bootstrap.servers": world.bootstrap}).create(example.config["topics"], 1, 1)
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for record in example.records:
        key, value = (
            None if record.get(part) is None else json.dumps(record[part]).encode()
            for part in ("key", "value")
        )
        producer.produce(example.config["topics"], value, key, partition=0)
    assert producer.flush(60) == 0
    config = {key: one for key, one in example.config.items() if not key.startswith("iceberg.catalog.")}
    config |= {**sqlite_catalog(str(world.folder)), "iceberg.control.commit.interval-ms": "200"}
    world.client.create(example.name, config)
    for table, rows in example.tables.items():
        eventually(lambda table=table, rows=rows: found(world, table, list(rows[0])) == rows)
    world.client.delete(example.name)


def found(world: World, table: str, columns: list[str]) -> Rows:
    """The rows of a table by id, of the columns that the page shows."""
    try:
        loaded = world.catalog.load_table(table)
    except NoSuchTableError:
        return []
    rows: Rows = loaded.scan(selected_fields=tuple(columns)).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))
