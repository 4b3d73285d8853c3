"""What any client of REST can cause is told so often and no more."""

from __future__ import annotations

import logging
import threading
from typing import Final

KEPT: Final = "is_kept"
"""A record with this attribute set is never left out as part of a flood."""
MORE: Final = "more"
"""Where a record has what is said of those that were left out."""
AUDIT: Final = "icestream.audit"
_MOST_KINDS: Final = 10_000
_OF_CLIENTS: Final = ("uvicorn", "asyncio", "icestream.rest", AUDIT)


class FloodFilter(logging.Filter):
    """Lets through so many lines of a kind in so many seconds, and says that there were more.

    Only for what any client of REST can cause; a kind is a logger and a text before its arguments.
    """

    def __init__(self, most: int = 20, seconds: float = 10.0) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(_OF_CLIENTS) or getattr(record, KEPT, False):
            return True
        # A handler before this one may have left its own here.
        setattr(record, MORE, "")
        with self._lock:
            count, left_out = self._counted((record.name, str(record.msg)), record.created)
        if left_out:
            setattr(record, MORE, f" ({left_out:,} more lines like this were left out before)")
        elif count == self._most:
            setattr(record, MORE, f" (more like this are left out for {self._seconds:g} seconds)")
        return count <= self._most

    def _counted(self, kind: tuple[str, str], now: float) -> tuple[int, int]:
        """How many there were in this window, and how many of the last one were left out if it is over."""
        since, count = self._windows.get(kind, (now, 0))
        if now - since < self._seconds:
            self._windows[kind] = (since, count + 1)
            return count + 1, 0
        if len(self._windows) >= _MOST_KINDS:
            self._windows.clear()
        self._windows[kind] = (now, 1)
        return 1, max(0, count - self._most)
