"""Tables for terminals and for `cut`."""

from __future__ import annotations

import click
import pytest

from icestream.cli.lines import one_line
from icestream.cli.tables import Column, table_lines

NUMBER, WORD = Column("n", is_number=True), Column("word")


def plain(*lines: str) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_numbers_stand_to_the_right_and_nothing_ends_in_blanks() -> None:
    lines = table_lines([NUMBER, WORD], [("1", "a"), ("1,000", "bcdef")])
    assert plain(*lines) == ["    n  word", "    1  a", "1,000  bcdef"]


def test_wide_characters_and_accents_take_their_places() -> None:
    lines = table_lines([WORD, NUMBER], [("日本", "1"), ("e\u0301tat", "2")])
    assert plain(*lines) == ["word  n", "日本  1", "e\u0301tat  2"]


def test_a_width_cuts_lines_off() -> None:
    lines = table_lines([WORD, Column("more")], [("abc", "defghij")], width=8)
    assert plain(*lines) == ["word  mo", "abc   de"]
    assert plain(*table_lines([WORD], [("日本語",)], width=5)) == ["word", "日本"]


def test_values_have_their_colours_and_titles_are_bold() -> None:
    title, good, bad = table_lines([Column("state", styles={"BAD": {"fg": "red"}})], [("GOOD",), ("BAD",)])
    assert title == "\x1b[1mstate\x1b[0m"
    assert (good, bad) == ("GOOD", "\x1b[31mBAD\x1b[0m")


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\n  b\tc", "a b c"), ("\x1b[2Jx", "\\x1b[2Jx"), ("ü 日本", "ü 日本"), (" kept ", " kept "), ("", "")],
)
def test_the_text_of_others_is_one_safe_line(text: str, line: str) -> None:
    assert one_line(text) == line
