"""Converters of a Schema Registry against a real one, with messages that Confluent's own client wrote."""

from __future__ import annotations

import datetime
import importlib
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.converters.registry.converter import registry_converter
from icestream.converters.registry.settings import AVRO, JSON_SCHEMA, PROTOBUF
from icestream.embedded import ports
from icestream.embedded.certificates import certificates
from icestream.kafka.keystores import identity
from icestream.records.column import Column
from icestream.records.records import ConversionError, Converted
from icestream.records.schema import STRING, ConnectSchema, Kind, struct
from tests.integration.registry import basic, guarded

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
    ],
}
ORDER_WITH_TOTAL = {**ORDER, "fields": [*ORDER["fields"], {"name": "total", "type": "double", "default": 0}]}


@pytest.fixture(scope="module")
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as made:
        yield made


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def settings(registry: str, **more: str) -> dict[str, str]:
    return {"schema.registry.url": registry, **more}


def avro_bytes(client: SchemaRegistryClient, topic: str, schema: Any, *values: Any) -> list[bytes]:
    serializer = AvroSerializer(client, json.dumps(schema))
    return [serializer(value, value_of(topic)) for value in values]


def rows(converted: Converted) -> dict[int, Any]:
    """What every row of the chunk became."""
    found: dict[int, Any] = {}
    for places, value in converted.groups:
        values = [None] * len(places or ()) if value is None else value.values.to_pylist()
        found.update(zip(range(len(values)) if places is None else places.tolist(), values, strict=True))
    return found


def test_several_schemas_tombstones_and_broken_messages_in_one_chunk(
    registry: str, client: SchemaRegistryClient
) -> None:
    old = avro_bytes(client, "orders", ORDER, {"id": 1, "customer": "Ada"}, {"id": 2, "customer": None})
    new = avro_bytes(client, "orders", ORDER_WITH_TOTAL, {"id": 3, "customer": "Bob", "total": 9.5})
    chunk = [
        old[0],
        new[0],
        None,
        b"no wire format",
        b"",
        old[1][:-1],
        b"\0\0\0\xff\xff" + old[0][5:],
        old[1],
    ]
    converted = registry_converter(AVRO, settings(registry), False).to_connect("orders", chunk)
    found = rows(converted)
    assert found[0] == {"id": 1, "customer": "Ada"}
    assert found[7] == {"id": 2, "customer": None}
    assert found[1] == {"id": 3, "customer": "Bob", "total": 9.5}
    assert found[2] is None
    assert sorted([*found, *converted.failed]) == list(range(8))
    reasons = {row: failure.reason for row, failure in converted.failed.items()}
    begin = "Failed to deserialize data for topic orders to Avro:"
    assert reasons[3] == reasons[4] == f"{begin} Unknown magic byte!"
    assert "the datum ends too early" in reasons[5]
    assert reasons[6].startswith(f"{begin} Error retrieving Avro value schema for id 65535")
    assert len(converted.groups) == 3


def test_references_are_resolved(registry: str, client: SchemaRegistryClient) -> None:
    person = {
        "type": "record",
        "name": "Person",
        "namespace": "a",
        "fields": [{"name": "n", "type": "string"}],
    }
    team = {
        "type": "record",
        "name": "Team",
        "namespace": "a",
        "fields": [{"name": "lead", "type": "a.Person"}],
    }
    club = {
        "type": "record",
        "name": "Club",
        "namespace": "a",
        "fields": [{"name": "team", "type": "a.Team"}, {"name": "owner", "type": "a.Person"}],
    }
    client.register_schema("person", Schema(json.dumps(person), "AVRO"))
    to_person = SchemaReference("a.Person", "person", 1)
    client.register_schema("team", Schema(json.dumps(team), "AVRO", [to_person]))
    references = [SchemaReference("a.Team", "team", 1), to_person]
    schema_id = client.register_schema("club-value", Schema(json.dumps(club), "AVRO", references))
    message = b"\0" + schema_id.to_bytes(4, "big") + b"\x06Ada\x06Bob"
    converted = registry_converter(AVRO, settings(registry), False).to_connect("club", [message])
    assert rows(converted) == {0: {"team": {"lead": {"n": "Ada"}}, "owner": {"n": "Bob"}}}


