"""The circuit breaker of a destination: a bucket, a catalog, a database. All connectors of a worker that
share a destination share its breaker, so that one of them asks whether it is back, and not all.

closed     everybody may go on; failures in a row are counted
open       nobody may, until a time that everybody can see
half-open  one of them tries, the others wait for what becomes of it

The reconciler of a connector asks for a permit before each turn and says what became of it.
"""

from __future__ import annotations

import datetime as dt
import logging
import random
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

_LOG = logging.getLogger(__name__)
_GRACE: Final = 1.0
"""Seconds by which whoever tried last, and failed, lets others try first: its trouble may be its own."""
_LOOK_AGAIN: Final = 1.0
"""How often those who wait for somebody's attempt look whether it has ended, in seconds at most."""


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True)
class CircuitLimits:
    failures: int = 5
    """So many in a row open it; 0: the connector neither opens it nor is held by it."""
    open_seconds: float = 15.0


@dataclass(frozen=True)
class CircuitView:
    """A breaker at one moment, as statuses and metrics show it; replaced as a whole."""

    destination: str
    state: CircuitState = CircuitState.CLOSED
    failures: int = 0
    """In a row."""
    since: dt.datetime | None = None
    """When it was closed last, while it is not."""
    until: dt.datetime | None = None
    """When the next attempt may come."""
    reason: str = ""
    """What the last failure said."""
    opened: int = 0
    """How often it has opened."""

    def __str__(self) -> str:
        said = f"Circuit breaker of {self.destination} is {self.state}"
        if self.state is CircuitState.CLOSED:
            return said
        when = f" until {_second(self.until)}" if self.state is CircuitState.OPEN else ": an attempt is made"
        return f"{said}{when}, since {_second(self.since)}, after {self.failures} failures: {self.reason}"

    def plain(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "destination": self.destination,
            "state": self.state.value,
            "failures": self.failures,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "reason": self.reason,
            "opened": self.opened,
        }


def _second(moment: dt.datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else "?"


class Permit:
    """To ask the destination, for one turn of one connector. Whoever has it says once what became of it; what
    is said after that, or by somebody who was given up meanwhile, has no effect on attempts of others."""

    def __init__(self, breaker: CircuitBreaker, who: str, limits: CircuitLimits) -> None:
        self._breaker = breaker
        self.who = who
        self.limits = limits

    def succeeded(self) -> None:
        """The destination has answered."""
        self._breaker._succeeded(self)

    def failed(self, reason: str) -> None:
        """It has not."""
        self._breaker._failed(self, reason)

    def release(self) -> None:
        """It was not asked, or nobody knows."""
        self._breaker._release(self)


class CircuitBreaker:
    """Of one destination. Called from the threads of all its connectors; never waits."""

    def __init__(
        self,
        destination: str,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._chance = chance
        self._lock = threading.Lock()
        self._view = CircuitView(destination)
        self._until = 0.0
        self._probe: Permit | None = None
        self._last_failed: str | None = None
        """Who failed to close it last."""
        self._failed_by: set[str] = set()
        self._suspects: set[str] = set()
        """Connectors that failed where another one did well: their trouble is their own, until they succeed,
        and opens nothing for the others."""

    @property
    def view(self) -> CircuitView:
        """The same object until something changes."""
        return self._view

    def admit(self, who: str, limits: CircuitLimits) -> Permit | float:
        """A permit, or in how many seconds to ask again."""
        with self._lock:
            if self._view.state is CircuitState.CLOSED or limits.failures == 0:
                return Permit(self, who, limits)
            if self._probe is not None:
                return _LOOK_AGAIN * (0.5 + self._chance() / 2)
            now = self._clock()
            wait = self._until - now + (_GRACE if who == self._last_failed else 0.0)
            if wait > 0:
                # Those who wait until the same moment come one after the other.
                return wait + self._chance() * _GRACE / 2
            self._probe = Permit(self, who, limits)
            self._change(state=CircuitState.HALF_OPEN, until=None)
            _LOG.info("%s", self._view, extra={"connector": who})
            return self._probe

    def try_now(self) -> None:
        """Somebody wants an attempt without waiting for its time."""
        with self._lock:
            self._until = self._clock()
            self._last_failed = None

    # What permits say

    def _succeeded(self, permit: Permit) -> None:
        with self._lock:
            self._suspects.discard(permit.who)
            before = self._view
            if before.state is not CircuitState.CLOSED and permit is not self._probe:
                # Asked before it opened; the attempt that comes will tell.
                return
            self._probe = None
            if before.state is CircuitState.CLOSED and not self._failed_by:
                return
            self._suspects |= self._failed_by - {permit.who}
            self._failed_by = set()
            self._last_failed = None
            self._change(state=CircuitState.CLOSED, failures=0, since=None, until=None, reason="")
        if before.state is not CircuitState.CLOSED:
            lasted = (self._wall() - before.since).total_seconds() if before.since else 0.0
            _LOG.info("%s again, after %.0f s", self._view, lasted, extra={"connector": permit.who})

    def _failed(self, permit: Permit, reason: str) -> None:
        with self._lock:
            was_probe = permit is self._probe
            if was_probe:
                self._probe = None
            elif (
                self._view.state is not CircuitState.CLOSED
                or permit.who in self._suspects
                or permit.limits.failures == 0
            ):
                return
            self._failed_by.add(permit.who)
            failures = self._view.failures + 1
            limits = permit.limits
            if not was_probe and failures < limits.failures:
                self._change(failures=failures, reason=reason)
                return
            self._last_failed = permit.who if was_probe else None
            self._until = self._clock() + limits.open_seconds
            now = self._wall()
            self._change(
                state=CircuitState.OPEN,
                failures=failures,
                reason=reason,
                since=self._view.since or now,
                until=now + dt.timedelta(seconds=limits.open_seconds),
                opened=self._view.opened + (not was_probe),
            )
            _LOG.warning("%s", self._view, extra={"connector": permit.who})

    def _release(self, permit: Permit) -> None:
        with self._lock:
            if permit is self._probe:
                # The next one may try at once.
                self._probe = None
                self._change(state=CircuitState.OPEN, until=self._wall())

    def _change(self, **what: object) -> None:
        self._view = replace(self._view, **what)  # type: ignore[arg-type]


class Circuits:
    """The breakers of a worker, by destination; one that no connector has is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._breakers: weakref.WeakValueDictionary[str, CircuitBreaker] = weakref.WeakValueDictionary()

    def of(self, destination: str) -> CircuitBreaker:
        with self._lock:
            breaker = self._breakers.get(destination)
            if breaker is None:
                breaker = self._breakers[destination] = CircuitBreaker(destination, self._clock)
            return breaker

    def views(self) -> list[CircuitView]:
        """For metrics."""
        with self._lock:
            return [breaker.view for breaker in self._breakers.values()]
