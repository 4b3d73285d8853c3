"""When a connector tries again: after an outage, and after a failure if its policy says so. Pure: no clock.

Asked by the reconciler of the connector, after a failure and after each good turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from icestream.api.config import Config
from icestream.api.connector_settings import FRAMEWORK
from icestream.api.restart_settings import RESTARTS
from icestream.retry import Patience

OUTAGE_PATIENCE: Final = Patience(seconds=600.0, longest_wait=15.0)
"""A connector whose source or sink stays away for longer fails."""
_LEAST_WAIT: Final = 0.1
_STEADY_SECONDS: Final = 600.0
"""A job that has run for so long has recovered, even if no record came."""


def outage_patience(config: Config) -> Patience:
    """How long a connector waits for what is away: Kafka, a registry, a catalog, an object store.

    Never shorter than without the keys: Java's clients wait for a broker that restarts whatever
    `errors.retry.timeout` says, whose default of 0 means one attempt.
    """
    errors = FRAMEWORK.parse(config)
    timeout = errors["errors.retry.timeout"] / 1000
    longest = OUTAGE_PATIENCE.longest_wait
    if "errors.retry.delay.max.ms" in config:
        longest = max(errors["errors.retry.delay.max.ms"] / 1000, _LEAST_WAIT)
    return Patience(math.inf if timeout < 0 else max(timeout, OUTAGE_PATIENCE.seconds), longest)


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
            values["icestream.restart.delay.ms"] / 1000,
            values["icestream.restart.delay.max.ms"] / 1000,
        )

    def wait(self, attempt: int) -> float:
        return min(self.longest_delay, self.delay * 2.0 ** min(attempt - 1, 30))


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
