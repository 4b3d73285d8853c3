"""Records of a Schema Registry land in a table, whatever schemas one batch holds; what is broken becomes a
dead letter."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from icestream.api.errors import SourceUnavailable
from icestream.converters.registry.settings import AVRO
from icestream.embedded import kafka
from tests.integration.local_job import World
from tests.integration.registry import guarded

OLD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": ["null", "string"], "default": None}],
}
NEW = {
    **OLD,
    "fields": [
        *OLD["fields"],
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "default": "\u0000",
        },
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
    ],
}


def messages(client: SchemaRegistryClient, topic: str, schema: Any, *values: Any) -> list[bytes]:
    serializer = AvroSerializer(client, json.dumps(schema))
    context = SerializationContext(topic, MessageField.VALUE)
    return [serializer(value, context) for value in values]


def test_a_batch_of_several_schemas_evolves_the_table(
    broker: kafka.Broker, registry: str, tmp_path: Path
) -> None:
    world = World(
        broker,
        tmp_path,
        options={
            "value.converter": AVRO,
            "value.converter.schema.registry.url": registry,
            "iceberg.tables.evolve-schema-enabled": "true",
        },
    )
    with SchemaRegistryClient({"url": registry}) as client:
        old = messages(client, world.name, OLD, {"id": 1, "text": "a"}, {"id": 2, "text": None})
        new = messages(
            client,
            world.name,
            NEW,
            {"id": 3, "text": "c", "price": Decimal("12.50"), "day": date(2022, 1, 8), "tags": {"k": "v"}},
        )
    world.produce([old[0], new[0], b"no message", old[0][:-1], old[1]])
    world.drain()
    found = world.rows()
    assert [(row["id"], row["text"]) for row in found] == [(1, "a"), (2, None), (3, "c")]
    assert found[2]["price"] == Decimal("12.50")
    assert found[2]["day"] == date(2022, 1, 8)
    assert dict(found[2]["tags"]) == {"k": "v"}
    assert found[0]["price"] is None
    reasons = world.reasons()
    begin = f"Failed to deserialize data for topic {world.name} to Avro: "
    assert reasons[2] == ("VALUE_CONVERTER", f"{begin}Unknown magic byte!")
    assert reasons[3][1].startswith(f"{begin}Error deserializing Avro message for id ")


def test_while_the_registry_is_away_a_batch_waits_and_nothing_is_lost(
    broker: kafka.Broker, registry: str, tmp_path: Path
) -> None:
    with guarded(registry, "") as door, SchemaRegistryClient({"url": registry}) as client:
        options = {"value.converter": AVRO, "value.converter.schema.registry.url": door.url}
        world = World(broker, tmp_path, options=options)
        old = messages(client, world.name, OLD, *({"id": number, "text": "a"} for number in range(3)))
        new = messages(client, world.name, NEW, {"id": 3, "price": Decimal(1), "tags": {}})
        world.produce(old[:2])
        world.drain()
        door.is_away = True
        world.produce([old[2], b"no message", *new])
        for _ in range(2):
            with pytest.raises(SourceUnavailable, match="answers HTTP 503"):
                world.drain()
            assert world.ids() == [0, 1]
            assert not world.reasons()
        door.is_away = False
        world.drain()
    assert world.ids() == [0, 1, 2, 3]
    assert list(world.reasons()) == [3]
