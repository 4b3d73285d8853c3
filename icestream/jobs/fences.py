"""Whether Kafka shut a manager out for the sake of another one, or for its own earlier attempts.

A broker that was away for long aborts the transaction that it finds open, and may take the requests of
publishers that were given up meanwhile after those of the newest: either shuts out a manager that is alone.
Asked by the job manager, which opens a new publisher then, a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

_OUTAGE_REMEMBERED: Final = 300.0
"""Seconds after an outage in which a fence may be a late echo of it."""
_MOST_ECHOES: Final = 3
"""Two managers that are both alive would shut each other out for ever."""


class Fences:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._outage_at: float | None = None
        self._echoes = 0
        self._commits: set[str] = set()

    def had_outage(self) -> None:
        now = self._clock()
        if not self._is_recent(now):
            self._echoes = 0
        self._outage_at = now

    def knows(self, commits: Iterable[str]) -> None:
        """Commits of this manager, or from before it."""
        self._commits.update(commits)

    def may_be_echo(self) -> bool:
        """Whether an outage is so near that it may be the reason."""
        return self._is_recent(self._clock()) and self._echoes < _MOST_ECHOES

    def is_echo(self, commits: Iterable[str]) -> bool:
        """Whether tables and group know of no commit but ours; counts."""
        if not self._commits.issuperset(commits):
            return False
        self._echoes += 1
        return True

    def _is_recent(self, now: float) -> bool:
        return self._outage_at is not None and now - self._outage_at <= _OUTAGE_REMEMBERED
