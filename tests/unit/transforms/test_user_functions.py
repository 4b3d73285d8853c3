"""Users' functions: what they are given, what may come back, and which records fail."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.records import Applied, Records
from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from icestream.records.values import Fields, Text
from icestream.transforms.chain import chain_from
from icestream.transforms.user_functions import UserFunction
from tests.unit.transforms.groups import group, maps, structs, values

EXAMPLE = Path(__file__).parent / "shop_transforms"
DOUBLE = ConnectSchema(Kind.FLOAT64, optional=True)
ORDER = struct(("price", DOUBLE), ("quantity", ConnectSchema(Kind.INT32)), name="order", version=2)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for file in ("pyproject.toml", "shop_transforms.py"):
        (source / file).write_text((EXAMPLE / file).read_text())
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    subprocess.run(command, check=True, timeout=120)
    monkeypatch.syspath_prepend(str(target))


@pytest.mark.usefixtures("installed")
def test_the_example_is_installed_and_run() -> None:
    chain = chain_from(
        {"transforms": "total", "transforms.total.type": "add_total", "transforms.total.field": "sum"}
    )
    orders = [
        {"price": 2.5, "quantity": 2},
        {"price": 0.0, "quantity": 9},
        {"price": 1.0, "quantity": 1, "note": "x"},
        {"price": "free", "quantity": 1},
    ]
    outcome = chain.run([maps(*orders)])
    assert values(Applied(outcome.records)) == {0: {**orders[0], "sum": 5.0}, 2: {**orders[2], "sum": 1.0}}
    assert outcome.dropped == {1: "total"}
    failed = outcome.failed[3]
    assert failed.class_name == "add_total" and "multiply" in failed.reason


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="no package has a function 'gone'"):
        UserFunction.named("gone", {})


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_module:f", "cannot be loaded from no_such_module:f: ModuleNotFoundError"),
        ("json:__doc__", "is no function"),
    ],
)
def test_what_cannot_be_loaded_is_refused(
    target: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[icestream.transforms]\nbroken = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=reason):
        UserFunction.named("broken", {})


def _function(body: Any, **settings: str) -> UserFunction:
    def call(table: pa.Table, given: Mapping[str, str]) -> Any:
        assert given == settings
        return body(table)

    return UserFunction("mine", call, settings)


def test_columns_that_it_does_not_touch_stay_as_they_were() -> None:
    records = maps({"a": 1, "n": {"x": [1, "2"]}}, {"a": 2, "l": [1.5, 1]}, {"b": None})
    applied = _function(lambda table: table).apply(records)
    assert values(applied) == {
        0: {"a": 1, "n": {"x": [1, "2"]}},
        1: {"a": 2, "l": [1.5, 1]},
        2: {"b": None},
    }


def test_records_are_given_in_groups_of_one_type() -> None:
    seen = []

    def body(table: pa.Table) -> pa.Table:
        seen.append(str(table.schema.field("a").type))
        return table

    applied = _function(body).apply(maps({"a": 1}, {"a": "x"}, {"a": 2}, {}))
    assert sorted(seen) == ["int64", "null", "string"]
    assert values(applied) == {0: {"a": 1}, 1: {"a": "x"}, 2: {"a": 2}, 3: {}}


def test_the_settings_are_those_of_the_connector() -> None:
    assert values(_function(lambda table: table, rate="1.5").apply(maps({"a": 1}))) == {0: {"a": 1}}


def test_only_the_records_fail_that_it_fails_for() -> None:
    def body(table: pa.Table) -> pa.Table:
        if 0 in table["a"].to_pylist():
            raise ZeroDivisionError("nothing to divide by")
        return table.append_column("b", pc.divide(100, table["a"]))

    records = maps(*({"a": number % 50} for number in range(200)))
    applied = _function(body).apply(records)
    assert {row: why.reason for row, why in applied.failed.items()} == dict.fromkeys(
        (0, 50, 100, 150), "nothing to divide by"
    )
    assert applied.failed[0].exception == "ZeroDivisionError"
    assert values(applied)[199] == {"a": 49, "b": 2}
    assert len(values(applied)) == 196 and not applied.dropped


def test_every_record_may_fail() -> None:
    def body(table: pa.Table) -> pa.Table:
        raise KeyError("gone")

    applied = _function(body).apply(maps({"a": 1}, {"a": 2}, {"a": "x"}))
    assert [applied.failed[row].reason for row in range(3)] == ["'gone'"] * 3 and not applied.records


def test_rows_may_be_dropped_and_sorted() -> None:
    def body(table: pa.Table) -> pa.Table:
        return table.filter(pc.greater(table["a"], 1)).sort_by([("a", "descending")])

    applied = _function(body).apply(maps({"a": 2}, {"a": 1}, {"a": 3}))
    assert values(applied) == {0: {"a": 2}, 2: {"a": 3}}
    assert applied.dropped == [1]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda table: None, "it returned a NoneType, and not a pyarrow.Table"),
        (lambda table: table.drop_columns(["__row"]).slice(1), "it returned 1 rows for 2 records"),
        (lambda table: pa.concat_tables([table, table]), "has numbers twice"),
        (lambda table: table.append_column("a", table["a"]), "two columns 'a'"),
        (
            lambda table: table.append_column("t", pa.array([1, 2], pa.duration("s"))),
            "column 't' has the type duration[s], which records cannot hold; cast it",
        ),
        (
            lambda table: table.append_column("t", pa.array([[b"x"], []])),
            "column 't' has the type list<item: binary>",
        ),
    ],
)
def test_results_that_cannot_be_records_fail_with_the_reason(body: Any, reason: str) -> None:
    applied = _function(body).apply(maps({"a": 1}, {"a": 2}))
    assert [applied.failed[row].reason for row in range(2)] == [applied.failed[0].reason] * 2
    assert applied.failed[0].reason.startswith("the function 'mine': ") and reason in applied.failed[0].reason


def test_new_columns_have_the_types_that_arrow_gave_them() -> None:
    moment = datetime.datetime(2026, 11, 15, 12, 30, 0, 1999, datetime.UTC)
    new = {
        "i": pa.array([5], pa.int16()),
        "u": pa.array([5], pa.uint8()),
        "v": pa.array([2**64 - 1], pa.uint64()),
        "s": pa.array(["x"], pa.large_string()),
        "d": pa.array(["x"]).dictionary_encode(),
        "t": pa.array([moment], pa.timestamp("us", "UTC")),
        "n": pa.array([datetime.date(2026, 11, 15)]),
        "c": pa.array([Decimal("1.50")]),
        "m": pa.array([{"x": [1, None]}]),
    }

    def body(table: pa.Table) -> pa.Table:
        for name, column in new.items():
            table = table.append_column(name, column)
        return table

    applied = _function(body).apply(maps({"a": 1}))
    (records,) = applied.records
    fields = records.value
    assert isinstance(fields, Fields) and isinstance(fields.named["m"], Text)
    types = {name: str(node.values.type) for name, node in fields.named.items() if isinstance(node, Column)}
    moments = "timestamp[ms, tz=UTC]"
    assert types == {
        "a": "int64",
        "i": "int16",
        "u": "int16",
        "v": "decimal128(20, 0)",
        "s": "string",
        "d": "string",
        "t": moments,
        "n": moments,
        "c": "decimal128(3, 2)",
    }
    row = values(applied)[0]
    assert row["t"] == moment.replace(microsecond=1000) and row["m"] == {"x": [1, None]}


def test_nested_values_are_structs_and_lists() -> None:
    def body(table: pa.Table) -> pa.Table:
        ids = pc.struct_field(table["user"], "id")
        return table.append_column("id", ids)

    assert values(_function(body).apply(maps({"user": {"id": 7}}, {"user": {"id": 8}}))) == {
        0: {"user": {"id": 7}, "id": 7},
        1: {"user": {"id": 8}, "id": 8},
    }


def test_a_key_that_was_absent_stays_absent_unless_it_gets_a_value() -> None:
    def body(table: pa.Table) -> pa.Table:
        doubled = pc.multiply(table["a"], 2)
        return table.set_column(table.schema.get_field_index("a"), "a", doubled)

    assert values(_function(body).apply(maps({"a": 1, "b": 1}, {"b": 2}, {"a": None}))) == {
        0: {"a": 2, "b": 1},
        1: {"b": 2},
        2: {"a": None},
    }


def test_structs_keep_their_schema_and_get_schemas_for_new_columns() -> None:
    def body(table: pa.Table) -> pa.Table:
        table = table.append_column("total", pc.multiply(table["price"], table["quantity"]))
        table = table.append_column("at", pa.array([1, 2], pa.timestamp("s")))
        return table.append_column("tags", pa.array([["x"], None], pa.large_list(pa.large_string())))

    rows = [{"price": 1.5, "quantity": 2}, {"price": None, "quantity": 1}]
    (records,) = _function(body).apply(structs(ORDER, rows)).records
    value = records.value
    assert isinstance(value, Column) and value.schema == struct(
        *((field.name, field.schema) for field in ORDER.fields),
        ("total", DOUBLE),
        ("at", timestamp(optional=True)),
        ("tags", array(OPTIONAL_STRING, optional=True)),
        name="order",
        version=2,
    )
    assert value.values.type == value.schema.arrow_type
    assert value.values[0].as_py()["total"] == 3.0 and value.values[1].as_py()["tags"] is None


@pytest.mark.parametrize(
    ("column", "schema", "value"),
    [
        (pa.array([2**64 - 1], pa.uint64()), decimal(0, optional=True), Decimal(2**64 - 1)),
        (pa.array(["x"]).dictionary_encode(), OPTIONAL_STRING, "x"),
        (pa.array([datetime.date(2026, 1, 2)]), date(optional=True), datetime.date(2026, 1, 2)),
        (pa.array([datetime.time(1, 2)]), time(optional=True), datetime.time(1, 2)),
        (pa.array([Decimal("1.5")]), decimal(1, optional=True), Decimal("1.5")),
        (
            pa.array([[1_999_999]], pa.list_(pa.timestamp("ns", "UTC"))),
            array(timestamp(optional=True), optional=True),
            [datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, datetime.UTC)],
        ),
        (
            pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float32())),
            map_of(OPTIONAL_STRING, ConnectSchema(Kind.FLOAT32, optional=True), optional=True),
            {"k": 1.5},
        ),
        (
            pa.array([{"x": True}]),
            struct(("x", ConnectSchema(Kind.BOOLEAN, optional=True)), optional=True),
            {"x": True},
        ),
        (pa.nulls(1), OPTIONAL_STRING, None),
    ],
    ids=lambda one: str(one.type) if isinstance(one, pa.Array) else "",
)
def test_schemas_of_new_columns(column: pa.Array, schema: ConnectSchema, value: Any) -> None:
    applied = _function(lambda table: table.append_column("new", column)).apply(
        structs(struct(("a", STRING)), [{"a": "x"}])
    )
    (records,) = applied.records
    assert isinstance(records.value, Column) and records.value.schema is not None
    assert records.value.schema["new"] == schema
    assert values(applied)[0]["new"] == value


def test_a_new_column_that_has_no_schema_fails() -> None:
    applied = _function(lambda table: table.append_column("d", pa.array([1], pa.duration("s")))).apply(
        structs(struct(("a", STRING)), [{"a": "x"}])
    )
    assert "column 'd' has the type duration[s]" in applied.failed[0].reason


def test_structs_are_given_with_defaults() -> None:
    schema = struct(("a", ConnectSchema(Kind.INT32, optional=True, default=7)))
    applied = _function(lambda table: table).apply(structs(schema, [{"a": None}, {"a": 1}]))
    assert values(applied) == {0: {"a": 7}, 1: {"a": 1}}


def test_a_required_field_that_becomes_null_is_optional() -> None:
    def body(table: pa.Table) -> pa.Table:
        return table.set_column(0, "a", pa.nulls(table.num_rows, pa.string()))

    (records,) = _function(body).apply(structs(struct(("a", STRING)), [{"a": "x"}])).records
    assert isinstance(records.value, Column) and records.value.schema == struct(("a", OPTIONAL_STRING))


def test_tombstones_pass() -> None:
    records = group(None, 2)
    assert _function(lambda table: table).apply(records).records == [records]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (group(Column(pa.array(["x"])), 1), "takes records with fields, found: java.lang.String"),
        (maps({"__row": 1}), "the records have a field __row"),
        (structs(struct(("__row", STRING)), [{"__row": "x"}]), "the records have a field __row"),
        (maps({str(number): 1 for number in range(1001)}), "takes records of at most 1000 fields"),
    ],
    ids=["scalar", "taken", "taken in a schema", "many"],
)
def test_records_that_it_cannot_be_given_fail(records: Records, reason: str) -> None:
    applied = _function(lambda table: table).apply(records)
    assert reason in applied.failed[0].reason and not applied.records


def test_only_records_with_the_name_of_the_numbers_fail() -> None:
    applied = _function(lambda table: table).apply(maps({"a": 1}, {"__row": None, "a": 2}, {"a": "x"}))
    assert values(applied) == {0: {"a": 1}, 2: {"a": "x"}} and list(applied.failed) == [1]


def test_many_names_are_given_in_several_calls() -> None:
    objects = [{f"k{number}": number} for number in range(1100)]
    applied = _function(lambda table: table).apply(maps(*objects))
    assert values(applied) == dict(enumerate(objects))
