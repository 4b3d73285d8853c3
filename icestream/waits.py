"""What each thread waits for, and since when. Whoever asks somebody else says so; statuses show it.

A call that never returns cannot tell of itself: another thread has to.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from icestream.api.status import Waiting

_UNDER_WAY: dict[int, list[Waiting]] = {}
"""By thread; the first of each is the one that has lasted longest."""
_SIGNS: dict[int, float] = {}
"""When each thread last began or ended a wait, by the monotonic clock."""


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """`what` completes "waiting for …"."""
    with waiting_as(Waiting(what, dt.datetime.now(dt.UTC))):
        yield


@contextmanager
def waiting_as(wait: Waiting) -> Iterator[None]:
    """The same for a wait that began elsewhere, in the process of a job."""
    thread = threading.get_ident()
    own = _UNDER_WAY.setdefault(thread, [])
    own.append(wait)
    _SIGNS[thread] = time.monotonic()
    try:
        yield
    finally:
        # Not the last one: a generator that waits may end after what began later.
        own.remove(wait)
        _SIGNS[thread] = time.monotonic()
        if not own:
            _UNDER_WAY.pop(thread, None)


def oldest_wait(thread: threading.Thread) -> Waiting | None:
    """What a thread has waited for longest, if it waits."""
    try:
        return _UNDER_WAY[thread.ident or 0][0]
    except (KeyError, IndexError):
        return None


def silent_for(thread: threading.Thread) -> float | None:
    """Seconds since a thread last began or ended a wait; None if it never did."""
    last = _SIGNS.get(thread.ident or 0)
    return None if last is None else time.monotonic() - last
