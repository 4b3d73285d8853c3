"""Debezium's logical types become what they mean: in new columns, and in those that a table has."""

import datetime as dt
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest

from icestream.records.column import Column
from icestream.records.schema import ConnectSchema, Kind, array, map_of, struct
from icestream.rows.record_shape import WHOLE, RecordShape
from icestream.rows.schema_drift import column_type
from icestream.rows.to_rows import RowConverter

TIME, DATA = "io.debezium.time.", "io.debezium.data."
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
MOMENT = dt.datetime(2026, 11, 15, 10, 20, 30, 123456)
MICROS = int(MOMENT.replace(tzinfo=dt.UTC).timestamp()) * 10**6 + 123456
MILLIS = MOMENT.replace(microsecond=123000)
NINE_MICROS = 9 * 3600 * 10**6 + 5


def named(name: str, kind: Kind) -> ConnectSchema:
    return ConnectSchema(kind, optional=True, name=name)


SCALED = struct(
    ("scale", ConnectSchema(Kind.INT32)),
    ("value", ConnectSchema(Kind.BYTES)),
    name=f"{DATA}VariableScaleDecimal",
)
CASES: list[tuple[ConnectSchema, Any, str, Any]] = [
    (named(f"{TIME}Date", Kind.INT32), 20772, "date32[day]", dt.date(2026, 11, 15)),
    (named(f"{TIME}Time", Kind.INT32), 1500, "int32", 1500),
    (named(f"{TIME}MicroTime", Kind.INT64), NINE_MICROS, "int64", NINE_MICROS),
    (named(f"{TIME}NanoTime", Kind.INT64), NINE_MICROS * 1000, "int64", NINE_MICROS * 1000),
    (
        named(f"{TIME}Timestamp", Kind.INT64),
        MICROS // 1000,
        "timestamp[us]",
        MOMENT.replace(microsecond=123000),
    ),
    (named(f"{TIME}MicroTimestamp", Kind.INT64), MICROS, "timestamp[us]", MOMENT),
    (named(f"{TIME}NanoTimestamp", Kind.INT64), MICROS * 1000 + 789, "timestamp[us]", MOMENT),
    (
        named(f"{TIME}ZonedTimestamp", Kind.STRING),
        "2026-11-15T10:20:30.123456Z",
        "timestamp[us, tz=UTC]",
        MOMENT.replace(tzinfo=dt.UTC),
    ),
    (named(f"{DATA}Uuid", Kind.STRING), str(ID), "extension<arrow.uuid>", ID),
    (named("uuid", Kind.STRING), str(ID), "extension<arrow.uuid>", ID),
    (named(f"{DATA}Json", Kind.STRING), '{"a":1}', "string", '{"a":1}'),
    (named(f"{TIME}Year", Kind.INT32), 2026, "int32", 2026),
    (SCALED, {"scale": 2, "value": b"\xff\x85"}, "string", "-1.23"),
]


@pytest.mark.parametrize(("schema", "value", "kind", "expected"), CASES, ids=lambda one: str(one)[:30])
def test_a_new_column_has_the_type_that_is_meant_on_every_level(
    schema: ConnectSchema, value: Any, kind: str, expected: Any
) -> None:
    whole = struct(
        ("plain", schema),
        ("inner", struct(("x", schema))),
        ("items", array(schema)),
        ("props", map_of(ConnectSchema(Kind.STRING), schema)),
    )
    assert str(column_type(schema)) == kind
    shape = RecordShape()
    record = {"plain": value, "inner": {"x": value}, "items": [value, value], "props": [("k", value)]}
    values = pa.array([record, record, record], whole.arrow_type).slice(1)
    shape.look(Column(values, whole))
    table = pa.schema(list(shape.found()[WHOLE]))
    made = RowConverter(table).to_rows(Column(values, whole), 2)
    assert not made.failed
    assert (
        made.rows.to_pylist()
        == [
            {"plain": expected, "inner": {"x": expected}, "items": [expected] * 2, "props": [("k", expected)]}
        ]
        * 2
    )


def _one(schema: ConnectSchema, values: list[Any], kind: pa.DataType) -> Any:
    whole = struct(("x", schema))
    column = Column(pa.array([{"x": value} for value in values], whole.arrow_type), whole)
    return RowConverter(pa.schema([("x", kind)])).to_rows(column, len(values))


def test_columns_that_a_table_has_get_what_they_can_hold() -> None:
    micros = named(f"{TIME}MicroTimestamp", Kind.INT64)
    tz = pa.timestamp("us", "UTC")
    assert _one(micros, [MICROS, None], tz).rows["x"].to_pylist() == [MOMENT.replace(tzinfo=dt.UTC), None]
    # As the Java sink has them: numbers stay numbers.
    assert _one(micros, [MICROS], pa.int64()).rows["x"].to_pylist() == [MICROS]
    assert _one(micros, [MICROS], pa.string()).rows["x"].to_pylist() == [str(MICROS)]
    scaled = [{"scale": 1, "value": b"\x7b"}, {"scale": 0, "value": b"\x05"}, None]
    numbers = _one(SCALED, scaled, pa.decimal128(9, 2)).rows["x"].to_pylist()
    assert numbers == [decimal.Decimal("12.30"), decimal.Decimal("5.00"), None]
    whole = _one(SCALED, scaled, SCALED.arrow_type).rows["x"].to_pylist()
    assert whole[0] == {"scale": 1, "value": b"\x7b"}


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("Time", Kind.INT32, 1500),
        ("MicroTime", Kind.INT64, 1_500_000),
        ("NanoTime", Kind.INT64, 1_500_000_999),
    ],
)
def test_a_column_of_times_gets_times_of_day(name: str, kind: Kind, value: int) -> None:
    made = _one(named(f"{TIME}{name}", kind), [value, None], pa.time64("us"))
    assert made.rows["x"].to_pylist() == [dt.time(0, 0, 1, 500_000), None]


def test_times_longer_than_a_day_fail_their_records_alone() -> None:
    """MySQL has them."""
    made = _one(named(f"{TIME}MicroTime", Kind.INT64), [NINE_MICROS, 100 * 3600 * 10**6, -1], pa.time64("us"))
    assert made.rows["x"].to_pylist() == [dt.time(9, 0, 0, 5)]
    assert {row: why.reason for row, why in made.failed.items()} == {
        1: "field 'x' is \"100:00:00.000000\", which does not fit a column of type time64[us]",
        2: "field 'x' is \"-00:00:00.000001\", which does not fit a column of type time64[us]",
    }
