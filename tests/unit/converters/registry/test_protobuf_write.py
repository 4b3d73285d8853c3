"""What is written as Protobuf is read again with the same values and, but for what Protobuf cannot say, the
same schema."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from icestream.converters.registry.client import RegisteredSchema
from icestream.converters.registry.converter import RegistryConverter
from icestream.converters.registry.protobuf import ProtobufFormat
from icestream.converters.registry.subjects import Subjects
from icestream.records.column import Column
from icestream.records.records import ConversionError
from icestream.records.schema import STRING, ConnectSchema, Kind, array, date, map_of, struct, time, timestamp
from icestream.records.schema import decimal as decimal_schema


class OneSchema:
    """A registry that remembers what was registered last."""

    def __init__(self) -> None:
        self.schema = RegisteredSchema(0, "", "")

    def by_id(self, schema_id: int) -> RegisteredSchema:
        return self.schema

    def latest(self, subject: str) -> RegisteredSchema:
        return self.schema

    def register(self, subject: str, kind: str, text: str) -> int:
        self.schema = RegisteredSchema(9, kind, text)
        return 9

    def look_up(self, subject: str, kind: str, text: str) -> int:
        return self.register(subject, kind, text)


def converter(**settings: str) -> RegistryConverter:
    registry = OneSchema()
    subjects = Subjects.configured(settings, registry, False)
    return RegistryConverter(ProtobufFormat.configured(settings, subjects), registry, False)


def back_and_forth(both: RegistryConverter, schema: ConnectSchema, rows: list[Any]) -> Column:
    column = Column(pa.array(rows, schema.arrow_type), schema)
    written = both.from_connect("t", column, len(rows))
    converted = both.to_connect("t", written)
    assert converted.failed == {}
    ((_, value),) = converted.groups
    assert isinstance(value, Column)
    return value


ENUM = "io.confluent.connect.protobuf.Enum"
COLOR = ConnectSchema(
    Kind.STRING,
    optional=True,
    name="Color",
    parameters=((ENUM, "Color"), (f"{ENUM}.BLUE", "5"), (f"{ENUM}.RED", "0")),
)
LEAF = struct(("a", STRING), name="Leaf", optional=True)
EVERYTHING = struct(
    ("i8", ConnectSchema(Kind.INT8)),
    ("i32", ConnectSchema(Kind.INT32)),
    ("i64", ConnectSchema(Kind.INT64)),
    ("f32", ConnectSchema(Kind.FLOAT32)),
    ("f64", ConnectSchema(Kind.FLOAT64)),
    ("b", ConnectSchema(Kind.BOOLEAN)),
    ("s", STRING),
    ("y", ConnectSchema(Kind.BYTES)),
    ("day", date(optional=True)),
    ("time", time(optional=True)),
    ("ts", timestamp(optional=True)),
    ("n", decimal_schema(2, optional=True)),
    ("e", COLOR),
    ("list", array(ConnectSchema(Kind.INT32))),
    ("leaves", array(LEAF)),
    ("map", map_of(STRING, ConnectSchema(Kind.INT64))),
    ("leaf", LEAF),
    (
        "choice_0",
        struct(
            ("ci", ConnectSchema(Kind.INT32, optional=True)),
            ("cl", LEAF),
            name="io.confluent.connect.protobuf.Union.choice",
            optional=True,
        ),
    ),
    name="n.Everything",
)
ROW: dict[str, Any] = {
    "i8": -1,
    "i32": 5,
    "i64": -(2**63),
    "f32": 1.5,
    "f64": -0.25,
    "b": True,
    "s": "ä",
    "y": b"\x00\xff",
    "day": datetime.date(2024, 2, 29),
    "time": datetime.time(1, 2, 3, 4000),
    "ts": datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=datetime.UTC),
    "n": decimal.Decimal("-128.00"),
    "e": "BLUE",
    "list": [1, 2],
    "leaves": [{"a": "x"}, {"a": ""}],
    "map": [("k", 1)],
    "leaf": {"a": "y"},
    "choice_0": {"ci": None, "cl": {"a": "z"}},
}


def test_every_type_comes_back() -> None:
    value = back_and_forth(converter(), EVERYTHING, [ROW])
    assert value.schema is not None
    assert value.schema.name == "Everything"
    (found,) = value.values.to_pylist()
    assert found == ROW
    assert {one.name: one.schema.kind for one in value.schema.fields} == {
        one.name: one.schema.kind for one in EVERYTHING.fields
    }


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.STRING, "line"),
        (Kind.INT64, -5),
        (Kind.BOOLEAN, True),
        (Kind.BYTES, b"x"),
        (Kind.FLOAT64, 0.5),
    ],
)
def test_a_value_alone_is_wrapped(kind: Kind, value: Any) -> None:
    found = back_and_forth(converter(), ConnectSchema(kind), [value])
    assert found.values.to_pylist() == [value]
    assert found.schema == ConnectSchema(kind)


def test_nulls_need_fields_that_say_optional() -> None:
    schema = struct(("a", STRING.as_optional()), name="R")
    assert back_and_forth(converter(), schema, [{"a": None}]).values.to_pylist() == [{"a": ""}]
    optional = converter(**{"optional.for.nullables": "true"})
    assert back_and_forth(optional, schema, [{"a": None}]).values.to_pylist() == [{"a": None}]


def test_a_null_where_the_schema_wants_a_value_fails_its_row() -> None:
    schema = struct(("a", STRING), name="R")
    column = Column(pa.array([{"a": "x"}, {"a": None}], schema.arrow_type), schema)
    with pytest.raises(ConversionError) as caught:
        converter().from_connect("t", column, 2)
    assert list(caught.value.failed) == [1]


def test_tombstones_stay_tombstones() -> None:
    schema = struct(("a", STRING), name="R", optional=True)
    column = Column(pa.array([None, {"a": "x"}], schema.arrow_type), schema)
    written = converter().from_connect("t", column, 2)
    assert written[0] is None and written[1] is not None
