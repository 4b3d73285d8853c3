"""What counts as alive and as ready, by the facts alone."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from icestream.api.status import Outage
from icestream.cluster.liveness import LifeLimits, LiveFacts, ReadyFacts, life_limits, live, ready

NOW = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
LIMITS = LifeLimits()
WELL = LiveFacts(loop_age=0.5, group_age=0.2, jobs=3, stuck_jobs=0, outage=None, now=NOW)
READY = ReadyFacts(has_configs=True, has_engine=True, has_share=True, is_in_touch=True, connectors=3)


def away(seconds: float, *, is_ours: bool) -> Outage:
    return Outage("Spark", NOW - dt.timedelta(seconds=seconds), "spark://secret-host:7077 refuses", is_ours)


def test_a_worker_that_moves_is_alive() -> None:
    checked = live(WELL, LIMITS)
    assert checked.is_well
    assert checked.message == "The process can do its work."
    assert [check.name for check in checked.checks] == ["event loop", "jobs", "group", "spark"]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(WELL, loop_age=31.0), "The event loop of REST has shown no sign of life for 31 s"),
        (replace(WELL, group_age=601.0), "The thread that follows the group has shown no sign of life"),
        (replace(WELL, stuck_jobs=2), "The threads of 2 of 3 connector(s) are lost"),
        (replace(WELL, outage=away(301, is_ours=True)), "cannot be opened again, for more than 300 s"),
    ],
)
def test_what_a_new_process_would_cure_is_a_reason_to_be_killed(facts: LiveFacts, reason: str) -> None:
    checked = live(facts, LIMITS)
    assert not checked.is_well
    assert reason in checked.message


@pytest.mark.parametrize("outage", [away(299, is_ours=True), away(10**6, is_ours=False)])
def test_a_spark_that_may_come_back_or_is_not_ours_is_not(outage: Outage) -> None:
    assert live(replace(WELL, outage=outage), LIMITS).is_well


@pytest.mark.parametrize("seconds", [10, 1000])
def test_probes_hear_nothing_of_what_others_said(seconds: float) -> None:
    checked = live(replace(WELL, outage=away(seconds, is_ours=True)), LIMITS)
    assert "secret-host" not in " ".join(check.message for check in checked.checks)


def test_a_worker_without_a_group_has_no_such_check() -> None:
    assert [check.name for check in live(replace(WELL, group_age=None), LIMITS).checks] == [
        "event loop",
        "jobs",
        "spark",
    ]


def test_a_worker_with_its_share_is_ready() -> None:
    assert ready(READY).is_well
    assert "3 connector(s)" in ready(READY).checks[-1].message


@pytest.mark.parametrize("missing", ["has_configs", "has_engine", "has_share", "is_in_touch"])
def test_whatever_is_missing_is_told(missing: str) -> None:
    checked = ready(replace(READY, **{missing: False}))
    assert not checked.is_well
    assert checked.message in [check.message for check in checked.checks if not check.is_well]


def test_limits_are_the_workers() -> None:
    assert life_limits({}) == LifeLimits()
    given = {"icestream.live.spark.timeout.ms": "3000", "icestream.live.job.timeout.ms": "60000"}
    assert life_limits(given) == LifeLimits(spark=3.0, job=60.0)
