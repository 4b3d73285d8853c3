"""How long to wait before the next attempt: exponentially longer, with jitter. The only back-off that we
have: the reconcilers of connectors use it, their restarts, the processes of jobs and the Spark session."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LONGEST_WAIT: Final = 30 * 86_400.0
"""Seconds: the clocks of a machine end before the numbers that a config can have."""
_DOUBLINGS: Final = 64
"""An outage may go on for ever, a float may not."""


def exponential(first: float, longest: float, failures: int) -> float:
    """The wait after so many failures in a row: `first` after the first of them, then twice as long each
    time."""
    return min(longest, first * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS))


@dataclass(frozen=True)
class RetryLimits:
    """How patient a connector is."""

    first: float = 0.2
    """Seconds to wait after the first failure."""
    longest: float = 15.0
    seconds: float = 600.0
    """How long something may fail that is no outage of the destination: Kafka, a registry, a login."""
    outage_seconds: float = math.inf
    """How long the destination may be away."""
    most: int | None = None
    """How often in a row it is asked again when it was away; None: for as long as it takes."""


class Backoff:
    """Of one connector. A wait is between half of its exponential length and the whole: jobs that failed
    together do not come back together, and none comes back much sooner than its config says."""

    def __init__(
        self,
        limits: RetryLimits,
        clock: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._chance = chance
        self._since: float | None = None
        self._failures = 0
        self._outages = 0

    @property
    def failures(self) -> int:
        """In a row."""
        return self._failures

    def failed(self, *, is_outage: bool = False) -> float | None:
        """How many seconds to wait before the next attempt; None: enough. `is_outage`: the destination did
        not answer."""
        limits, now = self._limits, self._clock()
        self._failures += 1
        self._outages += is_outage
        if self._since is None:
            self._since = now
        elif now - self._since > (limits.outage_seconds if is_outage else limits.seconds):
            return None
        if is_outage and limits.most is not None and self._outages > limits.most:
            return None
        wait = exponential(limits.first, limits.longest, self._failures)
        return wait * (1 - self._chance() / 2)

    def gives_up_in(self, *, is_outage: bool) -> float | None:
        """How many seconds more are tried; None: for as long as it takes, or as often as was allowed."""
        limit = self._limits.outage_seconds if is_outage else self._limits.seconds
        if self._since is None or math.isinf(limit):
            return None
        return max(0.0, self._since + limit - self._clock())

    def succeeded(self) -> None:
        self._since = None
        self._failures = self._outages = 0
