"""TimestampConverter beside the real class."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icestream.records.schema import ConnectSchema, Kind, array, date, decimal, struct, time, timestamp
from icestream.transforms.cast import Cast
from icestream.transforms.date_patterns import ZONES
from icestream.transforms.dates import DateFormat
from icestream.transforms.groups import Side
from icestream.transforms.timestamp_converter import TimestampConverter
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

TARGETS = ["string", "unix", "Date", "Time", "Timestamp"]
PRECISIONS = ["seconds", "milliseconds", "microseconds", "nanoseconds"]
MOMENTS = [
    *(0, 1, -1, 999, -999, 1_000, 86_399_999, 86_400_000, -86_400_000, -86_400_001, 1_763_222_400_123),
    *(951_782_400_000, 4_102_444_799_999, 253_402_300_799_999, 253_402_300_800_000, -12_165_206_400_000),
    *(1_763_222_400, 1_763_222_400_123_456, -1_500, -1_500_000),
]
GREGORIAN = -12_219_292_800_000
"""Where Java's Gregorian calendar begins."""
PATTERNS = [
    "yyyy-MM-dd",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyy-MM-dd'T'HH:mm:ssZ",
    "yyyyMMdd",
    "yyyyMMddHHmmssSSS",
    "yyMMdd",
    "dd/MMM/yyyy:HH:mm:ss Z",
    "EEE, d MMM yyyy HH:mm:ss z",
    "EEEE, MMMM d, yyyy",
    "M/d/yy h:mm a",
    "h:mm:ss.S a",
    "yyyyy.MMMMM.dd hh:mm aaa",
    "'at' HH 'o''clock'",
    "''yyyy''",
    "X XX XXX zzzz",
    "SSSSSS",
    "y-M-d",
    "HH:mm",
]
TEXTS = [
    *("2026-11-15", "2026-1-5", "2026-13-45", "2026-11-15 trailing", " 2026-11-15", "20261115"),
    *("1582-10-15", "12026-11-15", "2026-00-00", "2026-02-30"),
    *("2026-11-15 10:20:30", "2026-11-15 24:60:61", "2026-11-15  1: 2: 3"),
    *("2026-11-15 10:20", "2026-11-15T", "2026-11-15T10:20:30.123Z", "2026-11-15T10:20:30.1Z"),
    *("2026-11-15T10:20:30.123456Z", "2026-11-15T10:20:30.123+02:00", "2026-11-15T10:20:30.123-0830"),
    *("2026-11-15T10:20:30+0000", "2026-11-15T10:20:30-2359", "2026-11-15T10:20:30+2400"),
    *("2026-11-15T10:20:30GMT", "2026-11-15T10:20:30.9X", "2026-11-15T10:20:30GMT+1:30"),
    *("2026-11-15T10:20:30GMT-12:00", "2026-11-15T10:20:30UTC", "20261115102030123", "2026111510203012"),
    *("261115", "991231", "2611155", "26111", "15/Nov/2026:10:20:30 +0100"),
    *("15/nov/2026:10:20:30 -0000", "5/NOVEMBER/2026:1:2:3 +1234", "Sun, 15 Nov 2026 10:20:30 GMT"),
    *("Mon, 15 Nov 2026 10:20:30 UTC", "sunday, 1 jan 1970 0:0:0 gmt", "Sunday, November 15, 2026"),
    *("1/2/26 3:04 PM", "1/2/26 12:00 AM"),
    *("1/2/2026 12:00 pm", "13/2/26 25:61 am", "12:30:15.5 PM 3 24", "1:2:3.4 am 11 1", "12:30:15.5 PM"),
    *("02026.November.15 10:20 PM", "at 7 o'clock", "at 25 o'clock", "'2026'"),
    *("Z Z Z UTC", "12:34", "+01 +0200 +03:00 GMT", "-1 Z Z UTC", "123456"),
    *("7", "", " ", "abc", "2026/11/15", "2026-Nov-15", "10:20", "10:20:30", "275760-09-13", "1900-02-29"),
    *("2000-02-29", "2100-02-29"),
]


def config(
    target: str, field: str = "", pattern: str = "", precision: str = "milliseconds"
) -> dict[str, str]:
    return {"target.type": target, "field": field, "format": pattern, "unix.precision": precision}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_formatting(parity: Parity, pattern: str) -> None:
    times = [*MOMENTS, GREGORIAN, *range(1_700_000_000_000, 1_900_000_000_000, 3_456_789_123)]
    parity.check([Smt(TimestampConverter, config("string", "", pattern))], Given(Json([*times, None])))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_parsing(parity: Parity, pattern: str) -> None:
    texts = [text for text in TEXTS if is_ours(pattern, text)]
    parity.check([Smt(TimestampConverter, config("unix", "", pattern))], Given(Json([*texts, None])))


