"""Runs a job manager in a thread of the worker: repeats its turns, waits, retries, pauses, stops.

This is the `RunningJob` that the control plane sees.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from icestream.api.errors import Cancelled, Fenced, RetriableError
from icestream.api.status import JobStatus, Progress, State, Waiting
from icestream.retry import Backoff, Patience
from icestream.traces import shown_trace
from icestream.waits import oldest_wait

_log = logging.getLogger(__name__)

PATIENCE = Patience(seconds=600.0, longest_wait=15.0)
"""A job whose source or sink stays away for longer fails."""
_STOP_SECONDS = 20.0
_SHOWN_AFTER = 30.0
"""Seconds: what takes longer is shown as what the job waits for."""
_GIVEN_UP_AFTER = 3600.0
"""Seconds: every call has a shorter limit of its own, so a thread that waits for longer is lost."""


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
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._name = name
        self._patience = patience
        self._make = make
        self._cancel = cancel
        self._allow = allow
        self._clock = clock
        self._wall = wall
        self._state = State.PAUSED if paused else State.RUNNING
        self._trace: str | None = None
        self._is_fenced = False
        self._is_given_up = False
        self._trouble: Waiting | None = None
        """What it tries again, since when; replaced as a whole."""
        self._progress = Progress()
        self._told: tuple[tuple[object, ...], JobStatus] | None = None
        self._wake = threading.Condition()
        self._stopping = False
        self._paused = paused
        self._is_woken = False
        if bell is not None:
            bell.heard_by(self._on_bell)
        self._pauses = 0
        self._thread = threading.Thread(target=self._run, name=f"job-{name}", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        with self._wake:
            self._paused = True
            self._pauses += 1
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
        # One that was given up has had its time.
        deadline = self._clock() + (0.0 if self._is_given_up else _STOP_SECONDS)
        while self._thread.is_alive() and self._clock() < deadline:
            # Again and again: a batch that was about to start could not be interrupted.
            self._interrupt()
            self._thread.join(0.5)
        if self._thread.is_alive():
            _log.warning("job did not end within %s s", _STOP_SECONDS, extra={"connector": self._name})

    def status(self) -> JobStatus:
        """The same object until something changes: whoever looks often sees that at a glance."""
        stuck = self._stuck()
        if stuck is not None and self._age(stuck) > _GIVEN_UP_AFTER and self._state is State.RUNNING:
            self._give_up(stuck)
        state, trace, progress, trouble = self._state, self._trace, self._progress, self._trouble
        facts = (state, trace, progress, trouble, stuck, self._is_fenced)
        told = self._told
        if told is not None and all(new is old for new, old in zip(facts, told[0], strict=True)):
            return told[1]
        said = (*progress.warnings, *([trouble.what] if trouble else []), *([str(stuck)] if stuck else []))
        waiting = stuck or trouble if state is State.RUNNING else None
        status = JobStatus(state, trace, replace(progress, warnings=said), self._is_fenced, waiting)
        self._told = (facts, status)
        return status

    def _stuck(self) -> Waiting | None:
        wait = oldest_wait(self._thread)
        return wait if wait is not None and self._age(wait) > _SHOWN_AFTER else None

    def _age(self, wait: Waiting) -> float:
        return (self._wall() - wait.since).total_seconds()

    def _give_up(self, stuck: Waiting) -> None:
        """The thread cannot be ended. The job has failed, and may start again, here or elsewhere: whatever
        the thread does when it wakes is refused by the table and by Kafka."""
        with self._wake:
            self._stopping = self._is_given_up = True
            self._state = State.FAILED
            self._trace = f"given up: still {stuck}; restart the connector when it answers"
        _log.error("job given up: still %s", stuck, extra={"connector": self._name})

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
        pauses = 0
        try:
            while not self._stopping:
                if not self._may_go_on():
                    self._wait(None)
                    continue
                if pauses != self._pauses:
                    # Whoever resumes a job wants it to try, however long the outage was before.
                    pauses = self._pauses
                    backoff.succeeded()
                    self._trouble = None
                try:
                    if manager is None:
                        manager = self._make()
                        # That may have taken long, such as the start of Spark.
                        continue
                    pause = manager.tick()
                    self._trouble = None
                    backoff.succeeded()
                except Cancelled:
                    continue
                except RetriableError as error:
                    if self._stopping or self._paused or pauses != self._pauses:
                        continue
                    delay = backoff.failed()
                    if delay is None:
                        raise
                    since = self._trouble.since if self._trouble else self._wall()
                    self._trouble = Waiting(str(error), since)
                    _log.warning("trying again in %.1f s: %s", delay, error, extra={"connector": self._name})
                    pause = delay
                if manager is not None:
                    self._progress = manager.progress
                if pause:
                    self._wait(pause)
        except Exception as error:  # the manager loop: the job fails, the worker lives
            with self._wake:
                # A turn may land rows before it fails.
                self._progress = manager.progress if manager is not None else self._progress
                self._trouble = None
                self._trace = shown_trace(error)
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
