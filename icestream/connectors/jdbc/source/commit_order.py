"""Waits until no open transaction can add rows to what is about to be read.

Numbers are taken, and timestamps chosen, before a transaction commits: one that began earlier may commit a
lower number later. A source that reads up to the greatest number that it sees then never sees that row. So
the end of a window is noted first; then those transactions are noted that are open; and the window is read
once they have ended: what begins after that gets greater numbers and later timestamps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from icestream.connectors.jdbc.source.databases.base import OpenTransactions

Ask = Callable[[], OpenTransactions | None]
_UNKNOWN: Final = frozenset({"transactions that this account may not see"})


@dataclass
class TransactionAges:
    """Since when transactions are known to be open; shared by the windows of a task."""

    since: dict[str, float] = field(default_factory=dict)

    def note(self, names: frozenset[str], now: float) -> None:
        self.since = {name: self.since.get(name, now) for name in names}


@dataclass
class CommitWait:
    """Of one window: made when its end is known, and asked until it is over."""

    waited_for: frozenset[str]
    begun: float
    limit: float
    """Seconds that are waited for transactions of which nobody knows whether they will write."""

    @classmethod
    def begin(cls, ask: Ask, ages: TransactionAges, limit: float, now: float) -> CommitWait:
        found = ask()
        if found is None:
            return cls(_UNKNOWN if limit else frozenset(), now, limit)
        ages.note(found.all, now)
        return cls(frozenset(_holding(found.all, found, ages, limit, now)), now, limit)

    def left(self, ask: Ask, ages: TransactionAges, now: float) -> frozenset[str]:
        """Those that are still waited for; none: the window may be read."""
        if not self.waited_for:
            return self.waited_for
        if self.waited_for is _UNKNOWN:
            return _UNKNOWN if now - self.begun < self.limit else frozenset()
        found = ask()
        if found is None:
            # They were seen when the window began; that nobody tells of them now does not end them.
            return self.waited_for
        ages.note(found.all, now)
        self.waited_for = frozenset(_holding(self.waited_for & found.all, found, ages, self.limit, now))
        return self.waited_for


def _holding(
    names: frozenset[str], found: OpenTransactions, ages: TransactionAges, limit: float, now: float
) -> list[str]:
    return [name for name in names if name in found.writing or now - ages.since[name] < limit]
