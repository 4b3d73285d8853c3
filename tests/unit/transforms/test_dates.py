"""java.text.SimpleDateFormat on columns: what it writes, and what it reads, leniently."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icestream.transforms.dates import DateFormat

MOMENT = 1_794_738_030_123
"""2026-11-15T10:20:30.123Z, a Sunday."""


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2026-11-15T10:20:30.123Z"),
        ("yy.M.d", "26.11.15"),
        ("yyyyy", "02026"),
        ("EEE, d MMM yyyy HH:mm:ss z", "Sun, 15 Nov 2026 10:20:30 UTC"),
        ("EEEE MMMM", "Sunday November"),
        ("h a", "10 AM"),
        ("Z X XXX zzzz", "+0000 Z Z Coordinated Universal Time"),
        ("S SSSSS", "123 00123"),
        ("'o''clock' ''yyyy''", "o'clock '2026'"),
        ("", ""),
    ],
)
def test_formatting(pattern: str, wanted: str) -> None:
    texts = DateFormat.of(pattern).format(pa.array([MOMENT, None], pa.int64()))
    assert texts.to_pylist() == [wanted, None]


def test_moments_far_apart_are_formatted_without_a_table_of_all_between() -> None:
    texts = DateFormat.of("yyyy HH:mm:ss.SSS").format(pa.array([0, 10**16]))
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
        ("yyMMdd", "261115", 1_794_700_800_000),
        ("d/M/yy", "15/11/26", 1_794_700_800_000),
        ("d/M/yy", "15/11/2026", 1_794_700_800_000),
        ("HH:mm z", "12:00 CET", 39_600_000),
        ("HH:mm z", "12:00 GMT+1:00", 39_600_000),
        ("HH:mm", "25:61", 93_660_000),
        ("SSS", "123456", 123_456),
        ("SSS", "9" * 5_000, None),
        ("yyyy-MM-dd", "2026-11--5", None),
        ("yyyy-MM-dd", "٢٠٢٦-11-15", None),
    ],
)
def test_parsing(pattern: str, text: str, wanted: int | None) -> None:
    """The same alone, beside a text that is written in the usual width, and beside a null."""
    format = DateFormat.of(pattern)
    usual = format.format(pa.array([0]))[0].as_py()
    for texts in ([text], [usual, text], [None, text]):
        values, bad = format.parse(pa.array(texts, pa.string()))
        assert values[len(texts) - 1].as_py() == wanted
        assert list(bad) == ([len(texts) - 1] if wanted is None else [])


def test_a_sliced_column() -> None:
    texts = pa.array(["2026-11-14", "2026-11-15", None, "2026-11-16"]).slice(1)
    values, bad = DateFormat.of("yyyy-MM-dd").parse(texts)
    assert values.to_pylist() == [1_794_700_800_000, None, 1_794_787_200_000]
    assert not bad


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("yyyy-e", "Illegal pattern character 'e'"),
        ("yyyy 'open", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
        ("YYYY-MM-dd", "The letter 'Y' of SimpleDateFormat is not supported; write y for the year"),
        ("yyyyDDD", "The letter 'D' of SimpleDateFormat is not supported; only y, M, d, H, h"),
    ],
)
def test_patterns_that_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        DateFormat.of(pattern)


def test_large_numbers_break_nothing() -> None:
    for pattern in ("yyyy", "d", "SSSSSS"):
        values, bad = DateFormat.of(pattern).parse(pa.array(["999999999"]))
        assert not bad and not values.null_count
