"""Starts and stops the jobs of this process. Called by the service only."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from icestream.api.status import JobStarter, JobStatus, State
from icestream.cluster.job_slot import JobSlot, Wish
from icestream.cluster.stores import TargetState


@runtime_checkable
class Closeable(Protocol):
    """A starter that holds something for all its jobs, such as a Spark session."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Patience:
    """How long a caller waits for the effect of a call, in seconds; it comes later if this is not enough."""

    start: float = 0.9
    stop: float = 5.0


class Worker:
    """Jobs by connector. Connectors wait, UNASSIGNED, until `use` brings the starter."""

    def __init__(
        self, worker_id: str, patience: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.id = worker_id
        self._patience = patience or Patience()
        self._clock = clock
        self._lock = threading.Lock()
        self._slots: dict[str, JobSlot] = {}
        self._runs = itertools.count(1)
        self._starter: JobStarter | None = None
        self._is_closed = False

    def use(self, starter: JobStarter) -> None:
        """From here on, jobs start."""
        self._starter = starter
        with self._lock:
            slots = list(self._slots.values())
        for slot in slots:
            slot.wake()

    def new_run(self) -> int:
        return next(self._runs)

    def ask(self, name: str, wish: Wish | None) -> Callable[[], bool]:
        """Hand the wish to the connector's slot; the returned function waits for its effect."""
        with self._lock:
            if self._is_closed:
                # What the store or the group still says must not start a job that nobody would stop.
                wish = None
            self._forget_ended()
            slot = self._slots.get(name)
            if slot is None:
                slot = self._slots[name] = JobSlot(name, lambda: self._starter)
            slot.ask(wish)
        is_ending = wish is None or wish.target is TargetState.STOPPED
        timeout = self._patience.stop if is_ending else self._patience.start
        return lambda: self._wait(slot, timeout)

    def has(self, name: str) -> bool:
        """Whether there is, or should be, a job of this connector."""
        return name in self._slots

    def running(self) -> frozenset[str]:
        """Connectors whose jobs have not ended."""
        with self._lock:
            return frozenset(name for name, slot in self._slots.items() if slot.is_busy)

    def status(self, name: str) -> JobStatus:
        slot = self._slots.get(name)
        return slot.status() if slot else JobStatus(State.UNASSIGNED)

    def close(self) -> None:
        """Stop all jobs, at the same time, and wait for them as long as a stop may take."""
        with self._lock:
            self._is_closed = True
            slots = list(self._slots.values())
            for slot in slots:
                slot.ask(None)
        deadline = self._clock() + self._patience.stop
        for slot in slots:
            self._wait(slot, max(0.0, deadline - self._clock()))
        if isinstance(self._starter, Closeable):
            self._starter.close()

    def _forget_ended(self) -> None:
        """Nobody waits for the end of a job that a rebalance or another worker's request ended."""
        for name in [name for name, slot in self._slots.items() if slot.end()]:
            del self._slots[name]

    def _wait(self, slot: JobSlot, timeout: float) -> bool:
        is_settled = slot.wait(timeout)
        with self._lock:
            if is_settled and self._slots.get(slot.name) is slot and slot.end():
                del self._slots[slot.name]
        return is_settled
