"""When a connector that failed starts again, if its policy says so. Pure: no clock.

Asked by the reconciler of the connector, after a failure and after each good turn. What it does during an
outage, which is no failure, is in `retry_settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from icestream.api.connector_settings import RESTARTS
from icestream.resilience.backoff import LONGEST_WAIT, exponential

_STEADY_SECONDS: Final = 600.0
"""A job that has run for so long has recovered, even if no record came."""


@dataclass(frozen=True)
class Policy:
    """`icestream.restart.policy=on-failure` and its keys."""

    is_on: bool
    attempts: int
    delay: float
    longest_delay: float

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Policy:
        values = RESTARTS.parse(config)
        return cls(
            values["icestream.restart.policy"] == "on-failure",
            values["icestream.restart.attempts"],
            min(values["icestream.restart.delay.ms"] / 1000, LONGEST_WAIT),
            min(values["icestream.restart.delay.max.ms"] / 1000, LONGEST_WAIT),
        )

    def wait(self, attempt: int) -> float:
        return exponential(self.delay, self.longest_delay, attempt)


NEVER: Final = Policy(is_on=False, attempts=0, delay=0.0, longest_delay=0.0)
AFTER_A_FENCE: Final = Policy(is_on=True, attempts=1_000, delay=0.5, longest_delay=30.0)
"""For a connector that a group shares: a former owner opened its job late, and the group says whose it is."""


@dataclass(frozen=True)
class Recovery:
    """Where a failed connector is on its way back; attempt 0: it has not failed, or has recovered."""

    attempt: int = 0
    attempts: int = 0
    """How many there may be."""
    due: float | None = None
    """When the next start comes; None: it is under way, or none comes."""
    since: float = 0.0
    """When the last start was."""


NO_RECOVERY: Final = Recovery()


def after_failure(policy: Policy, recovery: Recovery, now: float) -> Recovery:
    """When to start again, if at all. A job that keeps failing waits longer each time."""
    if not policy.is_on:
        return NO_RECOVERY
    if recovery.attempt >= policy.attempts:
        return replace(recovery, due=None)
    attempt = recovery.attempt + 1
    return Recovery(attempt, policy.attempts, now + policy.wait(attempt), recovery.since)


def after_start(recovery: Recovery, now: float) -> Recovery:
    return replace(recovery, due=None, since=now)


def after_turn(recovery: Recovery, batches: int, now: float) -> Recovery:
    """A job that has had a batch since its start, or runs for long, has recovered."""
    if recovery is NO_RECOVERY:
        return recovery
    has_recovered = batches > 0 or now - recovery.since > _STEADY_SECONDS
    return NO_RECOVERY if has_recovered else recovery
