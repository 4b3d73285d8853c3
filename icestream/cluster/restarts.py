"""When a connector tries again: after an outage, and after a failure if its policy says so. Pure: no clock.

Asked by the reconciler of the connector, after a failure and after each good turn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from icestream.api.config import Config
from icestream.api.connector_settings import FRAMEWORK, RESTARTS

_DOUBLINGS: Final = 64
"""An outage may go on for ever, a float may not."""
_LEAST_WAIT: Final = 0.1
_STEADY_SECONDS: Final = 600.0
"""A job that has run for so long has recovered, even if no record came."""


@dataclass(frozen=True)
class OutageLimits:
    """How long a connector tries again during an outage, and how long it waits at most in between."""

    seconds: float
    longest_wait: float


USUAL_LIMITS: Final = OutageLimits(seconds=600.0, longest_wait=15.0)


def outage_limits(config: Config) -> OutageLimits:
    """How long a connector waits for what is away: Kafka, a registry, a catalog, an object store.

    Never shorter than without the keys: Java's clients wait for a broker that restarts whatever
    `errors.retry.timeout` says, whose default of 0 means one attempt.
    """
    errors = FRAMEWORK.parse(config)
    timeout = errors["errors.retry.timeout"] / 1000
    longest = USUAL_LIMITS.longest_wait
    if "errors.retry.delay.max.ms" in config:
        longest = max(errors["errors.retry.delay.max.ms"] / 1000, _LEAST_WAIT)
    return OutageLimits(math.inf if timeout < 0 else max(timeout, USUAL_LIMITS.seconds), longest)


class Backoff:
    """Delays that double from `first` to the longest; gives up when failures go on for too long."""

    def __init__(
        self,
        *,
        limits: OutageLimits,
        clock: Callable[[], float],
        first: float = 0.2,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._first = first
        self._jitter = jitter
        self._since: float | None = None
        self._failures = 0

    def failed(self) -> float | None:
        """How long to wait before the next attempt; None: enough."""
        now = self._clock()
        if self._since is None:
            self._since = now
        elif now - self._since > self._limits.seconds:
            return None
        delay = min(self._limits.longest_wait, self._first * 2.0 ** min(self._failures, _DOUBLINGS))
        self._failures += 1
        return delay * (1 - self._jitter() / 4)

    def succeeded(self) -> None:
        self._since = None
        self._failures = 0


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
