"""Avro schemas become the schemas that Confluent's converter makes of them, and back."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from icestream.converters.registry.avro import AvroFormat
from icestream.converters.registry.avro_connect import AvroOptions, connect_schema
from icestream.converters.registry.avro_from_connect import avro_schema
from icestream.converters.registry.avro_schema import BadSchema, parse
from icestream.converters.registry.client import RegisteredSchema, UnknownSchema
from icestream.converters.registry.converter import RegistryConverter
from icestream.converters.registry.subjects import Subjects
from icestream.records.column import Column
from icestream.records.records import ConversionError
from icestream.records.schema import (
    STRING,
    ConnectSchema,
    Kind,
    array,
    date,
    map_of,
    struct,
    time,
    timestamp,
)
from icestream.records.schema import decimal as decimal_schema

PREFIX = "io.confluent.connect.avro"
INT = ConnectSchema(Kind.INT32)


def schema_of(node: Any, **options: bool) -> ConnectSchema:
    return connect_schema(parse(json.dumps(node)), AvroOptions(**options))


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "namespace": "n", "fields": list(fields), **more}


SCALARS: Mapping[str, tuple[Any, ConnectSchema]] = {
    "int": ("int", INT),
    "int8": ({"type": "int", "connect.type": "int8"}, ConnectSchema(Kind.INT8)),
    "date": ({"type": "int", "logicalType": "date"}, date()),
    "time": ({"type": "int", "logicalType": "time-millis"}, time()),
    "timestamp": ({"type": "long", "logicalType": "timestamp-millis"}, timestamp()),
    "micros stay numbers": ({"type": "long", "logicalType": "timestamp-micros"}, ConnectSchema(Kind.INT64)),
    "uuid stays text": ({"type": "string", "logicalType": "uuid"}, STRING),
    "avro's own properties": (
        {"type": "string", "avro.java.string": "String"},
        ConnectSchema(Kind.STRING, parameters=(("avro.java.string", "String"),)),
    ),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 3},
        decimal_schema(3),
    ),
    "fixed": (
        {"type": "fixed", "name": "F", "namespace": "n", "size": 4},
        ConnectSchema(Kind.BYTES, name="n.F", parameters=(("connect.fixed.size", "4"),)),
    ),
    "enum": (
        {"type": "enum", "name": "E", "symbols": ["A"], "doc": "letters", "default": "A"},
        ConnectSchema(
            Kind.STRING,
            name="E",
            parameters=(
                (f"{PREFIX}.enum.doc.E", "letters"),
                (f"{PREFIX}.enum.default.E", "A"),
                (f"{PREFIX}.Enum", "E"),
                (f"{PREFIX}.Enum.A", "A"),
            ),
        ),
    ),
    "optional": (["null", "int"], INT.as_optional()),
    "optional the other way": (["int", "null"], INT.as_optional()),
    "a union of one": (["int"], INT),
    "union": (
        ["null", "int", {"type": "record", "name": "a.B", "fields": []}],
        struct(
            ("int", INT.as_optional()),
            ("B", ConnectSchema(Kind.STRUCT, name="a.B", optional=True)),
            name=f"{PREFIX}.Union",
            optional=True,
        ),
    ),
    "array": ({"type": "array", "items": ["null", "int"]}, array(INT.as_optional())),
    "map": ({"type": "map", "values": "int"}, map_of(STRING, INT)),
    "map with other keys": (
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "MapEntry",
                "namespace": PREFIX,
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
            },
        },
        map_of(INT, STRING),
    ),
    "connect's notes": (
        {
            "type": "string",
            "connect.name": "a.Name",
            "connect.version": 3,
            "connect.doc": "d",
            "connect.parameters": {"k": "v"},
            "connect.default": "x",
        },
        ConnectSchema(Kind.STRING, name="a.Name", version=3, doc="d", parameters=(("k", "v"),), default="x"),
    ),
}


@pytest.mark.parametrize("name", SCALARS)
def test_types(name: str) -> None:
    node, expected = SCALARS[name]
    assert schema_of(node) == expected


def test_records_with_docs_and_defaults() -> None:
    schema = schema_of(
        record(
            {"name": "a", "type": "int", "default": 5, "doc": "number"},
            {"name": "b", "type": ["null", "string"], "default": None},
            {"name": "c", "type": {"type": "int", "logicalType": "date"}, "default": 1},
            {"name": "d", "type": "string", "default": 7},
            doc="a record",
        )
    )
    flag = (f"{PREFIX}.field.default", "true")
    assert schema.name == "n.R"
    assert schema.parameters == ((f"{PREFIX}.record.doc", "a record"), (f"{PREFIX}.field.doc.a", "number"))
    assert schema["a"] == ConnectSchema(Kind.INT32, default=5, parameters=(flag,))
    assert schema["b"] == STRING.as_optional()
    assert schema["c"].default == datetime.date(1970, 1, 2)
    assert schema["d"].default is None


def test_settings_change_names_and_notes() -> None:
    union = ["int", {"type": "record", "name": "a.B", "fields": []}]
    assert [field.name for field in schema_of(union, enhanced=True).fields] == ["int", "a.B"]
    assert schema_of(record(doc="x"), metadata=False).parameters == ()
    single = schema_of(["int"], flatten_singletons=False)
    assert (single.kind, single.fields[0].name) == (Kind.STRUCT, "int")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("null", "Standalone null schemas are not supported by this converter"),
        (record({"name": "next", "type": ["null", "n.R"]}), "contains itself"),
        (record({"name": "x", "type": "Nobody"}), "unknown type: n.Nobody"),
        (["int", "int"], "Multiple union schemas map to the Connect union field name"),
        ({"type": "int", "connect.type": "int4"}, "Connect type annotation for Avro int field is null"),
        ({"type": "array"}, "not valid"),
    ],
)
def test_schemas_that_cannot_be_used_say_why(node: Any, reason: str) -> None:
    with pytest.raises(BadSchema, match=reason):
        schema_of(node)


EVERYTHING = struct(
    ("i8", ConnectSchema(Kind.INT8)),
    ("i16", ConnectSchema(Kind.INT16, optional=True)),
    ("i32", ConnectSchema(Kind.INT32, doc="d")),
    ("i64", ConnectSchema(Kind.INT64, default=4)),
    ("f32", ConnectSchema(Kind.FLOAT32)),
    ("f64", ConnectSchema(Kind.FLOAT64)),
    ("b", ConnectSchema(Kind.BOOLEAN)),
    ("s", ConnectSchema(Kind.STRING, optional=True, default="x")),
    ("y", ConnectSchema(Kind.BYTES)),
    ("date", date()),
    ("time", time(optional=True)),
    ("ts", timestamp()),
    ("n", decimal_schema(2)),
    ("list", array(ConnectSchema(Kind.STRING, optional=True))),
    ("map", map_of(STRING, ConnectSchema(Kind.INT64))),
    ("pairs", map_of(ConnectSchema(Kind.INT32), STRING, optional=True)),
    ("inner", struct(("a", STRING), name="n.Inner", optional=True)),
    ("again", struct(("a", STRING), name="n.Inner", optional=True)),
    name="n.Everything",
    version=2,
)
ROWS = [
    {
        "i8": -1,
        "i16": 300,
        "i32": 2**31 - 1,
        "i64": -(2**63),
        "f32": 1.5,
        "f64": -0.25,
        "b": True,
        "s": "ä",
        "y": b"\x00\xff",
        "date": datetime.date(2024, 2, 29),
        "time": datetime.time(1, 2, 3, 4000),
        "ts": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        "n": decimal.Decimal("-128.00"),
        "list": ["a", None],
        "map": [("k", 1)],
        "pairs": [(1, "one")],
        "inner": {"a": "x"},
        "again": None,
    },
    {
        "i8": 1,
        "i16": None,
        "i32": 0,
        "i64": 0,
        "f32": 0.0,
        "f64": 0.0,
        "b": False,
        "s": None,
        "y": b"",
        "date": datetime.date(1969, 1, 1),
        "time": None,
        "n": decimal.Decimal("0.00"),
        "ts": datetime.datetime(1969, 1, 1, tzinfo=datetime.UTC),
        "list": [],
        "map": [],
        "pairs": None,
        "inner": None,
        "again": {"a": "y"},
    },
]


class OneSchema:
    """A registry that remembers what was registered last."""

    def __init__(self) -> None:
        self.schema: RegisteredSchema | None = None
        self.subjects: list[str] = []

    def by_id(self, schema_id: int) -> RegisteredSchema:
        assert self.schema is not None
        return self.schema

    def latest(self, subject: str) -> RegisteredSchema:
        return self.by_id(0)

    def register(self, subject: str, kind: str, text: str) -> int:
        self.subjects.append(subject)
        self.schema = RegisteredSchema(9, kind, text)
        return 9

    def look_up(self, subject: str, kind: str, text: str) -> int:
        raise UnknownSchema("Subject not found; error code: 40401")


def converter(registry: OneSchema, **settings: str) -> RegistryConverter:
    subjects = Subjects.configured(settings, registry, False)
    return RegistryConverter(AvroFormat.configured(settings, subjects), registry, False)


def test_what_is_written_is_read_as_the_same_by_fastavro_and_by_us() -> None:
    registry = OneSchema()
    column = Column(pa.array(ROWS, EVERYTHING.arrow_type), EVERYTHING)
    written = converter(registry).from_connect("t", column, 2)
    assert registry.subjects == ["t-value"]
    assert registry.schema is not None
    schema = fastavro.parse_schema(json.loads(registry.schema.text))
    for one, row in zip(written, ROWS, strict=True):
        assert one is not None and one[:5] == b"\0\0\0\0\x09"
        foreign = fastavro.schemaless_reader(io.BytesIO(one[5:]), schema, None)
        assert isinstance(foreign, dict)
        assert foreign["n"] == row["n"] and foreign["date"] == row["date"] and foreign["s"] == row["s"]
        assert foreign["map"] == dict(row["map"]) and foreign["inner"] == row["inner"]
    ((places, value),) = converter(registry).to_connect("t", written).groups
    assert places is None and isinstance(value, Column)
    assert value.values.to_pylist() == ROWS
    assert value.schema is not None
    assert _without_notes(value.schema) == _without_notes(EVERYTHING)


def _without_notes(schema: ConnectSchema) -> Any:
    """Kind, name, version, optional and default; not the parameters that tell where a default is from."""
    inner = [(one.name, _without_notes(one.schema)) for one in schema.fields]
    sides = [None if side is None else _without_notes(side) for side in (schema.key, schema.value)]
    return schema.kind, schema.name, schema.version, schema.optional, schema.default, inner, sides


def test_unions_are_written_as_unions() -> None:
    union = schema_of(["null", "int", "string"])
    assert avro_schema(union, AvroOptions()) == ["null", "int", "string"]
    registry = OneSchema()
    rows = [{"int": 5, "string": None}, {"int": None, "string": "x"}, None]
    column = Column(pa.array(rows, union.arrow_type), union)
    written = converter(registry).from_connect("t", column, 3)
    assert [one and one[5:] for one in written] == [b"\x02\x0a", b"\x04\x02x", b"\x00"]


def test_a_null_where_the_schema_wants_a_value_fails_its_row() -> None:
    schema = struct(("a", STRING), name="n.R")
    column = Column(pa.array([{"a": "x"}, {"a": None}], schema.arrow_type), schema)
    with pytest.raises(ConversionError) as caught:
        converter(OneSchema()).from_connect("t", column, 2)
    assert list(caught.value.failed) == [1]


def test_values_without_a_schema_and_unknown_schemas_are_refused() -> None:
    with pytest.raises(ConversionError, match="the value has no schema"):
        converter(OneSchema()).from_connect("t", Column(pa.array(["x"])), 1)
    column = Column(pa.array(["x"]), STRING)
    with pytest.raises(ConversionError, match="Subject not found; error code: 40401"):
        converter(OneSchema(), **{"auto.register.schemas": "false"}).from_connect("t", column, 1)


def test_the_latest_schema_is_used_if_it_is_the_same() -> None:
    registry = OneSchema()
    latest = {"use.latest.version": "true"}
    registry.register("t-value", "AVRO", '"string"')
    column = Column(pa.array(["x"]), STRING)
    assert converter(registry, **latest).from_connect("t", column, 1) == [b"\0\0\0\0\x09\x02x"]
    registry.register("t-value", "AVRO", '"int"')
    with pytest.raises(ConversionError, match="the latest schema of the subject"):
        converter(registry, **latest).from_connect("t", column, 1)


def test_bytes_alone_have_no_length_before_them() -> None:
    registry = OneSchema()
    registry.register("t", "AVRO", '"bytes"')
    ((_, value),) = converter(registry).to_connect("t", [b"\0\0\0\0\x09abc", b"\0\0\0\0\x09"]).groups
    assert isinstance(value, Column)
    assert value.values.to_pylist() == [b"abc", b""]


def test_bytes_behind_a_datum_fail_only_if_so_configured() -> None:
    registry = OneSchema()
    registry.register("t", "AVRO", '"int"')
    message = [b"\0\0\0\0\x09\x02more"]
    assert converter(registry).to_connect("t", message).failed == {}
    strict = converter(registry, **{"avro.fail.on.trailing.data": "true"}).to_connect("t", message)
    assert "Trailing data found" in strict.failed[0].reason
