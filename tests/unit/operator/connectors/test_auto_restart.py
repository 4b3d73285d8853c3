"""When failed connectors are restarted by themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from icestream.operator.connectors.auto_restart import decide, from_status, in_status, interval
from icestream.operator.connectors.facts import AutoRestart, AutoRestartPolicy

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
FOR_EVER = AutoRestartPolicy()


def test_pauses_grow_up_to_an_hour() -> None:
    minutes = [interval(count).total_seconds() / 60 for count in (*range(9), 10**30)]
    assert minutes == [0, 2, 6, 12, 20, 30, 42, 56, 60, 60]


def test_the_first_restart_is_made_at_once() -> None:
    decision = decide(FOR_EVER, None, True, NOW)
    assert decision.is_due
    assert decision.next == AutoRestart(1, NOW)


def test_a_restart_waits_for_its_time() -> None:
    last = AutoRestart(2, NOW)
    early = decide(FOR_EVER, last, True, NOW + timedelta(minutes=5))
    assert (early.is_due, early.next, early.wait) == (False, last, timedelta(minutes=1))
    due = decide(FOR_EVER, last, True, NOW + timedelta(minutes=6))
    assert due.is_due
    assert due.next == AutoRestart(3, NOW + timedelta(minutes=6))


def test_no_more_restarts_than_allowed() -> None:
    last = AutoRestart(2, NOW)
    decision = decide(AutoRestartPolicy(2), last, True, NOW + timedelta(days=1))
    assert (decision.is_due, decision.next) == (False, last)
    assert not decide(AutoRestartPolicy(0), None, True, NOW).is_due


def test_the_count_starts_anew_after_a_quiet_time() -> None:
    last = AutoRestart(1, NOW)
    assert decide(FOR_EVER, last, False, NOW + timedelta(minutes=1)).next == last
    assert decide(FOR_EVER, last, False, NOW + timedelta(minutes=2)).next is None


def test_without_a_policy_nothing_is_restarted_or_told() -> None:
    decision = decide(None, AutoRestart(1, NOW), True, NOW + timedelta(days=1))
    assert (decision.is_due, decision.next, decision.wait) == (False, None, None)


def test_a_time_to_come_keeps_no_connector_down() -> None:
    assert decide(FOR_EVER, AutoRestart(1, NOW + timedelta(days=900)), True, NOW).is_due


def test_a_status_is_read_as_it_was_written() -> None:
    made = AutoRestart(3, NOW)
    assert from_status({"autoRestart": in_status(made)}) == made
    known = {"count": 3, "lastRestartTimestamp": "2026-11-18T12:00:00.000000000Z"}
    assert from_status({"autoRestart": known}) == made


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"count": 1},
        {"count": "1", "lastRestartTimestamp": "2026-11-18T12:00:00Z"},
        {"count": 0, "lastRestartTimestamp": "2026-11-18T12:00:00Z"},
        {"count": 1, "lastRestartTimestamp": "yesterday"},
        {"count": 1, "lastRestartTimestamp": "0001-01-01T00:00:00+23:00"},
    ],
)
def test_a_status_that_somebody_else_wrote_is_no_obstacle(told: Any) -> None:
    assert from_status({"autoRestart": told}) is None
