"""Backing off, with the clock and the randomness passed in. Used by the loops that meet other people's
outages."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Delays that double from `first` to `most`; gives up when failures go on for `patience` seconds."""

    def __init__(
        self,
        *,
        patience: float,
        clock: Callable[[], float],
        first: float = 0.2,
        most: float = 15.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._first = first
        self._most = most
        self._jitter = jitter
        self._since: float | None = None
        self._failures = 0

    def failed(self) -> float | None:
        """How long to wait before the next attempt; None: enough."""
        now = self._clock()
        if self._since is None:
            self._since = now
        elif now - self._since > self._patience:
            return None
        delay = min(self._most, self._first * 2.0**self._failures)
        self._failures += 1
        return delay * (1 + self._jitter() / 4)

    def succeeded(self) -> None:
        self._since = None
        self._failures = 0
