"""Columns in the types of a table, with the coercions of the Java Iceberg sink."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icestream.records.schema import MOMENT
from icestream.rows.cast import cast_column

US = pa.timestamp("us", "UTC")
NOON = dt.datetime(2023, 11, 14, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("values", "source", "kind", "expected"),
    [
        ([1, None], pa.int64(), pa.int32(), [1, None]),
        ([1], pa.int8(), pa.float64(), [1.0]),
        ([1.7, -1.7], pa.float64(), pa.int64(), [1, -1]),
        ([1.5, 1e10, 1e-5], pa.float64(), pa.string(), ["1.5", "1.0E10", "1.0E-5"]),
        ([0.1], pa.float32(), pa.string(), ["0.1"]),
        (["1", "+5", "-7"], pa.string(), pa.int64(), [1, 5, -7]),
        (["1.5", "1e3", " 2d "], pa.string(), pa.float64(), [1.5, 1000.0, 2.0]),
        ([Decimal("1.25"), Decimal("-1.25")], pa.decimal256(76, 2), pa.decimal128(9, 1), ["1.3", "-1.3"]),
        ([Decimal("1.50")], pa.decimal256(76, 2), pa.int64(), [1]),
        ([Decimal("1.50")], pa.decimal256(76, 2), pa.string(), ["1.50"]),
        ([5], pa.int32(), pa.decimal128(9, 2), ["5.00"]),
        ([5.5], pa.float64(), pa.decimal128(9, 2), ["5.50"]),
        ([NOON], MOMENT, US, [NOON]),
        ([NOON], MOMENT, pa.timestamp("us"), [NOON.replace(tzinfo=None)]),
        ([NOON], MOMENT, pa.date32(), [NOON.date()]),
        ([NOON], MOMENT, pa.time64("us"), [NOON.time()]),
        ([NOON.date()], pa.date32(), US, [NOON.replace(hour=0)]),
        ([1000], pa.time32("ms"), pa.time64("us"), [dt.time(0, 0, 1)]),
        ([1_699_963_200_000], pa.int64(), US, [NOON]),
        ([19675], pa.int32(), pa.date32(), [NOON.date()]),
        ([1000], pa.int64(), pa.time64("us"), [dt.time(0, 0, 1)]),
        (["2023-11-14T12:00:00Z"], pa.string(), US, [NOON]),
        (["YWJj"], pa.string(), pa.binary(), [b"abc"]),
        ([b"abc"], pa.binary(), pa.binary(3), [b"abc"]),
        ([True], pa.bool_(), pa.string(), ["true"]),
        (["TRUE"], pa.string(), pa.bool_(), [True]),
        ([None], pa.null(), pa.int64(), [None]),
        ([{"a": 1}], pa.struct([("a", pa.int32())]), pa.string(), ['{"a":1}']),
        (
            [{"k": 1}, None],
            pa.map_(pa.string(), pa.int32()),
            pa.struct([("k", pa.int64())]),
            [{"k": 1}, None],
        ),
        (
            [[{"a": 1, "b": "z"}], None, []],
            pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])),
            pa.list_(pa.struct([("b", pa.string()), ("c", pa.int64()), ("a", pa.int64())])),
            [[{"b": "z", "c": None, "a": 1}], None, []],
        ),
    ],
)
def test_values_fit(values: list[Any], source: pa.DataType, kind: pa.DataType, expected: list[Any]) -> None:
    found, failed = cast_column(pa.array(values, source), kind, "x")
    assert not failed
    assert found.type == kind
    held = found.to_pylist(maps_as_pydicts="strict")
    assert [str(one) if isinstance(one, Decimal) else one for one in held] == expected


@pytest.mark.parametrize(
    ("value", "source", "kind"),
    [
        (2**40, pa.int64(), pa.int32()),
        (float("nan"), pa.float64(), pa.int64()),
        ("x", pa.string(), pa.int64()),
        ("0x10", pa.string(), pa.int64()),
        (" 7", pa.string(), pa.int64()),
        ("1_0", pa.string(), pa.int64()),
        ("1_0", pa.string(), pa.float64()),
        ("never", pa.string(), US),
        (Decimal("12345678901.25"), pa.decimal256(76, 2), pa.decimal128(9, 2)),
        (NOON, MOMENT, pa.int64()),
        (NOON, MOMENT, pa.string()),
        (b"x", pa.binary(), pa.string()),
        (b"x", pa.binary(), pa.binary(3)),
        (True, pa.bool_(), pa.int32()),
        ([1], pa.list_(pa.int64()), pa.int64()),
    ],
)
def test_what_does_not_fit_is_named_among_its_neighbours(
    value: Any, source: pa.DataType, kind: pa.DataType
) -> None:
    found, failed = cast_column(pa.array([None] * 40 + [value] + [None] * 40, source), kind, "the.path")
    assert list(failed) == [40]
    assert failed[40].startswith("field 'the.path' is ")
    assert found.null_count == 81


def test_pieces_of_longer_arrays_are_cast_by_themselves() -> None:
    whole = pa.array([[1], [2, 3], [], [4]], pa.list_(pa.int64()))
    maps = pa.array([{"a": 1}, {"b": 2, "c": 3}], pa.map_(pa.string(), pa.int64()))
    assert cast_column(whole.slice(1, 3), pa.list_(pa.string()), "x")[0].to_pylist() == [
        ["2", "3"],
        [],
        ["4"],
    ]
    assert cast_column(maps.slice(1), pa.map_(pa.string(), pa.string()), "x")[0].to_pylist() == [
        [("b", "2"), ("c", "3")]
    ]