def column() -> Column:
    schema = struct(("name", STRING), ("size", ConnectSchema(Kind.INT64, optional=True)), name="shop.Item")
    return Column(
        pa.array([{"name": "a", "size": 1}, {"name": "b", "size": None}], schema.arrow_type), schema
    )


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "items-{}-value"),
        ("RecordNameStrategy", "shop.Item"),
        ("TopicRecordNameStrategy", "items-{}-shop.Item"),
    ],
)
def test_what_is_written_is_read_by_confluents_client(
    registry: str, client: SchemaRegistryClient, strategy: str, subject: str
) -> None:
    topic = f"items-{strategy.lower()}"
    name = f"io.confluent.kafka.serializers.subject.{strategy}"
    converter = registry_converter(AVRO, settings(registry, **{"value.subject.name.strategy": name}), False)
    written = converter.from_connect(topic, column(), 2)
    read = AvroDeserializer(client)
    assert [read(one, value_of(topic)) for one in written] == column().values.to_pylist()
    assert subject.format(strategy.lower()) in client.get_subjects()
    back = converter.to_connect(topic, written)
    assert rows(back) == dict(enumerate(column().values.to_pylist()))
    value = back.groups[0][1]
    assert isinstance(value, Column) and value.schema is not None
    assert value.schema.name == "shop.Item"


def test_without_auto_register_an_unknown_schema_fails(registry: str) -> None:
    converter = registry_converter(AVRO, settings(registry, **{"auto.register.schemas": "false"}), False)
    with pytest.raises(ConversionError, match="Failed to serialize Avro data from topic nowhere:"):
        converter.from_connect("nowhere", column(), 2)


