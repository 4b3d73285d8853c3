"""java.text.SimpleDateFormat on columns: what it writes, and what it reads, leniently."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icestream.transforms.java_dates import JavaDateFormat

MOMENT = 1_794_738_030_123
"""2026-11-15T10:20:30.123Z, a Sunday."""


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2026-11-15T10:20:30.123Z"),
        ("yy.M.d", "26.11.15"),
        ("yyyyy", "02026"),
        ("EEE, d MMM yyyy HH:mm:ss z", "Sun, 15 Nov 2026 10:20:30 UTC"),
        ("EEEE MMMM G", "Sunday November AD"),
        ("h a K k", "10 AM 10 10"),
        ("D w W F u YYYY", "319 47 3 3 7 2026"),
        ("Z X XXX zzzz", "+0000 Z Z Coordinated Universal Time"),
        ("S SSSSS", "123 00123"),
        ("'o''clock' ''yyyy''", "o'clock '2026'"),
        ("", ""),
    ],
)
def test_formatting(pattern: str, wanted: str) -> None:
    texts = JavaDateFormat.of(pattern).format(pa.array([MOMENT, None], pa.int64()))
    assert texts.to_pylist() == [wanted, None]


def test_dates_before_the_gregorian_calendar() -> None:
    first = -12_219_292_800_000
    texts = JavaDateFormat.of("yyyy-MM-dd G").format(pa.array([first, first - 1, -62_135_769_600_001]))
    assert texts.to_pylist() == ["1582-10-15 AD", "1582-10-04 AD", "0001-12-31 BC"]


def test_moments_far_apart_are_formatted_without_a_table_of_all_between() -> None:
    texts = JavaDateFormat.of("yyyy HH:mm:ss.SSS").format(pa.array([0, 10**16]))
    assert texts.to_pylist() == ["1970 00:00:00.000", "318857 17:46:40.000"]


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("yyyy-MM-dd", "2026-11-15", 1_794_700_800_000),
        ("yyyy-MM-dd", "2026-11-15 and more", 1_794_700_800_000),
        ("yyyy-MM-dd", "2026-13-01", 1_798_761_600_000),
        ("yyyy-MM-dd", "2026-1-1", 1_767_225_600_000),
        ("yyyy-MM-dd", "15.11.2026", None),
        ("yyyy-MM-dd", "", None),
        ("yyyyMMdd", "20261115", 1_794_700_800_000),
        ("yyyyMMdd", "2026111", 1_793_491_200_000),
        ("yyyyMMdd", "20261", None),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-11-15T12:20:30+02:00", MOMENT - 123),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-11-15T10:20:30Z", MOMENT - 123),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-11-15T10:20:30+0200", None),
        ("dd/MMM/yyyy:HH:mm:ss Z", "15/Nov/2026:05:20:30 -0500", MOMENT - 123),
        ("dd/MMM/yyyy:HH:mm:ss Z", "15/november/2026:05:20:30 -0500", MOMENT - 123),
        ("dd/MMM/yyyy:HH:mm:ss Z", "15/Nox/2026:05:20:30 -0500", None),
        ("EEE, dd MMM yyyy HH:mm:ss z", "Sun, 15 Nov 2026 10:20:30 GMT", MOMENT - 123),
        ("M/d/yyyy h:mm a", "11/15/2026 12:00 AM", 1_794_700_800_000),
        ("hh:mm a", "12:30 PM", 45_000_000),
        ("D yyyy", "319 2026", 1_794_700_800_000),
        ("YYYY-'W'ww-u", "2026-W47-7", 1_794_700_800_000),
        ("HH:mm", "25:61", 93_660_000),
        ("SSS", "1E" + "9" * 5_000, 2**31 - 1),
        ("SSS", "9" * 5_000, 2**31 - 1),
        ("SSS", "1E-" + "9" * 5_000, 0),
        ("yyyy-MM-dd", "٢٠٢٦-11-15", 1_794_700_800_000),
    ],
)
def test_parsing(pattern: str, text: str, wanted: int | None) -> None:
    """The same alone, beside a text that is written in the usual width, and beside a null."""
    format = JavaDateFormat.of(pattern)
    usual = format.format(pa.array([0]))[0].as_py()
    for texts in ([text], [usual, text], [None, text]):
        values, bad = format.parse(pa.array(texts, pa.string()))
        assert values[len(texts) - 1].as_py() == wanted
        assert list(bad) == ([len(texts) - 1] if wanted is None else [])


def test_a_sliced_column() -> None:
    texts = pa.array(["2026-11-14", "2026-11-15", None, "2026-11-16"]).slice(1)
    values, bad = JavaDateFormat.of("yyyy-MM-dd").parse(texts)
    assert values.to_pylist() == [1_794_700_800_000, None, 1_794_787_200_000]
    assert not bad


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("yyyy-e", "Illegal pattern character 'e'"),
        ("yyyy 'open", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
    ],
)
def test_patterns_that_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        JavaDateFormat.of(pattern)


@pytest.mark.parametrize("pattern", ["yyyy", "YYYY", "yyyy w", "yyyy D", "yyyy MM F E", "d"])
def test_numbers_at_the_ends_of_the_range_break_nothing(pattern: str) -> None:
    format = JavaDateFormat.of(pattern)
    texts = ["2147483647 2147483647 2147483647 Sun", "-2147483648 -2147483648 -2147483648 Sun"]
    values, bad = format.parse(pa.array(texts))
    assert not bad and not values.null_count
