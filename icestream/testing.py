"""Public test kit: managers that only pretend, for tests of everything above the data plane."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from icestream.api.errors import RetriableError
from icestream.api.manager import Manager
from icestream.api.status import Progress

_PATIENCE = 60.0
_IDLE = 3600.0


@dataclass
class FakeManager:
    """A manager that does nothing until a test says so. `close_takes` seconds make one that ends slowly."""

    name: str
    config: Mapping[str, str]
    wake: Callable[[], None] = lambda: None
    close_takes: float = 0.0
    progress: Progress = field(default_factory=Progress)
    is_closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ticks: int = 0
    _failure: Exception | None = None

    def tick(self) -> float:
        with self._changed:
            self._ticks += 1
            self._changed.notify_all()
            if self._failure is not None:
                raise self._failure
        return _IDLE

    def close(self) -> None:
        time.sleep(self.close_takes)
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """There is never anything to give up."""

    def allow(self) -> None:
        """There is never anything to give up."""

    def fail(self, message: str, error: type[Exception] = ValueError) -> None:
        """From now on the job is FAILED, because of this. Returns when that shows."""
        with self._changed:
            self._failure = error(message)
        self.wake()
        self._wait_for(lambda: self.is_closed)

    def be_away(self, message: str) -> None:
        """From now on every turn finds that something does not answer."""
        with self._changed:
            self._failure = RetriableError(message)
        self.wake()

    def be_back(self) -> None:
        with self._changed:
            self._failure = None
        self.wake()

    def advance(self, progress: Progress) -> None:
        """From now on the job is this far. Returns when that shows, unless the job is paused or has ended."""
        self.progress = progress
        # The first of two turns has been told of when the second begins.
        for _ in range(2):
            ticks = self._ticks
            self.wake()
            self._wait_for(lambda: self._ticks > ticks or self.is_closed)  # noqa: B023

    def _wait_for(self, holds: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(holds, _PATIENCE)


@dataclass
class FakeManagers:
    """A `MakeManager` that keeps every manager it made; `broken` makes the start of a connector fail."""

    made: list[FakeManager] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)
    close_takes: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
        if name in self.broken:
            raise self.broken[name]
        manager = FakeManager(name, config, wake, self.close_takes)
        with self._lock:
            self.made.append(manager)
        return manager

    def latest(self, name: str) -> FakeManager:
        """The manager that was made last for a connector."""
        return next(manager for manager in reversed(self.made) if manager.name == name)

    def alive(self, name: str) -> list[FakeManager]:
        """Managers of a connector that were not closed; more than one is a bug."""
        return [manager for manager in self.made if manager.name == name and not manager.is_closed]
