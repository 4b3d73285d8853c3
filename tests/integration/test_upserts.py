"""Change events of Debezium, and plain upserts, through a real worker."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Producer

from icestream.kafka.topics import Topics
from tests.integration.worker_world import SCHEMA, World, eventually

JSON = "org.apache.kafka.connect.json.JsonConverter"
Event = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""Key and value."""


def prepared(world: World, topic: str) -> None:
    Topics({"bootstrap.servers": world.bootstrap}).create(topic, 1, 1)
    world.catalog.create_namespace_if_not_exists("ns")
    world.catalog.create_table(f"ns.{topic}", SCHEMA)


def send(world: World, topic: str, *events: Event) -> None:
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for key, value in events:
        parts = (None if part is None else json.dumps(part).encode() for part in (value, key))
        producer.produce(topic, *parts, partition=0)
    assert producer.flush(30) == 0


def rows(world: World, topic: str) -> dict[int, str]:
    found = world.catalog.load_table(f"ns.{topic}").scan().to_arrow()
    pairs = list(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))
    assert len(pairs) == len(dict(pairs)), "a key is there twice"
    return dict(pairs)


def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Event:
    """As Debezium has it, with the key in a record key of its own."""
    row = after or before
    source = {"db": "shop", "table": "purchases"}
    value = {"op": op, "before": before, "after": after, "source": source, "ts_ms": 1}
    return None if row is None else {"id": row["id"]}, value


def test_change_events_of_debezium_make_the_table_what_the_database_is(world: World) -> None:
    prepared(world, "purchases")
    send(
        world,
        "purchases",
        change("r", None, {"id": 1, "text": "snapshot"}),
        change("c", None, {"id": 2, "text": "two"}),
        change("c", None, {"id": 3, "text": "three"}),
        change("u", {"id": 2, "text": "two"}, {"id": 2, "text": "two again"}),
        change("d", {"id": 1, "text": None}, None),
        ({"id": 1}, None),
    )
    config = world.config(
        "purchases",
        **{
            "key.converter": JSON,
            "key.converter.schemas.enable": "false",
            "transforms": "unwrap",
            "transforms.unwrap.type": "org.apache.iceberg.connect.transforms.DebeziumTransform",
            "iceberg.tables.cdc-field": "_cdc.op",
            "iceberg.table.ns.purchases.id-columns": "id",
        },
    )
    world.client.create("purchases-sink", config)
    eventually(lambda: rows(world, "purchases") == {2: "two again", 3: "three"})
    # A key that changes is a deletion, its tombstone, and a row under the new key.
    send(
        world,
        "purchases",
        change("d", {"id": 3, "text": None}, None),
        ({"id": 3}, None),
        change("c", None, {"id": 30, "text": "three"}),
    )
    eventually(lambda: rows(world, "purchases") == {2: "two again", 30: "three"})
    send(world, "purchases", change("t", None, None), change("c", None, {"id": 4, "text": "after"}))
    eventually(lambda: rows(world, "purchases") == {4: "after"})
    table = world.catalog.load_table("ns.purchases")
    assert all(one.content.name != "EQUALITY_DELETES" for one in _delete_files(table))
    told = world.command(
        "verify", "purchases-sink", "--url", world.url, "--bootstrap-servers", world.bootstrap
    )
    assert told.returncode == 0 and "cannot be counted" in told.stdout, told.stdout + told.stderr
    world.client.delete("purchases-sink")


def _delete_files(table: Any) -> list[Any]:
    return [file for task in table.scan().plan_files() for file in task.delete_files]


def test_upserts_replace_rows_by_the_id_columns_and_a_null_value_deletes(world: World) -> None:
    prepared(world, "people")
    send(world, "people", *(({"id": id_}, {"id": id_, "text": "first"}) for id_ in (1, 2, 3)))
    config = world.config(
        "people",
        **{
            "key.converter": JSON,
            "key.converter.schemas.enable": "false",
            "iceberg.tables.upsert-mode-enabled": "true",
            "iceberg.tables.default-id-columns": "id",
            "iceberg.tables.evolve-schema-enabled": "true",
            "errors.tolerance": "all",
        },
    )
    world.client.create("people-sink", config)
    eventually(lambda: rows(world, "people") == dict.fromkeys((1, 2, 3), "first"))
    send(world, "people", ({"id": 1}, {"id": 1, "text": "second"}), ({"id": 2}, None))
    eventually(lambda: rows(world, "people") == {1: "second", 3: "first"})
    # No record makes columns with which nothing can be merged any more.
    other_case = {"id": 5, "text": "five", "ID": 7, "inside": {"x": 1, "X": 2}, "a`b": 1}
    send(world, "people", ({"id": 5}, other_case))
    eventually(lambda: rows(world, "people") == {1: "second", 3: "first", 5: "five"})
    send(world, "people", ({"id": 6}, {"id": 6, "__icestream_kind": 1}), ({"id": 3}, {"id": 3, "ID": 4}))
    eventually(lambda: rows(world, "people") == {1: "second", 3: None, 5: "five"})
    world.client.delete("people-sink")
