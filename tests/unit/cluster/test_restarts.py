"""Failed connectors that start again by themselves."""

from __future__ import annotations

from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.restarts import NO_RECOVERY, Policy, Recovery, next_step

POLICY = Policy(is_on=True, attempts=3, delay=1.0, longest_delay=3.0)
FAILED = JobStatus(State.FAILED, "boom")
RUNNING = JobStatus(State.RUNNING)


def starts(until: float, job: JobStatus = FAILED) -> list[float]:
    """The moments at which a job that always fails is started."""
    recovery, now, moments = NO_RECOVERY, 0.0, []
    while now < until:
        recovery, is_due = next_step(POLICY, recovery, job, now)
        if is_due:
            moments.append(now)
        now += 0.25
    return moments


def test_starts_again_with_longer_and_longer_waits_and_then_no_more() -> None:
    assert starts(100) == [1.0, 3.25, 6.5]


def test_never_is_the_default() -> None:
    policy = Policy.of({})
    assert next_step(policy, NO_RECOVERY, FAILED, 0.0) == (NO_RECOVERY, False)


def test_the_policy_is_read_from_the_config() -> None:
    config = {"icestream.restart.policy": "on-failure", "icestream.restart.attempts": "5"}
    assert Policy.of(config) == Policy(True, 5, 1.0, 300.0)


def test_success_begins_the_count_anew() -> None:
    tried = Recovery(attempt=2, due=None, since=10.0)
    assert next_step(POLICY, tried, RUNNING, 11.0) == (tried, False)
    worked = JobStatus(State.RUNNING, progress=Progress(batches=1))
    assert next_step(POLICY, tried, worked, 11.0) == (NO_RECOVERY, False)
    assert next_step(POLICY, tried, RUNNING, 700.0) == (NO_RECOVERY, False)
