"""How well a connector is: the table."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from icestream.api.status import Progress, State, Waiting
from icestream.cluster.history.health import Health, HealthFacts, freshness_ms, health_of, window_seconds

_NOW = 1_794_737_640_000
_MINUTE = 60_000
_LONG_AGO = dt.datetime(2026, 11, 15, tzinfo=dt.UTC)
_RUNS = Progress(lag=0, interval_ms=10_000, last_commit_ms=_NOW - 5_000, batches=3)


def grows(minutes: int = 5, by: int = 10) -> tuple[tuple[int, float], ...]:
    points = minutes * 6
    return tuple((_NOW - (points - at) * 10_000, 100.0 + by * at) for at in range(points))


def lagging(**more: Any) -> Progress:
    facts = {"lag": 310, "interval_ms": 10_000, "last_commit_ms": _NOW - 2 * _MINUTE}
    return Progress(**{**facts, "oldest_unread_ms": _NOW - 2 * _MINUTE, **more})


@pytest.mark.parametrize(
    ("facts", "health", "reason"),
    [
        (
            {
                "state": State.FAILED,
                "trace": "restart 3 of 10 at 10:16\nTraceback\n  refused the login (401)",
            },
            Health.FAILED,
            "refused the login (401); restart 3 of 10 at 10:16",
        ),
        ({"state": State.FAILED, "trace": "a\n\nb\n"}, Health.FAILED, "b"),
        ({"state": State.FAILED}, Health.FAILED, "it failed"),
        ({"state": State.UNASSIGNED}, Health.UNASSIGNED, "no worker runs it now"),
        ({"state": State.RESTARTING}, Health.WAITING, "it restarts"),
        ({"state": State.PAUSED, "progress": lagging()}, Health.PAUSED, "somebody paused it"),
        ({"state": State.STOPPED}, Health.STOPPED, "somebody stopped it"),
        (
            {
                "waiting": Waiting("the warehouse", dt.datetime(2026, 11, 15, tzinfo=dt.UTC)),
                "rejected_ms": _NOW,
            },
            Health.WAITING,
            "waiting for the warehouse since 2026-11-15T00:00:00+00:00",
        ),
        (
            {"waiting": Waiting("the catalog is away", _LONG_AGO, _NOW, _NOW + 60_000)},
            Health.WAITING,
            "the catalog is away; trying again at 10:14:00Z, gives up at 10:15:00Z",
        ),
        ({"progress": lagging()}, Health.LATE, "310 records wait, and nothing was committed for 2 min"),
        # Records have just come after a quiet night.
        ({"progress": lagging(last_commit_ms=1, oldest_unread_ms=_NOW - 1_000)}, Health.OK, ""),
        # The first batch after a start may take a while.
        ({"progress": lagging(), "since_ms": _NOW - 5_000}, Health.OK, ""),
        ({"progress": lagging(last_commit_ms=None), "since_ms": _NOW - _MINUTE}, Health.LATE, None),
        # Within three intervals, and within 30 s of a very short one.
        ({"progress": lagging(interval_ms=_MINUTE)}, Health.OK, ""),
        (
            {"progress": lagging(interval_ms=1, last_commit_ms=_NOW - 20_000)},
            Health.OK,
            "",
        ),
        # Records that fill no file yet wait for good reason.
        ({"progress": lagging(waits_for="waiting for flush.size")}, Health.OK, "waiting for flush.size"),
        ({"progress": lagging(interval_ms=None)}, Health.OK, ""),
        ({"lags": grows(), "rejected_ms": _NOW}, Health.BEHIND, None),
        ({"lags": grows(minutes=2)}, Health.OK, ""),
        ({"lags": grows(by=0)}, Health.OK, ""),
        ({"lags": grows(by=-3)}, Health.OK, ""),
        ({"rejected_ms": _NOW - 2 * _MINUTE}, Health.REJECTING, "records were rejected 2 min ago"),
        ({"rejected_ms": _NOW - 6 * _MINUTE}, Health.OK, ""),
        ({}, Health.OK, ""),
    ],
)
def test_one_word_and_a_reason(facts: dict[str, Any], health: Health, reason: str | None) -> None:
    found = health_of(HealthFacts(_NOW, **{"state": State.RUNNING, "progress": _RUNS, **facts}))
    assert found.health is health
    assert reason is None or found.reason == reason


def test_the_worst_comes_first() -> None:
    words = "failed unassigned waiting late behind rejecting paused stopped ok"
    assert [one.value for one in Health] == words.split()


@pytest.mark.parametrize(
    ("progress", "fresh"),
    [
        (Progress(lag=0, valid_through_ms=_NOW - 5_000), 0),
        (Progress(lag=3, valid_through_ms=_NOW - 5_000), 5_000),
        (Progress(lag=3, oldest_unread_ms=_NOW - 7_000), 7_000),
        (Progress(lag=3, valid_through_ms=_NOW + 5_000), 0),
        (Progress(lag=3), None),
        (Progress(), None),
    ],
)
def test_what_readers_see_is_fresh_while_nothing_is_unread(progress: Progress, fresh: int | None) -> None:
    assert freshness_ms(progress, _NOW) == fresh


def test_a_lag_that_grows_between_two_commits_is_looked_at_for_longer() -> None:
    assert window_seconds(Progress(interval_ms=10_000)) == 300
    assert window_seconds(Progress(interval_ms=300_000)) == 900
    assert window_seconds(Progress(interval_ms=86_400_000)) == 3_600
    progress = Progress(lag=5, interval_ms=300_000, last_commit_ms=_NOW - _MINUTE)
    found = health_of(HealthFacts(_NOW, State.RUNNING, progress, lags=grows()))
    assert found.health is Health.OK


def test_of_a_job_that_does_not_run_nobody_knows_how_fresh_it_is() -> None:
    for state in State:
        fresh = health_of(HealthFacts(_NOW, state, Progress(lag=0))).freshness_ms
        assert fresh == (0 if state is State.RUNNING else None)
