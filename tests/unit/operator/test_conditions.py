"""Conditions of a status: what changes, and when a time does."""

from __future__ import annotations

from datetime import UTC, datetime

from icestream.operator.conditions import merged, not_ready, ready, warning

EARLIER = datetime(2026, 11, 15, 10, tzinfo=UTC)
LATER = datetime(2026, 11, 15, 11, tzinfo=UTC)


def test_the_time_of_a_condition_that_was_there_stays() -> None:
    before = merged([], [ready()], EARLIER)
    assert merged(before, [ready()], LATER) == before


def test_a_new_message_alone_is_no_transition() -> None:
    before = merged([], [not_ready("A", "one")], EARLIER)
    after = merged(before, [not_ready("B", "two")], LATER)
    assert after[0]["message"] == "two"
    assert after[0]["lastTransitionTime"] == before[0]["lastTransitionTime"]


def test_ready_takes_the_place_of_not_ready_at_a_new_time() -> None:
    before = merged([], [not_ready("A", "one")], EARLIER)
    after = merged(before, [ready()], LATER)
    assert [one["type"] for one in after] == ["Ready"]
    assert after[0]["lastTransitionTime"] == "2026-11-15T11:00:00.000000Z"


def test_warnings_are_told_apart_by_what_they_say_and_none_is_there_twice() -> None:
    wanted = [ready(), warning("A", "one"), warning("A", "two"), warning("A", "one")]
    assert [one.get("message") for one in merged([], wanted, EARLIER)] == [None, "one", "two"]
