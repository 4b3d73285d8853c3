"""Runs a job manager in a thread of the worker: repeats its turns, waits, retries, pauses, stops.

This is the `RunningJob` that the control plane sees.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from icestream.api.errors import Cancelled, Fenced, RetriableError
from icestream.api.status import JobStatus, Progress, State
from icestream.retry import Backoff, Patience

_log = logging.getLogger(__name__)

PATIENCE = Patience(seconds=600.0, longest_wait=15.0)
"""A job whose source or sink stays away for longer fails."""
_STOP_SECONDS = 20.0


class Manager(Protocol):
    @property
    def progress(self) -> Progress: ...

    def tick(self) -> float: ...

    def close(self) -> None: ...


class Bell:
    """Wakes a job that waits; may ring before the job is there to hear it."""

    def __init__(self) -> None:
        self._listener: Callable[[], None] = lambda: None

    def heard_by(self, listener: Callable[[], None]) -> None:
        self._listener = listener

    def ring(self) -> None:
        self._listener()


class JobThread:
    """`make` builds the manager inside the thread: it opens connections, and may fail like any turn.

    After `cancel`, no batch gets further than staging until `allow`.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Manager],
        cancel: Callable[[], None],
        allow: Callable[[], None],
        *,
        paused: bool,
        patience: Patience = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        bell: Bell | None = None,
    ) -> None:
        self._name = name
        self._patience = patience
        self._make = make
        self._cancel = cancel
        self._allow = allow
        self._clock = clock
        self._state = State.PAUSED if paused else State.RUNNING
        self._trace: str | None = None
        self._is_fenced = False
        self._warning: str | None = None
        self._progress = Progress()
        self._told: tuple[tuple[object, ...], JobStatus] | None = None
        self._wake = threading.Condition()
        self._stopping = False
        self._paused = paused
        self._is_woken = False
        if bell is not None:
            bell.heard_by(self._on_bell)
        self._thread = threading.Thread(target=self._run, name=f"job-{name}", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        with self._wake:
            self._paused = True
            if self._state is State.RUNNING:
                self._state = State.PAUSED
        self._interrupt()

    def resume(self) -> None:
        with self._wake:
            self._paused = False
            if self._state is State.PAUSED:
                self._state = State.RUNNING
            self._is_woken = True
            self._wake.notify_all()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
        deadline = self._clock() + _STOP_SECONDS
        while self._thread.is_alive() and self._clock() < deadline:
            # Again and again: a batch that was about to start could not be interrupted.
            self._interrupt()
            self._thread.join(0.5)
        if self._thread.is_alive():
            _log.warning("job did not end within %s s", _STOP_SECONDS, extra={"connector": self._name})

    def status(self) -> JobStatus:
        """The same object until something changes: whoever looks often sees that at a glance."""
        state, trace, progress, warning = self._state, self._trace, self._progress, self._warning
        facts = (state, trace, progress, warning, self._is_fenced)
        told = self._told
        if told is not None and all(new is old for new, old in zip(facts, told[0], strict=True)):
            return told[1]
        warnings = (*progress.warnings, *([warning] if warning else []))
        status = JobStatus(state, trace, replace(progress, warnings=warnings), self._is_fenced)
        self._told = (facts, status)
        return status

    def _interrupt(self) -> None:
        """Give up the batch under way, if any, and wake a job that waits."""
        self._cancel()
        with self._wake:
            self._wake.notify_all()

    def _on_bell(self) -> None:
        with self._wake:
            self._is_woken = True
            self._wake.notify_all()

    def _run(self) -> None:
        manager: Manager | None = None
        backoff = Backoff(patience=self._patience, clock=self._clock)
        try:
            while not self._stopping:
                if not self._may_go_on():
                    self._wait(None)
                    continue
                try:
                    if manager is None:
                        manager = self._make()
                        # That may have taken long, such as the start of Spark.
                        continue
                    pause = manager.tick()
                    self._warning = None
                    backoff.succeeded()
                except Cancelled:
                    continue
                except RetriableError as error:
                    if self._stopping or self._paused:
                        continue
                    delay = backoff.failed()
                    if delay is None:
                        raise
                    self._warning = str(error)
                    _log.warning("trying again in %.1f s: %s", delay, error, extra={"connector": self._name})
                    pause = delay
                if manager is not None:
                    self._progress = manager.progress
                if pause:
                    self._wait(pause)
        except Exception as error:  # the manager loop: the job fails, the worker lives
            with self._wake:
                self._trace = traceback.format_exc()
                self._is_fenced = isinstance(error, Fenced)
                self._state = State.FAILED
            _log.error("job failed: %s", error, extra={"connector": self._name})
        finally:
            if manager is not None:
                self._close(manager)

    def _close(self, manager: Manager) -> None:
        try:
            manager.close()
        except Exception as error:  # the job has ended anyway
            _log.warning("job was not closed in order: %s", error, extra={"connector": self._name})

    def _may_go_on(self) -> bool:
        """Allow batches unless told otherwise; under the lock, so that a later pause cancels them."""
        with self._wake:
            if self._paused or self._stopping:
                return False
            self._allow()
            return True

    def _wait(self, seconds: float | None) -> None:
        with self._wake:
            if self._stopping:
                return
            self._wake.wait_for(lambda: self._is_over(seconds), seconds)
            self._is_woken = False

    def _is_over(self, seconds: float | None) -> bool:
        """Whether a wait ends early."""
        if seconds is None:
            return self._stopping or not self._paused
        return self._stopping or self._is_woken or self._paused
