"""When the targets of a job are maintained, and what that has cost. For the sink manager.

A target is looked at some time after a commit, by a thread of its own, so that batches go on; or in the job's
own thread between two batches, where a sink's commits and its maintenance would undo each other. One at a
time. What fails is told in the status and tried again later; the job goes on.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from icestream.api.maintenance import Maintainer, MaintenanceRhythm, MaintenanceRun, MaintenanceStep

_log = logging.getLogger(__name__)

_THOROUGH_SECONDS: Final = 24 * 3600.0
"""How often what takes long is done as well."""
_MOST_SHOWN: Final = 20
_LONGEST_TURN: Final = 10.0


class Turn:
    """Lets the commits of a job and of its maintenance wait for each other, but never long: who loses a race
    only commits again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mine = threading.local()

    def __enter__(self) -> None:
        self._mine.is_held = self._lock.acquire(timeout=_LONGEST_TURN)

    def __exit__(self, *error: object) -> None:
        if self._mine.is_held:
            self._lock.release()


@dataclass
class _Target:
    commits: int = 0
    """Since it was last looked at."""
    looked_at: float | None = None
    thorough_at: float | None = None


class MaintenanceSchedule:
    """Of one job. `committed`, `go_on` and `pause` are called by its thread."""

    def __init__(
        self,
        rhythm: MaintenanceRhythm | None,
        maintainer: Callable[[str], Maintainer | None],
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        aside: Callable[[Callable[[], None]], None],
        wake: Callable[[], None] = lambda: None,
        context: Mapping[str, str] | None = None,
        told: Callable[[MaintenanceRun], None] = lambda run: None,
    ) -> None:
        """`told` hears of every run, in its thread."""
        self._told = told
        self._rhythm = rhythm
        self._maintainer = maintainer
        self._clock = clock
        self._wall = wall
        self._aside = aside
        self._wake = wake
        self._context = dict(context or {})
        self.turn = Turn()
        self._lock = threading.Lock()
        self._targets: dict[str, _Target] = {}
        self._is_busy = False
        self._runs: dict[str, Mapping[str, object]] = {}
        self.shown: tuple[Mapping[str, object], ...] = ()
        """The last run of each target that was maintained last, as the status shows it."""

    def committed(self, targets: Iterable[str]) -> None:
        """These targets have had a commit."""
        if self._rhythm is not None:
            with self._lock:
                for name in targets:
                    self._targets.setdefault(name, _Target()).commits += 1

    def go_on(self) -> None:
        """Maintain the target that has waited longest, if one is due and none is at work."""
        if self._rhythm is None:
            return
        now = self._clock()
        with self._lock:
            due = [name for name in self._targets if self._due_in(name, now) <= 0]
            if self._is_busy or not due:
                return
            name = min(due, key=lambda one: self._targets[one].looked_at or 0.0)
            target = self._targets[name]
            is_thorough = target.thorough_at is None or now - target.thorough_at >= _THOROUGH_SECONDS
            target.commits, target.looked_at = 0, now
            if is_thorough:
                target.thorough_at = now
            self._is_busy = True
        if self._rhythm.aside:
            self._aside(lambda: self._run(name, is_thorough=is_thorough))
        else:
            self._run(name, is_thorough=is_thorough)

    def pause(self) -> float:
        """How many seconds may pass before the next `go_on`; whoever is at work wakes the job."""
        with self._lock:
            if self._rhythm is None or self._is_busy:
                return float("inf")
            now = self._clock()
            return max(0.0, min((self._due_in(name, now) for name in self._targets), default=float("inf")))

    def _due_in(self, name: str, now: float) -> float:
        assert self._rhythm is not None
        target = self._targets[name]
        if target.looked_at is None:
            return 0.0
        if target.commits >= self._rhythm.commits:
            return 0.0
        # What is old enough to go grows by the day, also where nothing comes.
        seconds = self._rhythm.seconds if target.commits else max(self._rhythm.seconds, _THOROUGH_SECONDS)
        return target.looked_at + seconds - now

    def _run(self, name: str, *, is_thorough: bool) -> None:
        at = self._wall()
        try:
            done = self._maintained(name, at, is_thorough=is_thorough)
        except Exception as error:  # the edge of its thread; nothing depends on it, and it is tried again
            _log.warning("%s was not maintained: %s", name, error, extra=self._context)
            done = MaintenanceRun(name, at, [MaintenanceStep("start", "", error=str(error))])
        with self._lock:
            if done is not None and done.steps:
                self._runs.pop(name, None)
                self._runs[name] = done.shown()
                self.shown = tuple(self._runs.values())[-_MOST_SHOWN:]
            self._is_busy = False
        if done is not None:
            self._told(done)
        if done is not None and done.did_something:
            _log.info("maintained %s in %.2f s", name, done.seconds, extra=self._context)
        self._wake()

    def _maintained(self, name: str, at: dt.datetime, *, is_thorough: bool) -> MaintenanceRun | None:
        maintainer = self._maintainer(name)
        if maintainer is None:
            return None
        with closing(maintainer):
            return maintainer.run(at, thorough=is_thorough, turn=self.turn)
