"""Dead letters as rows, whatever their producers made of them."""

from __future__ import annotations

import pytest

from icestream.api.offsets import Partition
from icestream.cli.dlq import HEAD, cells_of, hint_about
from icestream.jobs.letters.rows import document_of
from icestream.jobs.publishing.dead_letters import DeadLetter


def letter(timestamp_ms: int = 0, value: bytes = b"v") -> DeadLetter:
    return DeadLetter(Partition("dlq", 0), 7, {"topic": "t", "partition": "2"}, b"k", value, [], timestamp_ms)


@pytest.mark.parametrize("timestamp_ms", [-1, 1_700_000_000_000_000, 2**63 - 1])
def test_a_time_that_no_calendar_has_is_none(timestamp_ms: int) -> None:
    found = letter(timestamp_ms)
    assert document_of(found, False)["time"] is None
    assert cells_of(found, False)[[column.title for column in HEAD].index("time")] == "-"


def test_what_is_no_text_is_shown_and_kept() -> None:
    document = document_of(letter(value=b"\xff"), True)
    assert (document["value"], document["value_base64"]) == ("\ufffd", "/w==")
    assert "key_base64" not in document
    assert document["queue"] == {"topic": "dlq", "partition": 0, "offset": 7}


def test_letters_without_context_are_explained() -> None:
    silent = DeadLetter(Partition("dlq", 0), 7, {}, b"k", b"v", [], 0)
    assert hint_about([letter()]) is None
    hint = hint_about([letter(), silent])
    assert hint and hint.startswith("1 of them do not say where they are from, and why")
