"""The language of `--where`: what it selects, and what it says to a text that it does not understand."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from icestream.api.errors import PreconditionError
from icestream.cli.where import Kind, parsed

COLUMNS = {
    "topic": Kind.TEXT,
    "offset": Kind.NUMBER,
    "reason": Kind.TEXT,
    "time": Kind.TIME,
    "replayed": Kind.FLAG,
}
ROW: dict[str, Any] = {
    "topic": "orders",
    "offset": 7,
    "reason": "it's 100% (bad).\nReally",
    "time": dt.datetime(2026, 11, 15, 10, 30, tzinfo=dt.UTC),
    "replayed": False,
}
NULLS: dict[str, Any] = {**dict.fromkeys(ROW), "replayed": True}


@pytest.mark.parametrize(
    "text",
    [
        "topic = 'orders'",
        "TOPIC <> 'other' AND Offset >= 7 and offset <= 7 and offset < 8 and offset > -1",
        "offset = 1 or offset = 7",
        "offset = 7 or offset = 1 and topic = 'no'",
        "not (offset = 1 or topic = 'no')",
        "not not offset = 7",
        "topic in ('a', 'orders')",
        "offset not in (1, 2)",
        "reason like '%100%'",
        "reason like 'it''s 100_ (bad).%Really'",
        "reason not like '%100'",
        "topic is not null",
        "time >= '2026-11-15'",
        "time = '2026-11-15 10:30'",
        "time = '2026-11-15T11:30:00+01:00'",
        "not replayed",
        "replayed = false",
    ],
)
def test_what_holds(text: str) -> None:
    assert parsed(text, COLUMNS)(ROW)
    assert not parsed(f"not ({text})", COLUMNS)(ROW)


@pytest.mark.parametrize(
    "text",
    ["topic = 'orders'", "topic != 'orders'", "topic not like 'x'", "offset not in (1)", "offset in (1)"],
)
def test_a_comparison_with_nothing_is_false(text: str) -> None:
    assert not parsed(text, COLUMNS)(NULLS)
    assert parsed("topic is null and replayed", COLUMNS)(NULLS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a column (topic, offset, reason, time, replayed), found the end"),
        ("valeu = 'x'", "expected a column (topic, offset, reason, time, replayed), found valeu"),
        ("topic = orders", "expected a text in single quotes, found orders"),
        ("offset = '7'", "expected a number, found '7'"),
        ("offset = " + "9" * 5000, "expected a number, found 999"),
        ("time > 'noon'", "expected a time in single quotes"),
        ("topic", "expected a comparison (=, !=, <, <=, >, >=, like, in, is null), found the end"),
        ("offset like '7'", "'offset' is a number; 'like' is for texts"),
        ("offset in 7", "expected '(', found 7"),
        ("(offset = 7", "expected ')', found the end"),
        ("offset = 7 offset = 8", "expected 'and' or 'or', found offset"),
        ("topic not 'x'", "expected 'in' or 'like', found 'x'"),
        ("offset = 7; drop", "nothing can begin with '; drop'"),
        ("__import__('os')", "expected a column"),
        ("(" * 5000, "more than 50 levels of parentheses"),
    ],
)
def test_what_is_not_understood(text: str, complaint: str) -> None:
    with pytest.raises(PreconditionError) as refused:
        parsed(text, COLUMNS)
    assert f"--where: {complaint}" in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("%a%b%", "xaxbx", True),
        ("%ab%ab", "abab", True),
        ("%ab%ab", "aab", False),
        ("a%%b", "ab", True),
        ("a_%", "a", False),
        ("%", "", True),
        ("", "x", False),
        ("%a%bc", "abcbc", True),
        ("%.%", "dot", False),
        ("%a" * 30 + "%b", "a" * 10_000, False),
    ],
)
def test_like(pattern: str, text: str, matches: bool) -> None:
    row = {"topic": text}
    assert parsed(f"topic like '{pattern}'", COLUMNS)(row) is matches
