"""Time limits around clients that have none: catalogs, databases, object stores. For requests that people
wait for."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from icestream.waits import waiting_for

_T = TypeVar("_T")


class Overdue(Exception):
    """No answer in time. Whatever was asked may still happen."""


def started(call: Callable[[], _T], name: str) -> Callable[[float], _T]:
    """Run in a thread of its own; the result waits for it, for so many seconds, and raises what it raised."""
    answers: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # handed to whoever waits
            answers.put((None, error))

    # What the call logs is about what its caller works for.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=[run], name=name, daemon=True).start()

    def result(seconds: float) -> _T:
        try:
            value, error = answers.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise Overdue from None
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    return result


def within(
    seconds: float, call: Callable[[], _T], name: str, too_late: Callable[[], None] = lambda: None
) -> _T:
    """The answer of a call, or Overdue; a call that hangs is left behind in its thread.

    `name` says whose answer it is: a job shows it while it waits. `too_late` is called when a call that was
    left behind has ended after all.
    """
    is_over = threading.Lock()
    """Held by the first of two: the call, which has ended, and its caller, who does not wait any longer."""

    def ended() -> None:
        if not is_over.acquire(blocking=False):
            too_late()

    def watched() -> _T:
        try:
            return call()
        finally:
            ended()

    with waiting_for(name):
        try:
            return started(watched, name)(seconds)
        except Overdue:
            ended()
            raise


def while_moving(seconds: float, call: Callable[[], _T], progress: Callable[[], float], name: str) -> _T:
    """As `within`, but the time begins anew whenever `progress` has changed."""
    result = started(call, name)
    with waiting_for(name):
        while True:
            before = progress()
            try:
                return result(seconds)
            except Overdue:
                if progress() == before:
                    raise


def lease(seconds: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], None]:
    """What a call asks before each step that cannot be undone: Overdue, once nobody waits for it any more."""
    until = clock() + seconds

    def still_awaited() -> None:
        if clock() > until:
            raise Overdue

    return still_awaited