def is_ours(pattern: str, text: str) -> bool:
    """Whether docs/compatibility.md says nothing of such texts."""
    touching = re.search("yyMM|HHmm|SSSSSS", pattern)
    if touching and (not text.isdigit() or len(text) > len(pattern)):
        return False
    moments, bad = DateFormat.of(pattern).parse(pa.array([text]))
    return bool(bad) or moments[0].as_py() >= GREGORIAN


@pytest.mark.parametrize("pattern", PATTERNS)
def test_parsing_what_was_formatted(parity: Parity, pattern: str) -> None:
    there, back = config("string", "", pattern), config("Timestamp", "", pattern)
    times = [one for one in MOMENTS if one < 253_402_300_800_000]
    parity.check([Smt(TimestampConverter, there), Smt(TimestampConverter, back)], Given(Json(times)))


FIXED = [
    *("yyyy-MM-dd", "yyyyMMddHHmmssSSS", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "yyyy-MM-dd'T'HH:mm:ssXXX"),
    *("dd/MMM/yyyy:HH:mm:ss Z", "EEE, dd MMM yyyy HH:mm:ss z", "hh:mm a", "yyyyMMddHHmmXX", "HH:mm X"),
]


@pytest.mark.parametrize("pattern", FIXED)
def test_parsing_texts_that_are_all_alike(parity: Parity, pattern: str) -> None:
    there, back = config("string", "", pattern), config("Timestamp", "", pattern)
    times = [GREGORIAN, *range(0, 4_000_000_000_000, 40_123_456_789)]
    parity.check([Smt(TimestampConverter, there), Smt(TimestampConverter, back)], Given(Json([None, *times])))


@pytest.mark.parametrize("pattern", ["e", "yyyy 'open", "XXXX", "yyyy-qq", "b", " ", "''", "'x'"])
def test_patterns_that_are_wrong_or_odd(parity: Parity, pattern: str) -> None:
    for target in ("string", "unix"):
        parity.check([Smt(TimestampConverter, config(target, "", pattern))], Given(Json([1, "x"])))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions(parity: Parity, target: str, precision: str) -> None:
    step = Smt(TimestampConverter, config(target, "", "yyyy-MM-dd HH:mm:ss.SSS", precision))
    times = [one for one in MOMENTS if target != "string" or one > -2_000_000]
    parity.check([step], Given(Json([*times, 2**53])))
    if target != "string":
        moments = Of(timestamp(optional=True), [*MOMENTS[:18], None])
        parity.check([step], Given(moments))


def test_ends_of_the_range(parity: Parity) -> None:
    ends = Given(Json([2**63 - 1, -(2**63), 2**62, -(2**62)]))
    for precision in PRECISIONS:
        first = Smt(TimestampConverter, config("Timestamp", "", "", precision))
        for other in PRECISIONS:
            parity.check([first, Smt(TimestampConverter, config("unix", "", "", other))], ends)


@pytest.mark.parametrize("target", TARGETS)
def test_fields_of_maps(parity: Parity, target: str) -> None:
    values: list[Any] = ["2026-11-15", 5, 1.5, True, None, [], {}, 1_763_222_400_123, "no date"]
    rows = [*({"a": value, "b": value} for value in values), {}, "no map", None, 7, [1]]
    parity.check([Smt(TimestampConverter, config(target, "a", "yyyy-MM-dd"))], Given(Json(rows)))
    parity.check([Smt(TimestampConverter, config(target, "", "yyyy-MM-dd"))], Given(Json([*values, *rows])))
    keys = Given(Json([1] * len(rows)), key=Json(rows))
    parity.check([Smt(TimestampConverter, config(target, "a", "yyyy-MM-dd"), Side.KEY)], keys)
    small = Given(Json([{"a": 5}, {"a": None}]))
    for kind in ("int32", "float32", "boolean"):
        cast = Smt(Cast, {"spec": f"a:{kind}"})
        parity.check([cast, Smt(TimestampConverter, config(target, "a", "yyyy-MM-dd"))], small)


def test_text_without_a_format(parity: Parity) -> None:
    step = Smt(TimestampConverter, config("unix", "a"))
    parity.check([step], Given(Json([{"a": "2026-11-15"}, {"a": 5}, {"a": None}])))


