"""Runs the queue: gives keys to threads, a few at once, until it is told to stop. The process calls `run`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from icestream.api.errors import IcestreamError
from icestream.operator.keys import Key
from icestream.operator.work_queue import WorkQueue

_LOG = logging.getLogger(__name__)
_LONGEST_NAP: Final = 5.0
"""So that the pulse, which /healthz looks at, goes on while there is nothing to do."""


@dataclass(frozen=True)
class Turn:
    """What a reconciliation that came to its end has to say."""

    again_after: float | None = None
    """Seconds; None: when something changes, or with the next resync."""
    is_ready: bool = True


class DispatchNumbers(Protocol):
    """Told of every turn, for /metrics."""

    def turned(self, key: Key, seconds: float, result: str) -> None: ...


class Dispatcher:
    """All methods but none of the turns run in the event loop."""

    def __init__(
        self,
        queue: WorkQueue[Key],
        reconcile: Callable[[Key], Turn],
        numbers: DispatchNumbers,
        parallel: int = 8,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._numbers = numbers
        self._parallel = parallel
        self._clock = clock
        self._changed = asyncio.Event()
        self._pool = ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="reconcile")
        self._running: set[asyncio.Task[None]] = set()
        self._pulse = clock()

    def add(self, key: Key, *, after: float = 0.0, urgent: bool = True) -> None:
        self._queue.add(key, self._clock(), after=after, urgent=urgent)
        self._changed.set()

    def age(self) -> float:
        """Seconds since the loop last came by; from any thread."""
        return self._clock() - self._pulse

    @property
    def is_idle(self) -> bool:
        return not self._running

    async def run(self, stop: asyncio.Event, patience: float = 20.0) -> None:
        """Until `stop`; turns that are under way then have so many seconds to come to their end."""
        stopping = asyncio.create_task(stop.wait())
        while not stop.is_set():
            self._pulse = self._clock()
            self._start_due()
            await self._nap(stopping)
        stopping.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=patience)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start_due(self) -> None:
        while len(self._running) < self._parallel:
            key = self._queue.take(self._clock())
            if key is None:
                return
            task = asyncio.create_task(self._turn(key))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._changed.set()

    async def _nap(self, stopping: asyncio.Task[bool]) -> None:
        due = None if len(self._running) >= self._parallel else self._queue.next_due(self._clock())
        nap = _LONGEST_NAP if due is None else min(due, _LONGEST_NAP)
        changed = asyncio.create_task(self._changed.wait())
        await asyncio.wait({changed, stopping}, timeout=nap, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        self._changed.clear()

    async def _turn(self, key: Key) -> None:
        began = self._clock()
        try:
            turn = await asyncio.get_running_loop().run_in_executor(self._pool, self._reconcile, key)
        except IcestreamError as error:
            self._failed(key, began, f"{key}: {error}", None)
        except Exception as error:  # the loop's edge: one resource never ends the work for the others
            self._failed(key, began, f"{key}: {type(error).__name__}: {error}", error)
        else:
            self._queue.succeeded(key, self._clock(), again_after=turn.again_after)
            result = "ready" if turn.is_ready else "not_ready"
            self._numbers.turned(key, self._clock() - began, result)

    def _failed(self, key: Key, began: float, message: str, error: Exception | None) -> None:
        delay = self._queue.failed(key, self._clock())
        self._numbers.turned(key, self._clock() - began, "failed")
        _LOG.warning("%s; tried again in %.0f s", message, delay, exc_info=error)
