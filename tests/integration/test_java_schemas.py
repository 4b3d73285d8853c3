"""New tables beside those of the real Java sink: its classes say which columns and partitions they get."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg.new_table import NewTable
from icestream.connectors.iceberg.schemas import new_schema
from icestream.converters.json_converter import JsonConverter
from icestream.rows.record_shape import WHOLE, RecordShape
from icestream.tables.given import Given
from tests.integration.jvm import java_gateway
from tests.java_workers.running import jars

pytestmark = pytest.mark.network

CONNECT = "org.apache.kafka.connect.data."
FIELDS: list[dict[str, Any]] = [
    {"field": "i8", "type": "int8"},
    {"field": "i16", "type": "int16", "optional": True},
    {"field": "i32", "type": "int32"},
    {"field": "i64", "type": "int64"},
    {"field": "f32", "type": "float"},
    {"field": "f64", "type": "double", "optional": True},
    {"field": "yes", "type": "boolean"},
    {"field": "raw", "type": "bytes"},
    {"field": "text", "type": "string"},
    {"field": "uid", "type": "string", "name": "uuid"},
    {
        "field": "price",
        "type": "bytes",
        "name": f"{CONNECT}Decimal",
        "version": 1,
        "parameters": {"scale": "4"},
    },
    {"field": "day", "type": "int32", "name": f"{CONNECT}Date", "version": 1},
    {"field": "clock", "type": "int32", "name": f"{CONNECT}Time", "version": 1},
    {"field": "at", "type": "int64", "name": f"{CONNECT}Timestamp", "version": 1},
    {"field": "list", "type": "array", "items": {"type": "int32", "optional": True}},
    {"field": "lists", "type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    {
        "field": "map",
        "type": "map",
        "keys": {"type": "string"},
        "values": {"type": "struct", "fields": [{"field": "x", "type": "int64"}]},
    },
    {
        "field": "inner",
        "type": "struct",
        "optional": True,
        "fields": [{"field": "a", "type": "int32"}, {"field": "b", "type": "string", "optional": True}],
    },
]
SCHEMA = {"type": "struct", "fields": FIELDS}
NUMBERS = dict.fromkeys(("i8", "i32", "i64", "f32", "day", "clock", "at"), 1)
PAYLOAD = {**NUMBERS, "yes": True, "raw": "", "text": "", "uid": "", "price": "AA=="}
PAYLOAD |= {"list": [], "lists": [], "map": {}}
RECORDS: list[Any] = [
    {"long": 1, "double": 1.5, "text": "t", "yes": True, "none": None, "empty": [], "nothing": {}},
    {"list": [1, 2], "lists": [["a"]], "structs": [{"a": 1, "b": {"c": 2.5}}], "of": {"empty": [], "x": 1}},
    {"deep": {"er": {"and": {"deeper": [[[1]]]}}}, "void": {"void": {}}, "nulls": [None]},
]
PARTITIONS = [
    "text",
    "years(at), months(day)",
    "day(at)",
    "hours(at),bucket(i64, 16)",
    "truncate(text, 4), truncate(price, 10), truncate(i32,5)",
    "inner.a, bucket(uid, 3), bucket(raw,2)",
    "yes,f64",
]
WRONG = [
    "nope",
    "day(text)",
    "bucket(f64, 4)",
    "bucket(i64)",
    "week(at)",
    "inner",
    "day(at), hour(at)",
    "text,text",
]


class JavaSink:
    """Its package-private classes."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._jvm = gateway.jvm
        forced = {"iceberg.tables.schema-force-optional": "true"}
        self._configs = {force: self._config(forced if force else {}) for force in (False, True)}
        utils = gateway.jvm.java.lang.Class.forName("org.apache.iceberg.connect.data.SchemaUtils")
        self._methods = {one.getName(): one for one in utils.getDeclaredMethods()}
        for method in self._methods.values():
            method.setAccessible(True)
        self._gateway = gateway

    def _config(self, more: dict[str, str]) -> Any:
        given = {"name": "n", "iceberg.tables": "a.b", "iceberg.catalog.type": "rest", **more}
        return self._jvm.org.apache.iceberg.connect.IcebergSinkConfig(given)

    def _call(self, name: str, *arguments: Any) -> Any:
        held = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for at, one in enumerate(arguments):
            held[at] = one
        return self._methods[name].invoke(None, held)

    def _converted(self, value: Any, with_schema: bool) -> Any:
        converter = self._jvm.org.apache.kafka.connect.json.JsonConverter()
        converter.configure({"schemas.enable": str(with_schema).lower()}, False)
        return converter.toConnectData("t", json.dumps(value).encode())

    def of_schema(self, force: bool) -> Any:
        data = self._converted({"schema": SCHEMA, "payload": PAYLOAD}, True)
        return self._call("toIcebergType", data.schema(), self._configs[force])

    def inferred(self, value: Any) -> Any:
        # py4j would make Python's own dict of the map: it stays in a Java list.
        data = self._converted(value, False)
        return self._call("inferIcebergType", data.value(), self._configs[False])

    def schema_of(self, kind: Any) -> Any:
        return self._jvm.org.apache.iceberg.Schema(kind.fields())

    def json_of(self, kind: Any) -> Any:
        return json.loads(self._jvm.org.apache.iceberg.SchemaParser.toJson(self.schema_of(kind)))

    def partitions(self, schema: Any, terms: list[str]) -> list[tuple[str, str]]:
        spec = self._call("createPartitionSpec", schema, self._jvm.java.util.ArrayList(terms))
        told = json.loads(self._jvm.org.apache.iceberg.PartitionSpecParser.toJson(spec))
        return [(one["name"], one["transform"]) for one in told["fields"]]


