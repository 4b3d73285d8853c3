"""When a connector that failed starts again."""

from __future__ import annotations

from icestream.cluster.restarts import (
    AFTER_A_FENCE,
    NEVER,
    NO_RECOVERY,
    Policy,
    Recovery,
    after_failure,
    after_start,
    after_turn,
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
