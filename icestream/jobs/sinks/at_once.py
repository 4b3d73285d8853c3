"""Several calls at the same time; each that began is finished. For the commits of a batch to its targets."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from icestream.waits import waiting_for

_T = TypeVar("_T")


def all_finished(calls: Sequence[Callable[[], _T]], threads: int, waits_for: str) -> list[_T]:
    """What the calls return, in their order.

    After the first error none begins any more. It is raised when those under way are over, so whoever handles
    it finds nothing half done.
    """
    if min(threads, len(calls)) <= 1:
        return [call() for call in calls]
    waiting = deque(enumerate(calls))
    answers: dict[int, _T] = {}
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            try:
                number, call = waiting.popleft()
            except IndexError:
                return
            try:
                answers[number] = call()
            except BaseException as error:  # raised by whoever waits
                errors.append(error)

    workers = [
        threading.Thread(target=contextvars.copy_context().run, args=[work], name=waits_for, daemon=True)
        for _ in range(min(threads, len(calls)))
    ]
    with waiting_for(waits_for):
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(calls))]
