"""Which key is worked on next: the order, the back-off and the locks, without time or threads of its own.

The dispatcher takes keys from it and tells how each went. Time is whatever clock the caller counts by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 300.0

K = TypeVar("K", bound=Hashable)


def back_off(failures: int) -> float:
    """How long a key rests after so many failures in a row: 1 s, twice as long each time, at most 5 min."""
    return min(FIRST_DELAY * 2.0 ** min(max(failures - 1, 0), 32), LONGEST_DELAY)


@dataclass
class _Entry:
    due: float
    failures: int = 0
    waits_for_back_off: bool = False


@dataclass
class WorkQueue(Generic[K]):
    """Each key is in it at most once, and is never given out twice at once, nor together with another key of
    its lock. A key that is added while it is worked on comes again after that."""

    lock_of: Callable[[K], Hashable]
    """The cluster that a key belongs to: a cluster and its connectors are worked on one at a time."""
    group_of: Callable[[K], Hashable] = lambda key: None
    """Whose a key is: the namespace. Turns may hang on what a tenant has written into a resource, such as an
    address where nobody answers; the other tenants' turns go on."""
    most_of_group: int | None = None
    """How many keys of a group are worked on at once; None: any number."""
    _waiting: dict[K, _Entry] = field(default_factory=dict)
    _running: dict[K, Hashable] = field(default_factory=dict)
    _failures: dict[K, int] = field(default_factory=dict)
    _again: dict[K, float] = field(default_factory=dict)

    def add(self, key: K, now: float, *, after: float = 0.0, urgent: bool = True) -> None:
        """Work on the key, `after` so many seconds. An earlier appointment stays.

        What has changed since a failure is urgent, and ends its back-off; a resync is not.
        """
        due = now + after
        if key in self._running:
            self._again[key] = min(due, self._again.get(key, due))
            return
        entry = self._waiting.get(key)
        if entry is None:
            self._waiting[key] = _Entry(due)
        elif urgent or not entry.waits_for_back_off:
            entry.due = min(entry.due, due)

    def take(self, now: float) -> K | None:
        """The key that has waited longest of those that are due and whose lock is free."""
        is_free = self._free()
        due = [
            (entry.due, index, key)
            for index, (key, entry) in enumerate(self._waiting.items())
            if entry.due <= now and is_free(key)
        ]
        if not due:
            return None
        key = min(due, key=lambda each: each[:2])[2]
        del self._waiting[key]
        # The lock as it was when the work began: a connector may be moved to another cluster meanwhile.
        self._running[key] = self.lock_of(key)
        return key

    def _free(self) -> Callable[[K], bool]:
        """Whether a key may be taken, as things are now."""
        locked = set(self._running.values())
        counts = Counter(map(self.group_of, self._running))
        full = {group for group, count in counts.items() if count == self.most_of_group}
        return lambda key: self.group_of(key) not in full and self.lock_of(key) not in locked

    def succeeded(self, key: K, now: float, *, again_after: float | None = None) -> None:
        """The turn is over; `again_after`: it asks for another one."""
        self._failures.pop(key, None)
        self._end(key, now, None if again_after is None else _Entry(now + again_after))

    def failed(self, key: K, now: float) -> float:
        """The turn is over and is repeated after the back-off, which it returns."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = back_off(failures)
        self._end(key, now, _Entry(now + delay, failures, waits_for_back_off=True))
        return delay

    def _end(self, key: K, now: float, entry: _Entry | None) -> None:
        del self._running[key]
        asked = self._again.pop(key, None)
        if entry is not None:
            self._waiting[key] = entry
        if asked is None:
            return
        if entry is not None and entry.waits_for_back_off:
            # Its own writes wake a failing key: one that is woken at once by each failure would never rest.
            entry.due = min(entry.due, max(asked, now + FIRST_DELAY * min(entry.failures, 10)))
            return
        self.add(key, now, after=max(asked - now, 0.0))

    def next_due(self, now: float) -> float | None:
        """In how many seconds something may be taken, as far as is known; None: nothing waits."""
        is_free = self._free()
        waits = [entry.due - now for key, entry in self._waiting.items() if is_free(key)]
        return max(min(waits), 0.0) if waits else None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)
