"""When a connector tries again, after an outage or a failure."""

from __future__ import annotations

import math

import pytest

from icestream.cluster.restarts import (
    AFTER_A_FENCE,
    NEVER,
    NO_RECOVERY,
    Backoff,
    OutageLimits,
    Policy,
    Recovery,
    after_failure,
    after_start,
    after_turn,
    outage_limits,
)

POLICY = Policy(is_on=True, attempts=3, delay=1.0, longest_delay=3.0)


def test_starts_again_with_longer_and_longer_waits_and_then_no_more() -> None:
    recovery, now, starts = after_failure(POLICY, NO_RECOVERY, 0.0), 0.0, []
    while recovery.due is not None:
        now = recovery.due
        starts.append(now)
        recovery = after_failure(POLICY, after_start(recovery, now), now)
    assert starts == [1.0, 3.0, 6.0]
    assert recovery.attempt == 3


def test_never_is_the_default() -> None:
    assert Policy.of({}).is_on is False
    assert after_failure(NEVER, NO_RECOVERY, 0.0) is NO_RECOVERY


def test_the_policy_is_read_from_the_config() -> None:
    config = {"icestream.restart.policy": "on-failure", "icestream.restart.attempts": "5"}
    assert Policy.of(config) == Policy(True, 5, 1.0, 300.0)
    delays = {"icestream.restart.delay.ms": "2500", "icestream.restart.delay.max.ms": "60000"}
    assert Policy.of({**config, **delays}) == Policy(True, 5, 2.5, 60.0)


def test_success_begins_the_count_anew() -> None:
    tried = Recovery(attempt=2, attempts=3, due=None, since=10.0)
    assert after_turn(tried, 0, 11.0) is tried
    assert after_turn(tried, 1, 11.0) is NO_RECOVERY
    assert after_turn(tried, 0, 700.0) is NO_RECOVERY


def test_connectors_that_fence_each_other_wait_longer_each_time() -> None:
    first = after_failure(AFTER_A_FENCE, NO_RECOVERY, 0.0)
    second = after_failure(AFTER_A_FENCE, after_start(first, 0.5), 0.5)
    assert (first.due, second.due) == (0.5, 1.5)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, OutageLimits(600, 15)),
        ({"errors.retry.timeout": "0"}, OutageLimits(600, 15)),
        ({"errors.retry.timeout": "60000"}, OutageLimits(600, 15)),
        ({"errors.retry.timeout": "3600000", "errors.retry.delay.max.ms": "60000"}, OutageLimits(3600, 60)),
        ({"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "500"}, OutageLimits(math.inf, 0.5)),
    ],
)
def test_retry_keys_lengthen_the_patience_with_outages(keys: dict[str, str], expected: OutageLimits) -> None:
    assert outage_limits({"name": "n", "connector.class": "FileStreamSink", **keys}) == expected


def test_backoff_doubles_up_to_its_limit_and_gives_up_after_its_patience() -> None:
    now = [0.0]
    backoff = Backoff(limits=OutageLimits(100.0, 4.0), clock=lambda: now[0], first=1.0, jitter=lambda: 0.0)
    assert [backoff.failed() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    now[0] = 101.0
    assert backoff.failed() is None
    backoff.succeeded()
    assert backoff.failed() == 1.0


def test_an_outage_may_be_waited_for_without_end() -> None:
    backoff = Backoff(limits=OutageLimits(math.inf, 2.0), clock=lambda: 0.0, jitter=lambda: 0.5)
    delays = [backoff.failed() for _ in range(3_000)]
    assert delays[0] == pytest.approx(0.175)
    assert delays[-1] == pytest.approx(1.75)
