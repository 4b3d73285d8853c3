"""Open tables of a job whose records name them: the last that were used. For sinks of tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class LastUsed(Generic[_T]):
    """Things by name, made when they are asked for; those that were not asked for longest are let go."""

    def __init__(self, make: Callable[[str], _T], most: int) -> None:
        self._make = make
        self._most = most
        self._held: dict[str, _T] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: str) -> _T:
        with self._lock:
            held = self._held.pop(name, None) or self._make(name)
            self._held[name] = held
            while len(self._held) > self._most:
                del self._held[next(iter(self._held))]
        return held
