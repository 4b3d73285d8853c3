"""TimestampConverter: between text, Unix time, Date, Time and Timestamp."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.schema import STRING, ConnectSchema, Kind, decimal, struct, timestamp
from icestream.records.schema import date as date_schema
from icestream.records.schema import time as time_schema
from icestream.transforms.groups import Side
from icestream.transforms.timestamp_converter import TimestampConverter
from tests.unit.transforms.groups import group, maps, structs, values

MOMENT = datetime(2026, 11, 15, 10, 20, 30, 123_000, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 15, tzinfo=UTC)
TIME_OF_DAY = datetime(1970, 1, 1, 10, 20, 30, 123_000, tzinfo=UTC)
UNIX = 1_794_738_030_123
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def converter(target: str, field: str = "a", pattern: str = "", precision: str = "") -> TimestampConverter:
    settings = {
        "target.type": target,
        "field": field,
        "format": pattern,
        "unix.precision": precision or "milliseconds",
        "replace.null.with.default": True,
    }
    return TimestampConverter.configured(settings, Side.VALUE)


@pytest.mark.parametrize(
    ("given", "target", "precision", "wanted"),
    [
        (UNIX, "Timestamp", "", MOMENT),
        (UNIX, "Date", "", MIDNIGHT),
        (UNIX, "Time", "", TIME_OF_DAY),
        (UNIX, "string", "", "2026-11-15T10:20:30.123Z"),
        (UNIX // 1000, "string", "seconds", "2026-11-15T10:20:30.000Z"),
        (UNIX * 1_000_000 + 7, "Timestamp", "nanoseconds", MOMENT),
        ("2026-11-15T10:20:30.123Z", "unix", "", UNIX),
        ("2026-11-15T10:20:30.123Z", "unix", "microseconds", UNIX * 1_000),
        ("2026-11-15T10:20:30.123Z", "Timestamp", "", MOMENT),
        (-1, "unix", "", -1),
        (None, "unix", "", None),
    ],
)
def test_maps(given: Any, target: str, precision: str, wanted: Any) -> None:
    applied = converter(target, pattern=ISO, precision=precision).apply(maps({"a": given}, {}))
    assert values(applied) == {0: {"a": wanted}, 1: {"a": None}}


def test_each_record_fails_for_its_own_reason() -> None:
    applied = converter("unix", pattern="yyyy-MM-dd").apply(
        maps({"a": "2026-11-15"}, {"a": "soon"}, {"a": 1.5}, {"a": []}, {"a": 7})
    )
    assert values(applied) == {0: {"a": 1_794_700_800_000}, 4: {"a": 7}}
    unsupported = "TimestampConverter does not support class {} objects as timestamps"
    assert {row: failure.reason for row, failure in applied.failed.items()} == {
        1: "Could not parse timestamp: value (soon) does not match pattern (yyyy-MM-dd)",
        2: unsupported.format("java.lang.Double"),
        3: unsupported.format("java.util.ArrayList"),
    }


@pytest.mark.parametrize(
    ("target", "schema", "wanted"),
    [
        ("Date", date_schema(optional=True), date(2026, 11, 15)),
        ("Time", time_schema(optional=True), time(10, 20, 30, 123_000)),
        ("Timestamp", timestamp(optional=True), MOMENT),
        ("unix", ConnectSchema(Kind.INT64, optional=True), UNIX),
        ("string", ConnectSchema(Kind.STRING, optional=True), "2026-11-15T10:20:30.123Z"),
    ],
)
def test_structs(target: str, schema: ConnectSchema, wanted: Any) -> None:
    text = ConnectSchema(Kind.STRING, optional=True, doc="d", name="text")
    before = struct(("a", text), ("b", STRING), name="n", version=2, optional=True)
    rows = [{"a": "2026-11-15T10:20:30.123Z", "b": "x"}, {"a": None, "b": "y"}]
    applied = converter(target, pattern=ISO).apply(structs(before, rows))
    (records,) = applied.records
    assert isinstance(records.value, Column)
    assert records.value.schema == struct(("a", schema), ("b", STRING), name="n", version=2, optional=True)
    assert records.value.values.to_pylist() == [{"a": wanted, "b": "x"}, {"a": None, "b": "y"}]


def test_the_default_of_a_struct_is_converted_too() -> None:
    before = struct(("a", ConnectSchema(Kind.INT64)), default={"a": UNIX}, optional=True)
    applied = converter("string", pattern="yyyy").apply(structs(before, [None]))
    (records,) = applied.records
    assert isinstance(records.value, Column)
    assert records.value.schema == struct(("a", STRING), default={"a": "2026"}, optional=True)


def test_fields_that_are_no_timestamps_are_refused() -> None:
    before = struct(("a", ConnectSchema(Kind.INT32)))
    applied = converter("unix").apply(structs(before, [{"a": 1}]))
    assert applied.failed[0].reason == (
        "Schema Schema{INT32} does not correspond to a known timestamp type format"
    )
    assert applied.failed[0].exception == "org.apache.kafka.connect.errors.ConnectException"


def test_a_number_that_its_schema_calls_a_decimal_is_no_timestamp() -> None:
    before = struct(("a", replace(decimal(2), kind=Kind.INT64)))
    applied = converter("unix").apply(structs(before, [{"a": Decimal("1.50")}]))
    assert "does not correspond to a known timestamp type format" in applied.failed[0].reason


def test_null_stays_null() -> None:
    nothing = group(None, 2)
    (made,) = converter("unix").apply(nothing).records
    assert made is nothing


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "requires format option"),
        (" ", "requires format option"),
        ("yyyy-e", "Illegal pattern character 'e'"),
        (
            "YYYY-MM-dd",
            "for configuration format: The letter 'Y' of SimpleDateFormat is",
        ),
    ],
)
def test_patterns_that_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        converter("string", pattern=pattern)