@pytest.fixture(scope="module")
def java_sink() -> Iterator[JavaSink]:
    with java_gateway(jars(), heap="256m") as gateway:
        yield JavaSink(gateway)


def without_ids(schema: Any) -> Any:
    """Ids are the catalog's to give."""
    if isinstance(schema, dict):
        gone = ("id", "element-id", "key-id", "value-id", "schema-id", "identifier-field-ids")
        return {key: without_ids(value) for key, value in schema.items() if key not in gone}
    if not isinstance(schema, list):
        return schema
    # Nor has the order of a Java map a meaning.
    return sorted((without_ids(one) for one in schema), key=lambda one: str(one["name"]))


def ours(values: list[Any], *, with_schema: bool, force: bool = False) -> pa.StructType:
    converter = JsonConverter.configured({"schemas.enable": str(with_schema).lower()}, is_key=False)
    shape = RecordShape(force_optional=force)
    for _, value in converter.to_connect("t", [json.dumps(one).encode() for one in values]).groups:
        shape.look(value)
    return shape.found()[WHOLE]


def as_json(kind: pa.StructType) -> Any:
    return without_ids(json.loads(new_schema(kind).model_dump_json()))


@pytest.mark.parametrize("force", [False, True], ids=["as the schema says", "schema-force-optional"])
def test_columns_of_a_schema_are_those_of_the_java_sink(force: bool, java_sink: JavaSink) -> None:
    kind = ours([{"schema": SCHEMA, "payload": PAYLOAD}], with_schema=True, force=force)
    assert as_json(kind) == without_ids(java_sink.json_of(java_sink.of_schema(force)))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: ",".join(record))
def test_columns_of_a_record_without_a_schema_are_those_of_the_java_sink(
    record: Any, java_sink: JavaSink
) -> None:
    theirs = java_sink.json_of(java_sink.inferred(record))
    assert as_json(ours([record], with_schema=False)) == without_ids(theirs)


def test_partitions_are_those_of_the_java_sink_and_what_it_refuses_is_an_error(java_sink: JavaSink) -> None:
    kind = ours([{"schema": SCHEMA, "payload": PAYLOAD}], with_schema=True)
    theirs = java_sink.schema_of(java_sink.of_schema(False))
    for text in PARTITIONS:
        given = NewTable(partition_by=Given("key", text))
        spec = given.spec("t", given.schema("t", kind))
        terms = [one.strip() for one in re.split(r",(?![^()]*\))", text)]
        assert [(one.name, str(one.transform)) for one in spec.fields] == java_sink.partitions(theirs, terms)
    for text in WRONG:
        given = NewTable(partition_by=Given("key", text))
        with pytest.raises((ConfigError, ValueError)):
            given.spec("t", given.schema("t", kind))
        terms = [one.strip() for one in re.split(r",(?![^()]*\))", text)]
        with pytest.raises(Py4JJavaError):
            java_sink.partitions(theirs, terms)