SCHEMAS: list[tuple[ConnectSchema, list[Any]]] = [
    (ConnectSchema(Kind.STRING, name="any", doc="d"), ["2026-11-15", "no date"]),
    (ConnectSchema(Kind.INT64), MOMENTS),
    (ConnectSchema(Kind.INT32), [5]),
    (ConnectSchema(Kind.BOOLEAN), [True]),
    (decimal(2, doc="d"), []),
    (array(ConnectSchema(Kind.INT64)), [[5]]),
    (date(doc="d"), [0, 1, -1, 20_000, -141_427]),
    (time(), [0, 86_399_999]),
    (timestamp(), MOMENTS),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("optional", [True, False])
def test_schemas(parity: Parity, target: str, optional: bool) -> None:
    for schema, values in SCHEMAS:
        one = schema.as_optional() if optional else schema
        some: list[Any] = [*values, *([None] if optional else [])]
        parity.check([Smt(TimestampConverter, config(target, "", "yyyy-MM-dd"))], Given(Of(one, some)))
        parity.check([Smt(TimestampConverter, config(target, "a", "yyyy-MM-dd"))], Given(Of(one, some)))
        other = timestamp(optional=True)
        whole = struct(("a", one), ("b", other), name="n", version=3, doc="d", optional=True)
        rows = [*({"a": value, "b": 5} for value in some), None]
        parity.check([Smt(TimestampConverter, config(target, "a", "yyyy-MM-dd"))], Given(Of(whole, rows)))
        parity.check([Smt(TimestampConverter, config(target, "c", "yyyy-MM-dd"))], Given(Of(whole, rows)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("defaults", ["true", "false"])
def test_defaults(parity: Parity, target: str, defaults: str) -> None:
    moment = timestamp(optional=True, default=datetime(2026, 11, 15, 10, 20, 30, tzinfo=UTC))
    record = struct(("a", moment), ("b", ConnectSchema(Kind.INT32, optional=True, default=7)))
    rows = [{"a": None, "b": None}, {"a": 1, "b": 2}]
    found = {**config(target, "a", "yyyy-MM-dd"), "replace.null.with.default": defaults}
    parity.check([Smt(TimestampConverter, found)], Given(Of(record, rows)))


@generated(examples=60)
@given(
    target=st.sampled_from(TARGETS),
    field=st.sampled_from(["", "a", "b", "ü"]),
    side=st.sampled_from(Side),
    records=givens(Shape()),
)
def test_anything(parity: Parity, target: str, field: str, side: Side, records: Given) -> None:
    # The first days of a count of 64 bits, 292 million years ago, are nobody's: docs/compatibility.md.
    assume(not re.search(r"-9223372\d{12}", repr(records)))
    parity.check([Smt(TimestampConverter, config(target, field, "yyyy-MM-dd"), side)], records)


@generated(examples=60)
@given(
    pattern=st.sampled_from(PATTERNS),
    times=st.lists(st.integers(-12_000_000_000_000, 300_000_000_000_000), min_size=20, max_size=40),
)
def test_any_moment_in_any_format(parity: Parity, pattern: str, times: list[int]) -> None:
    there, back = config("string", "", pattern), config("unix", "", pattern)
    parity.check([Smt(TimestampConverter, there)], Given(Json(times)))
    parity.check([Smt(TimestampConverter, there), Smt(TimestampConverter, back)], Given(Json(times)))


SEPARATED = [one for one in (*FIXED, *PATTERNS) if not re.search("MMdd|HHmm|SSSSSS|z|X X", one)]


@st.composite
def nearly_right(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A pattern, and texts that would match if some of their characters were not others."""
    pattern = draw(st.sampled_from(SEPARATED))
    times = draw(st.lists(st.integers(-12_000_000_000_000, 253_000_000_000_000), min_size=20, max_size=40))
    texts = DateFormat.of(pattern).format(pa.array(times)).to_pylist()
    others = [draw(changed(text)) for text in texts]
    return pattern, [text for text in others if is_ours(pattern, text)]


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        with_what = draw(st.sampled_from([*"0123456789 +:.,/TZzJP'", "", "é", "\t", "am", "Jan"]))
        text = text[:at] + with_what + text[at + draw(st.integers(0, 2)) :]
    return text


@generated(examples=100)
@given(case=nearly_right())
def test_texts_that_are_nearly_right(parity: Parity, case: tuple[str, list[str]]) -> None:
    pattern, texts = case
    parity.check([Smt(TimestampConverter, config("unix", "", pattern))], Given(Json(texts)))


def test_zones(parity: Parity) -> None:
    texts = [f"2026-07-01 12:00 {name}" for name in ZONES]
    parity.check([Smt(TimestampConverter, config("unix", "", "yyyy-MM-dd HH:mm z"))], Given(Json(texts)))
