"""Backing off, with the clock and the randomness passed in. Used by the loops that meet other people's
outages."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_DOUBLINGS = 64
"""An outage may go on for ever, a float may not."""


@dataclass(frozen=True)
class Patience:
    """How long an outage is waited for, and how long at most between two attempts."""

    seconds: float
    longest_wait: float


class Backoff:
    """Delays that double from `first` to the longest; gives up when failures go on for too long."""

    def __init__(
        self,
        *,
        patience: Patience,
        clock: Callable[[], float],
        first: float = 0.2,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._patience = patience
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
        elif now - self._since > self._patience.seconds:
            return None
        delay = min(self._patience.longest_wait, self._first * 2.0 ** min(self._failures, _DOUBLINGS))
        self._failures += 1
        return delay * (1 - self._jitter() / 4)

    def succeeded(self) -> None:
        self._since = None
        self._failures = 0
