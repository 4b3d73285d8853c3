"""DebeziumTransform and DmsTransform beside Iceberg's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import OPTIONAL_STRING, STRING, ConnectSchema, Kind, map_of, struct
from icestream.transforms.cdc.debezium import DebeziumTransform
from icestream.transforms.cdc.dms import DmsTransform
from tests.smt_parity.generators import (
    Shape,
    data,
    givens,
    integers,
    json_maps,
    json_values,
    structs,
    texts,
    values_of,
)
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

SHAPE = Shape(names=("a", "_cdc", "c", "id"), rows=10)
LONG = ConnectSchema(Kind.INT64, optional=True)
PATTERNS: list[dict[str, str]] = [
    {},
    {"cdc.target.pattern": ""},
    {"cdc.target.pattern": "lake.{db}_{table}"},
    {"cdc.target.pattern": "{table}{table}"},
]
EVENT: dict[str, Any] = {
    "op": "u",
    "ts_ms": 1_763_222_400_123,
    "before": {"a": 1},
    "after": {"a": 2, "b": [1, {"c": None}]},
    "source": {"db": "shop", "table": "orders"},
}
ODD_EVENTS: list[dict[str, Any]] = [
    {"op": "c"},
    {"op": "r"},
    {"op": "d"},
    {"op": None},
    {"op": 5},
    {"op": {"u": 1}},
    {"op": "d", "before": None},
    {"after": None},
    {"after": "x"},
    {"after": [1]},
    {"after": {}},
    {"after": {"_cdc": 5}},
    {"ts_ms": None},
    {"ts_ms": "text"},
    {"ts_ms": {"x": 1}},
    {"ts_ms": [1]},
    {"ts_ms": 0.5},
    {"source": None},
    {"source": "x"},
    {"source": 5},
    {"source": {}},
    {"source": {"db": "shop"}},
    {"source": {"db": "shop", "schema": "public", "table": "orders"}},
    {"source": {"db": "shop", "schema": None, "table": "orders"}},
    {"source": {"db": 5, "table": 0.1}},
    {"source": {"db": True, "table": {"a": [1, None, "x"], "b": 1e10}}},
    {"source": {"db": [], "table": None}},
]
WITHOUT = ["op", "ts_ms", "before", "after", "source"]


def envelope(
    row: ConnectSchema,
    *,
    schema_field: bool = False,
    ts: ConnectSchema = LONG,
    op: ConnectSchema = OPTIONAL_STRING,
) -> ConnectSchema:
    names = [("db", OPTIONAL_STRING), *([("schema", OPTIONAL_STRING)] if schema_field else ())]
    return struct(
        ("before", row),
        ("after", row),
        ("source", struct(*names, ("table", OPTIONAL_STRING), optional=True)),
        ("op", op),
        ("ts_ms", ts),
        name="shop.orders.Envelope",
    )


ROW = struct(
    ("a", ConnectSchema(Kind.INT32, optional=True, default=7)),
    ("b", OPTIONAL_STRING),
    name="r",
    optional=True,
)
SOURCE = {"db": "shop", "schema": "public", "table": "orders"}


@pytest.mark.parametrize("config", PATTERNS, ids=str)
def test_debezium_events_without_schemas(parity: Parity, config: dict[str, str]) -> None:
    smt = Smt(DebeziumTransform, config, None)
    odd = [{**EVENT, **one} for one in ODD_EVENTS]
    lacking = [{name: EVENT[name] for name in EVENT if name != gone} for gone in WITHOUT]
    values = [EVENT, *odd, *lacking, {}, [1], "x", 5, None]
    keys = [{"id": row} if row % 3 else row for row in range(len(values))]
    parity.check([smt], Given(Json(values)))
    parity.check([smt], Given(Json(values), key=Json(keys)))


@pytest.mark.parametrize("config", PATTERNS, ids=str)
@pytest.mark.parametrize("schema_field", [False, True])
def test_debezium_events_with_schemas(parity: Parity, config: dict[str, str], schema_field: bool) -> None:
    event = {
        "before": {"a": 1, "b": "x"},
        "after": {"a": None, "b": None},
        "source": SOURCE,
        "op": "u",
        "ts_ms": 5,
    }
    changes: list[dict[str, Any]] = [
        {},
        {"op": "d"},
        {"op": "c"},
        {"op": None},
        {"op": "d", "before": None},
        {"after": None},
        {"ts_ms": None},
        {"ts_ms": -(2**60)},
        {"source": None},
        {"source": {"db": None, "schema": None, "table": "t"}},
        {"source": {**SOURCE, "table": None}},
        {"op": None, "ts_ms": None},
        {"ts_ms": None, "source": None},
        {"source": None, "after": None},
    ]
    values = [*({**event, **change} for change in changes), None]
    smt = Smt(DebeziumTransform, config, None)
    key_schema = struct(("id", ConnectSchema(Kind.INT32)), optional=True)
    keys = Of(key_schema, [{"id": row} if row % 3 else None for row in range(len(values))])
    schema = envelope(ROW, schema_field=schema_field).as_optional()
    parity.check([smt], Given(Of(schema, values)))
    parity.check([smt], Given(Of(schema, values), key=keys))
    parity.check([smt], Given(Of(schema, values), key=Json([{"id": 1}] * len(values))))


ODD_SCHEMAS = [
    struct(("a", STRING)),
    struct(("op", STRING)),
    struct(("op", STRING), ("after", STRING)),
    struct(("op", STRING), ("after", ROW)),
    struct(("op", STRING), ("after", ROW), ("ts_ms", STRING)),
    struct(("op", STRING), ("after", ROW), ("ts_ms", LONG)),
    struct(("op", STRING), ("after", ROW), ("ts_ms", LONG), ("source", STRING)),
    struct(("op", STRING), ("after", ROW), ("ts_ms", LONG), ("source", struct(("table", STRING)))),
    struct(("op", STRING), ("after", ROW), ("ts_ms", LONG), ("source", struct(("db", LONG)))),
    struct(("op", STRING), ("after", ROW), ("ts_ms", LONG), ("source", struct(("db", STRING)))),
    envelope(struct(("_cdc", STRING), optional=True)),
    envelope(ROW, op=ConnectSchema(Kind.INT32, optional=True)),
    envelope(ROW, op=ConnectSchema(Kind.STRING, optional=True, default="d")),
    map_of(STRING, STRING),
    STRING,
]


@pytest.mark.parametrize("schema", ODD_SCHEMAS, ids=range(len(ODD_SCHEMAS)))
def test_debezium_events_of_other_schemas(parity: Parity, schema: ConnectSchema) -> None:
    @generated(examples=5)
    @given(rows=st.lists(values_of(schema), min_size=4, max_size=8))
    def check(rows: list[Any]) -> None:
        parity.check([Smt(DebeziumTransform, {}, None)], Given(Of(schema, rows)))
        key = Of(map_of(STRING, LONG), [[("k", 1)]] * len(rows))
        parity.check([Smt(DebeziumTransform, {}, None)], Given(Of(schema, rows), key=key))

    check()


def events() -> st.SearchStrategy[dict[str, Any]]:
    rows = json_maps(SHAPE)
    source = st.fixed_dictionaries(
        {"db": texts(), "table": texts() | integers()}, optional={"schema": texts() | st.none()}
    )
    return st.fixed_dictionaries(
        {
            "op": st.sampled_from(["c", "u", "d"]),
            "after": st.one_of(rows, rows, json_values(SHAPE)),
            "source": st.one_of(source, source, source, json_values(SHAPE)),
            "ts_ms": st.one_of(integers(), json_values(SHAPE)),
        },
        optional={"before": rows},
    )


@generated(examples=60)
@given(
    config=st.sampled_from(PATTERNS),
    values=st.lists(events(), min_size=1, max_size=10),
    draw=st.data(),
)
def test_debezium_events_of_any_kind(parity: Parity, config: dict[str, str], values: Any, draw: Any) -> None:
    key = draw.draw(st.none() | data(SHAPE, len(values)))
    parity.check([Smt(DebeziumTransform, config, None)], Given(Json(values), key=key))


@st.composite
def struct_events(draw: st.DrawFn) -> Given:
    schema = envelope(draw(structs(SHAPE)).as_optional(), schema_field=draw(st.booleans()))
    value = values_of(schema).map(
        lambda event: {**event, "op": {"": "u", "a": "d"}.get(event["op"], event["op"])}
    )
    values = draw(st.lists(value, min_size=1, max_size=10))
    return Given(Of(schema, values), key=draw(st.none() | data(SHAPE, len(values))))


@generated(examples=60)
@given(config=st.sampled_from(PATTERNS), records=struct_events())
def test_debezium_events_with_any_schema(parity: Parity, config: dict[str, str], records: Given) -> None:
    parity.check([Smt(DebeziumTransform, config, None)], records)


DMS = {
    "data": {"a": 1, "b": {"c": [1]}},
    "metadata": {
        "operation": "update",
        "timestamp": "2026-11-15T00:00:00Z",
        "schema-name": "s",
        "table-name": "t",
    },
}
ODD_METADATA: list[Any] = [
    {},
    None,
    5,
    {"operation": None},
    {"operation": "delete"},
    {"operation": "load", "timestamp": 5},
    {"operation": 5, "timestamp": {"x": 1}, "schema-name": 1.5, "table-name": [None, True]},
    {"operation": {"a": 1}, "timestamp": [1], "schema-name": {"a": "x", "b": 1}},
]


def test_dms_records(parity: Parity) -> None:
    odd = [{**DMS, "metadata": metadata} for metadata in ODD_METADATA]
    other = [{**DMS, "data": None}, {**DMS, "data": [1]}, {**DMS, "data": {"_cdc": 1}}, {"data": {}}, {}]
    values = [DMS, *odd, *other, [1], "x", 5, True, None]
    parity.check([Smt(DmsTransform, {}, None)], Given(Json(values), key=Json([1] * len(values))))
    parity.check([Smt(DmsTransform, {}, None)], Given(Of(OPTIONAL_STRING, ["x", None])))


@generated(examples=60)
@given(records=givens(Shape(names=("data", "metadata", "operation", "timestamp", "schema-name"), depth=2)))
def test_dms_records_of_any_kind(parity: Parity, records: Given) -> None:
    parity.check([Smt(DmsTransform, {}, None)], records)
