"""Answers that are expensive to get and may be a few seconds old. Used by the service for what the console
asks of tables: however many look, a table is asked once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_MOST_KEPT: Final = 200


@dataclass
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Whoever comes while another asks waits for that answer."""
    at: float | None = None
    answer: Any = None


class RecentAnswers:
    """One per kind of question. Errors are not kept."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot] = {}

    def of(self, name: str, ask: Callable[[], _T]) -> _T:
        with self._lock:
            slot = self._slots.pop(name, None) or _Slot()
            # The last one that was asked for is the last one to go.
            self._slots[name] = slot
            if len(self._slots) > _MOST_KEPT:
                del self._slots[next(iter(self._slots))]
        with slot.lock:
            if slot.at is None or self._clock() - slot.at >= self._seconds:
                slot.answer = ask()
                slot.at = self._clock()
            answer: _T = slot.answer
            return answer