CREDENTIALS: Mapping[str, tuple[str, dict[str, str]]] = {
    "user info": (
        basic("ada", "secret"),
        {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "ada:secret"},
    ),
    "token": (
        "Bearer abc",
        {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc"},
    ),
    "address": (basic("ada", "s/x"), {"schema.registry.url": "http://ada:s%2Fx@{}"}),
}


@pytest.mark.parametrize("way", list(CREDENTIALS))
def test_credentials(registry: str, client: SchemaRegistryClient, way: str) -> None:
    message = avro_bytes(client, "secret-orders", ORDER, {"id": 1, "customer": None})
    authorization, more = CREDENTIALS[way]
    with guarded(registry, authorization) as door:
        host = door.url.removeprefix("http://")
        given = settings(door.url) | {key: value.format(host) for key, value in more.items()}
        converter = registry_converter(AVRO, given, False)
        assert rows(converter.to_connect("secret-orders", message)) == {0: {"id": 1, "customer": None}}
        assert door.refused == []


def test_wrong_credentials_name_the_remedy_and_no_secret(registry: str, client: SchemaRegistryClient) -> None:
    message = avro_bytes(client, "secret-orders", ORDER, {"id": 1, "customer": None})
    with guarded(registry, "Bearer right") as door:
        given = settings(
            door.url, **{"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "wrong-token"}
        )
        with pytest.raises(FatalError, match=r"bearer\.auth\.token") as caught:
            registry_converter(AVRO, given, False).to_connect("secret-orders", message)
        assert "wrong-token" not in str(caught.value)


def test_tls_with_a_certificate_of_the_client(
    registry: str, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    message = avro_bytes(client, "tls-orders", ORDER, {"id": 1, "customer": None})
    stores = certificates(tmp_path / "tls", "store-secret")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=stores.truststore_pem)
    server.verify_mode = ssl.CERT_REQUIRED
    own = identity({"ssl.keystore.location": str(stores.keystore), "ssl.keystore.password": "store-secret"})
    assert own is not None
    pem = tmp_path / "server.pem"
    pem.write_text(own.key_pem + own.certificates_pem)
    server.load_cert_chain(pem)
    trusts = {
        "schema.registry.ssl.truststore.location": str(stores.truststore_pkcs12),
        "schema.registry.ssl.truststore.password": "store-secret",
        "schema.registry.ssl.truststore.type": "PKCS12",
    }
    shows = {
        "schema.registry.ssl.keystore.location": str(stores.keystore),
        "schema.registry.ssl.keystore.password": "store-secret",
        "schema.registry.ssl.keystore.type": "PKCS12",
    }
    with guarded(registry, "", server) as door:
        converter = registry_converter(AVRO, settings(door.url, **trusts, **shows), False)
        assert rows(converter.to_connect("tls-orders", message)) == {0: {"id": 1, "customer": None}}
        for half in (trusts, shows):
            converter = registry_converter(AVRO, settings(door.url, **half), False)
            with pytest.raises(SourceUnavailable, match="does not answer"):
                converter.to_connect("tls-orders", message)


def test_the_next_address_is_asked_when_one_does_not_answer(
    registry: str, client: SchemaRegistryClient
) -> None:
    message = avro_bytes(client, "orders", ORDER, {"id": 1, "customer": None})
    nobody = f"http://{ports.HOST}:{ports.free_port()}"
    converter = registry_converter(AVRO, settings(f"{nobody},{registry}"), False)
    assert rows(converter.to_connect("orders", message)) == {0: {"id": 1, "customer": None}}


def test_a_registry_that_is_away_is_an_error_of_the_batch() -> None:
    nobody = f"http://{ports.HOST}:{ports.free_port()}"
    converter = registry_converter(AVRO, settings(nobody), False)
    with pytest.raises(SourceUnavailable, match="does not answer"):
        converter.to_connect("orders", [b"\0\0\0\0\1\2"])


ITEM = """
syntax = "proto3";
package shop;
import "shop/size.proto";
import "google/protobuf/timestamp.proto";
message Item {
  string name = 1;
  Size size = 2;
  google.protobuf.Timestamp made = 3;
  message Part { int32 number = 1; }
}
"""
SIZE = 'syntax = "proto3"; package shop; message Size { int32 width = 1; repeated int32 heights = 2; }'


@pytest.fixture
def generated(tmp_path: Path) -> Iterator[Any]:
    """The module that protoc makes of the schema, as a producer has it."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "size.proto").write_text(SIZE)
    (tmp_path / "item.proto").write_text(ITEM)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{tmp_path}", f"--python_out={tmp_path}"]
    subprocess.run([*command, "item.proto", "shop/size.proto"], check=True, timeout=180)
    sys.path.insert(0, str(tmp_path))
    try:
        yield importlib.import_module("item_pb2")
    finally:
        sys.path.remove(str(tmp_path))


def test_protobuf_with_references_and_nested_types(
    registry: str, client: SchemaRegistryClient, generated: Any
) -> None:
    item = generated.Item(name="chair", made={"seconds": 60})
    item.size.width = 3
    item.size.heights.extend([1, 2])
    options = {"use.deprecated.format": False}
    whole = ProtobufSerializer(generated.Item, client, options)(item, value_of("items"))
    part = ProtobufSerializer(generated.Item.Part, client, options)(
        generated.Item.Part(number=7), value_of("parts")
    )
    converter = registry_converter(PROTOBUF, settings(registry), False)
    converted = converter.to_connect("items", [whole, part, None, whole[:-1]])
    found = rows(converted)
    assert 0 not in converted.failed, converted.failed[0]
    made = datetime.datetime(1970, 1, 1, 0, 1, tzinfo=datetime.UTC)
    assert found[0] == {"name": "chair", "size": {"width": 3, "heights": [1, 2]}, "made": made}
    assert found[1] == {"number": 7}
    assert found[2] is None
    reason = converted.failed[3].reason
    assert reason.startswith("Failed to deserialize data for topic items to Protobuf: Error deserializing")


PERSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "home": {"$ref": "address.json"},
    },
    "required": ["name"],
}
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}}


def test_json_schema_with_references(registry: str, client: SchemaRegistryClient) -> None:
    client.register_schema("address", Schema(json.dumps(ADDRESS), "JSON"))
    schema = Schema(json.dumps(PERSON), "JSON", [SchemaReference("address.json", "address", 1)])
    serializer = JSONSerializer(schema, client)
    ada = {"name": "Ada", "age": 36, "home": {"city": "London"}}
    message = serializer(ada, value_of("people"))
    converter = registry_converter(JSON_SCHEMA, settings(registry), False)
    converted = converter.to_connect(
        "people", [message, message[:-1], serializer({"name": "B"}, value_of("people"))]
    )
    assert rows(converted) == {0: ada, 2: {"name": "B", "age": None, "home": None}}
    assert list(converted.failed) == [1]


def test_json_schemas_that_are_written_are_read_again(registry: str) -> None:
    converter = registry_converter(JSON_SCHEMA, settings(registry), False)
    written = converter.from_connect("written-items", column(), 2)
    back = registry_converter(JSON_SCHEMA, settings(registry), False).to_connect("written-items", written)
    assert rows(back) == dict(enumerate(column().values.to_pylist()))
    value = back.groups[0][1]
    assert isinstance(value, Column)
    assert value.schema == column().schema


def test_protobuf_that_is_written_is_read_again(registry: str) -> None:
    options = settings(registry, **{"optional.for.nullables": "true"})
    lines = Column(pa.array(["a line", "another"]), STRING)
    for topic, value in {"proto-items": column(), "proto-lines": lines}.items():
        written = registry_converter(PROTOBUF, options, False).from_connect(topic, value, 2)
        back = registry_converter(PROTOBUF, options, False).to_connect(topic, written)
        assert rows(back) == dict(enumerate(value.values.to_pylist()))


def test_a_schema_of_another_type_fails_its_records(registry: str, client: SchemaRegistryClient) -> None:
    message = avro_bytes(client, "mixed", ORDER, {"id": 1, "customer": None})
    converted = registry_converter(PROTOBUF, settings(registry), False).to_connect("mixed", message)
    assert "is of type AVRO, not PROTOBUF" in converted.failed[0].reason
