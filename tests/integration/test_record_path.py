"""From Kafka through converter, JSON Schema, predicates and transforms into a table, as a config says."""

from __future__ import annotations

import datetime
import json
from typing import Any

from confluent_kafka import Consumer, Message, Producer
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

from icestream.kafka.topics import Topics
from tests.integration.worker_world import World, eventually

KAFKA = "org.apache.kafka.connect.transforms."
ORDERS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "card", StringType()),
    NestedField(3, "price", DoubleType()),
    NestedField(4, "at", TimestamptzType()),
    NestedField(5, "source", StringType()),
)
CONFIG = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
    "value.schema.inline": json.dumps({"required": ["id"], "properties": {"id": {"minimum": 1}}}),
    "transforms": "gone,skip,names,hide,time,origin",
    "transforms.gone.type": f"{KAFKA}Filter",
    "transforms.gone.predicate": "deleted",
    "transforms.skip.type": f"{KAFKA}Filter",
    "transforms.skip.predicate": "marked",
    "transforms.names.type": f"{KAFKA}ReplaceField$Value",
    "transforms.names.renames": "cost:price",
    "transforms.names.exclude": "note",
    "transforms.hide.type": f"{KAFKA}MaskField$Value",
    "transforms.hide.fields": "card",
    "transforms.hide.replacement": "****",
    "transforms.time.type": f"{KAFKA}TimestampConverter$Value",
    "transforms.time.field": "at",
    "transforms.time.format": "yyyy-MM-dd HH:mm",
    "transforms.time.target.type": "Timestamp",
    "transforms.origin.type": f"{KAFKA}InsertField$Value",
    "transforms.origin.topic.field": "source",
    "transforms.origin.predicate": "test",
    "transforms.origin.negate": "true",
    "predicates": "deleted,marked,test",
    "predicates.deleted.type": f"{KAFKA}predicates.RecordIsTombstone",
    "predicates.marked.type": f"{KAFKA}predicates.HasHeaderKey",
    "predicates.marked.name": "skip-me",
    "predicates.test.type": f"{KAFKA}predicates.TopicNameMatches",
    "predicates.test.pattern": "test-.*",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "orders-dead",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
}
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "card", "type": "string", "optional": True},
        {"field": "cost", "type": "double", "optional": True, "default": 1.5},
        {"field": "at", "type": "string", "optional": True},
        {"field": "note", "type": "string", "optional": True},
    ],
}


def send(world: World, topic: str, *orders: dict[str, Any] | None, **headers: str) -> None:
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for order in orders:
        value = None if order is None else json.dumps({"schema": SCHEMA, "payload": order})
        producer.produce(topic, value, headers=list(headers.items()))
    assert producer.flush(30) == 0


def dead_letters(world: World, topic: str, count: int) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Their values and the context in their headers."""
    settings = {
        "bootstrap.servers": world.bootstrap,
        "group.id": "reader",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(count, timeout=120)
    finally:
        consumer.close()
    return [(json.loads(message.value() or b""), context(message)) for message in messages]


def context(message: Message[Any, Any]) -> dict[str, str]:
    headers: Any = message.headers()
    return {name.removeprefix("__connect.errors."): value.decode() for name, value in headers}


def test_a_config_with_everything_on_the_way(world: World) -> None:
    Topics({"bootstrap.servers": world.bootstrap}).create("path_orders", 1, 1)
    world.catalog.create_namespace_if_not_exists("ns")
    world.catalog.create_table("ns.path_orders", ORDERS)
    send(
        world,
        "path_orders",
        {"id": 1, "card": "4111", "cost": 9.5, "at": "2026-11-15 08:30", "note": "x"},
        {"id": 2, "card": None, "cost": None, "at": None, "note": None},
        {"id": 0, "card": "4222", "cost": 1.0, "at": "2026-11-15 08:30", "note": "breaks the JSON Schema"},
        {"id": 3, "card": "4333", "cost": 2.0, "at": "yesterday", "note": "has no time"},
        None,
    )
    send(
        world,
        "path_orders",
        {"id": 4, "card": "4444", "cost": 2.0, "at": None, "note": None},
        **{"skip-me": "1"},
    )
    send(world, "path_orders", {"id": 5, "card": "4555", "cost": 2.5, "at": None, "note": None})

    world.client.create("path_orders", world.config("path_orders", **CONFIG))
    eventually(lambda: world.ids("path_orders") == [1, 2, 5], 120)
    rows = world.catalog.load_table("ns.path_orders").scan("id < 3").to_arrow().sort_by("id").to_pylist()
    at = datetime.datetime(2026, 11, 15, 8, 30, tzinfo=datetime.UTC)
    assert rows == [
        {"id": 1, "card": "****", "price": 9.5, "at": at, "source": "path_orders"},
        {"id": 2, "card": None, "price": 1.5, "at": None, "source": "path_orders"},
    ]

    letters = dead_letters(world, "orders-dead", 2)
    told = {value["payload"]["id"]: context for value, context in letters}
    assert told[0]["stage"] == "VALUE_CONVERTER" and "/id" in told[0]["exception.message"]
    assert told[3]["stage"] == "TRANSFORMATION"
    assert told[3]["class.name"] == f"{KAFKA}TimestampConverter$Value"
    (view,) = [view for view in world.client.overview() if view.name == "path_orders"]
    progress = view.progress
    assert progress is not None and (progress.rejected, progress.filtered) == (2, 2)
