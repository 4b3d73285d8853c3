"""Which dead letters are of one kind, and filters of them in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from icestream.api.errors import BadFilter
from icestream.api.offsets import Partition
from icestream.jobs.letters.desk import LetterPage
from icestream.jobs.letters.kinds import blanked, kind_of
from icestream.jobs.letters.where import filter_from
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("value 12 of 'amount' does not fit int", "value -3.5 of 'amount' does not fit int"),
        ("Unexpected character at 17", "Unexpected character at 1,234"),
        (f"cannot parse '{'x' * 41}'", f"cannot parse '{'y' * 300}'"),
        ("value '{\"a\": 1}' is no date", "value '[7]' is no date"),
        ("no value at 2026-11-15T10:00:00Z", "no value at 2025-01-01T00:00:00Z"),
        ("field 'amount' is 'x', which does not fit", "field 'amount' is '<b>', which does not fit"),
        ("field 'a' is \"xxxx..., which does not fit", "field 'a' is 7, which does not fit"),
        ("field 'a' is [1, 2], which does not fit", 'field \'a\' is {"x": "y"}, which does not fit'),
        ("first line\nat Foo.java:12", "first line\nat Bar.java:99"),
    ],
)
def test_reasons_that_differ_in_their_values_are_of_one_kind(one: str, other: str) -> None:
    assert blanked(one) == blanked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("value 1 of 'amount' does not fit int", "value 1 of 'price' does not fit int"),
        ("value 1 of 'amount' does not fit int", "value 1 of 'amount' does not fit long"),
    ],
)
def test_reasons_about_other_fields_or_types_are_not(one: str, other: str) -> None:
    assert blanked(one) != blanked(other)


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (
            "the value is not UTF-8: 'utf-8' codec can't decode byte 0xff in position 17: invalid start byte",
            "the value is not UTF-8: 'utf-8' codec can't decode byte … in position …: invalid start byte",
        ),
        ("byte 0 is missing at byte 17", "byte 0 is missing at byte …"),
        ("value 12 does not fit int32, and not Float64", "value … does not fit int32, and not Float64"),
        ("order4711 has 5 of ISO-8859-1", "order… has … of ISO-8859-1"),
        ("it doesn't fit 'amount', and can't be 'total'", "it doesn't fit 'amount', and can't be 'total'"),
    ],
)
def test_words_with_numbers_are_kept(reason: str, kept: str) -> None:
    assert blanked(reason) == kept


def test_a_reason_without_end_is_cut() -> None:
    assert len(blanked("x" * 1_000_000)) == 300
    assert len(blanked("'" * 1_000_001)) <= 300


def letter(offset: int, reason: str, stage: str = "VALUE_CONVERTER", ms: int = 0) -> DeadLetter:
    context = {"topic": "t", "partition": "0", "offset": str(offset), "stage": stage}
    return DeadLetter(Partition("q", 0), offset, {**context, "exception.message": reason}, None, b"", [], ms)


def test_groups_count_what_is_in_them_the_largest_first() -> None:
    letters = [
        (letter(0, "value 1 of 'a' is bad", ms=30), True),
        (letter(1, "no schema", ms=20), False),
        (letter(2, "value 2 of 'a' is bad", ms=10), False),
        (letter(3, "no schema", "TRANSFORMATION", ms=-1), False),
    ]
    groups = LetterPage("q", letters, 4, None, False).groups()
    assert [(one.kind.stage, one.kind.reason, one.count, one.replayed) for one in groups] == [
        ("VALUE_CONVERTER", "value … of 'a' is bad", 2, 1),
        ("VALUE_CONVERTER", "no schema", 1, 0),
        ("TRANSFORMATION", "no schema", 1, 0),
    ]
    assert (groups[0].first_ms, groups[0].last_ms, groups[2].first_ms) == (10, 30, None)
    wanted = DeadLetterFilter(group=groups[0].kind.id)
    assert [one.offset for one, _ in letters if wanted.takes(one)] == [0, 2]


def test_a_letter_without_context_has_a_kind() -> None:
    assert kind_of({}).id == kind_of({}).id


def test_a_filter_in_words_is_the_one_of_the_command_line() -> None:
    text = 'topic=orders partition=2 offset=7 offset=9 stage=TRANSFORMATION reason="does not fit" '
    text += " since=2026-11-15T10:30"
    assert filter_from(text, "abc") == DeadLetterFilter(
        topic="orders",
        partition=2,
        offsets=(7, 9),
        stage="TRANSFORMATION",
        reason="does not fit",
        since=datetime(2026, 11, 15, 10, 30, tzinfo=UTC),
        group="abc",
    )
    assert filter_from("  ") == DeadLetterFilter()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("orders", "'orders' is no part of a filter"),
        ("topic=a topic=b", "'topic' is given twice"),
        ("tpic=a", "a filter knows no 'tpic'"),
        ("partition=x", "'partition=x' is no whole number"),
        ("since=yesterday", "'yesterday' is no time"),
        ("reason=__import__('os')", "is no part of a filter"),
        ('reason="open', "is no part of a filter"),
        ("a=b " * 1_000, "at most 2,000 are taken"),
    ],
)
def test_a_filter_that_is_not_understood_says_which_part(text: str, why: str) -> None:
    with pytest.raises(BadFilter, match=why):
        filter_from(text)
