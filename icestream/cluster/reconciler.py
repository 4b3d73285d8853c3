"""Brings one connector of this worker from its actual to its desired state. `connectors.py` has one for each.

Callers only write down what they desire. The reconciler's own thread compares that with what there is, and
makes, ticks, pauses, closes and restarts the connector's manager, one step at a time: no caller waits for
a job, and two managers of one connector never work at the same time.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from icestream.api.config import Config
from icestream.api.connector_settings import FRAMEWORK
from icestream.api.errors import Cancelled, Fenced, IcestreamError, RetriableError
from icestream.api.manager import MakeManager, Manager
from icestream.api.status import JobStatus, Progress, State, Waiting
from icestream.cluster.restarts import (
    NEVER,
    NO_RECOVERY,
    Policy,
    Recovery,
    after_failure,
    after_start,
    after_turn,
)
from icestream.cluster.secrets import discreet, secrets_of
from icestream.cluster.stores import TargetState
from icestream.logs import conceal, for_connector
from icestream.retry import Backoff, Patience
from icestream.traces import shown_trace
from icestream.waits import oldest_wait

_LOG = logging.getLogger(__name__)
_OUTAGE: Final = Patience(seconds=600.0, longest_wait=15.0)
"""A connector whose source or sink stays away for longer fails."""
_LEAST_WAIT: Final = 0.1
_STOP_SECONDS: Final = 20.0
"""How long a manager has for its end; after that its thread is left behind."""
_AGAIN_SECONDS: Final = 0.5
_SHOWN_AFTER: Final = 30.0
"""Seconds: what takes longer is shown as what the connector waits for."""
_GIVEN_UP_AFTER: Final = 3600.0
"""Seconds: every call has a shorter limit of its own, so a thread that waits for longer is lost."""


@dataclass(frozen=True)
class DesiredState:
    """What a connector should be on this worker. Another `run` means another manager, whatever the config."""

    run: int
    config: Mapping[str, str]
    """With the placeholders of config providers, which are resolved at every start."""
    target: TargetState
    restarts: Policy = NEVER
    restarts_when_fenced: Policy = NEVER
    refused: IcestreamError | None = None
    """Why this config cannot run at all: the connector fails with this instead of starting."""


@dataclass(frozen=True)
class ActualState:
    """What there is of a connector on this worker."""

    job: DesiredState | None = None
    """The desired state that the thread works on; None: there is no job."""
    has_manager: bool = False
    trace: str | None = None
    """Why the job failed."""
    is_fenced: bool = False
    recovery: Recovery = NO_RECOVERY


NOTHING: Final = ActualState()


class Step(Enum):
    """What the thread does next."""

    BEGIN = auto()
    """Take up the desired state."""
    MAKE = auto()
    TICK = auto()
    CLOSE = auto()
    WAIT = auto()
    END = auto()
    """Nothing is left to do until somebody desires something else."""


def is_unwanted(desired: DesiredState | None, actual: ActualState) -> bool:
    """Whether there is a job that must end."""
    if actual.job is None:
        return False
    return desired is None or desired.target is TargetState.STOPPED or desired.run != actual.job.run


def next_step(
    desired: DesiredState | None, actual: ActualState, now: float, next_turn: float
) -> tuple[Step, float | None]:
    """What to do, and how long to WAIT at most; without a limit, something has to change first."""
    if is_unwanted(desired, actual) or (actual.trace is not None and actual.has_manager):
        return Step.CLOSE, None
    if desired is None or desired.target is TargetState.STOPPED:
        return Step.END, None
    if actual.job is None:
        return Step.BEGIN, None
    due = next_turn
    if actual.trace is not None:
        if actual.recovery.due is None:
            return Step.END, None
        due = actual.recovery.due
    elif desired.target is TargetState.PAUSED:
        return Step.WAIT, None
    if now < due:
        return Step.WAIT, due - now
    return (Step.TICK if actual.has_manager else Step.MAKE), None


def is_settled(desired: DesiredState | None, actual: ActualState) -> bool:
    """Whether the desired state has come about, or failed to."""
    if desired is None or desired.target is TargetState.STOPPED:
        return actual.job is None
    if actual.job is None or actual.job.run != desired.run:
        return False
    return desired.target is TargetState.PAUSED or actual.has_manager or actual.trace is not None


def outage_patience(config: Config) -> Patience:
    """How long a connector waits for what is away: Kafka, a registry, a catalog, an object store.

    Never shorter than without the keys: Java's clients wait for a broker that restarts whatever
    `errors.retry.timeout` says, whose default of 0 means one attempt.
    """
    errors = FRAMEWORK.parse(config)
    timeout = errors["errors.retry.timeout"] / 1000
    longest = _OUTAGE.longest_wait
    if "errors.retry.delay.max.ms" in config:
        longest = max(errors["errors.retry.delay.max.ms"] / 1000, _LEAST_WAIT)
    return Patience(math.inf if timeout < 0 else max(timeout, _OUTAGE.seconds), longest)


class Reconciler:
    """`maker` is asked for what makes managers; None: not yet, and `wake` tells when."""

    def __init__(
        self,
        name: str,
        maker: Callable[[], MakeManager | None],
        resolve: Callable[[Config], dict[str, str]] = dict,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self.name = name
        self._maker = maker
        self._resolve = resolve
        self._clock = clock
        self._wall = wall
        self._log = for_connector(_LOG, name)
        # Guards all that follows; whoever changes something notifies.
        self._changed = threading.Condition()
        self._desired: DesiredState | None = None
        self._actual = NOTHING
        self._thread: threading.Thread | None = None
        self._manager: Manager | None = None
        self._is_busy = False
        """The thread makes, ticks or closes its manager."""
        self._is_interrupting = False
        self._is_woken = False
        self._next_turn = -math.inf
        self._turn_desired: DesiredState | None = None
        """What was desired when the turn under way began."""
        self._backoff = Backoff(patience=_OUTAGE, clock=clock)
        self._secrets: Mapping[str, str] = {}
        self._has_begun = False
        # What the status tells besides.
        self._progress = Progress()
        self._outage: Waiting | None = None
        """What it tries again, since when."""
        self._told: tuple[tuple[object, ...], JobStatus] | None = None

    # For any thread: none of these waits for the job, except `wait`

    def set_desired(self, desired: DesiredState | None) -> None:
        """None: this worker should have nothing of the connector."""
        with self._changed:
            before, self._desired = self._desired, desired
            job = self._actual.job
            if desired is not None and job is not None and desired.run == job.run:
                if desired.target is not TargetState.STOPPED:
                    self._actual = replace(self._actual, job=desired)
                if before is not None and before.target is not desired.target:
                    self._retarget(desired.target)
            self._interrupt_if_unwanted()
            self._go_on()

    def wake(self) -> None:
        """End the pause between two turns."""
        with self._changed:
            self._is_woken = True
            self._go_on()

    def wait(self, timeout: float) -> bool:
        """Whether the desired state came about, or failed to, within the timeout."""
        with self._changed:
            return self._changed.wait_for(self._is_settled, timeout)

    @property
    def desired(self) -> DesiredState | None:
        return self._desired

    @property
    def is_gone(self) -> bool:
        """Whether there is no job, and none is desired."""
        with self._changed:
            return self._desired is None and self._actual.job is None

    def status(self) -> JobStatus:
        """How the connector is; the same object until something changes, which is quick to see."""
        stuck = self._stuck()
        if stuck is not None and self._age(stuck) > _GIVEN_UP_AFTER:
            self._give_up(stuck)
        desired, actual = self._desired, self._actual
        facts = (desired, actual, self._progress, self._outage, stuck, self._has_begun)
        told = self._told
        if told is not None and all(new is old for new, old in zip(facts, told[0], strict=True)):
            return told[1]
        status = self._status(desired, actual, stuck)
        self._told = (facts, status)
        return status

    # The status

    def _status(self, desired: DesiredState | None, actual: ActualState, stuck: Waiting | None) -> JobStatus:
        if desired is None:
            return JobStatus(State.UNASSIGNED)
        job = actual.job
        if job is None:
            if desired.target is TargetState.STOPPED:
                return JobStatus(State.STOPPED)
            return JobStatus(State.RESTARTING if self._has_begun else State.UNASSIGNED)
        outage = self._outage
        note = self._note_of(actual)
        said = [note, *self._progress.warnings, outage.what if outage else "", str(stuck) if stuck else ""]
        warnings = tuple(discreet(one, self._secrets) for one in said if one)
        progress = replace(self._progress, warnings=warnings)
        if job.run != desired.run and desired.target is not TargetState.STOPPED:
            return JobStatus(State.RESTARTING, None, progress)
        if actual.trace is not None:
            trace = f"{note}\n{actual.trace}" if note else actual.trace
            return JobStatus(State.FAILED, trace, progress, actual.is_fenced)
        if job.target is TargetState.PAUSED:
            return JobStatus(State.PAUSED, None, progress)
        waiting = stuck or outage
        if waiting is not None:
            waiting = replace(waiting, what=discreet(waiting.what, self._secrets))
        return JobStatus(State.RUNNING, None, progress, waiting=waiting)

    def _note_of(self, actual: ActualState) -> str:
        recovery = actual.recovery
        if not recovery.attempt:
            return ""
        attempt = f"restart {recovery.attempt} of {recovery.attempts}"
        if actual.trace is None:
            return f"{attempt} is under way"
        if recovery.due is None:
            return f"{attempt} failed too"
        at = self._wall() + dt.timedelta(seconds=recovery.due - self._clock())
        return f"{attempt} at {at.isoformat(timespec='seconds')}"

    def _stuck(self) -> Waiting | None:
        thread = self._thread
        wait = oldest_wait(thread) if thread is not None else None
        return wait if wait is not None and self._age(wait) > _SHOWN_AFTER else None

    def _age(self, wait: Waiting) -> float:
        return (self._wall() - wait.since).total_seconds()

    # Callers' half: under the lock

    def _go_on(self) -> None:
        if self._thread is None:
            self._start_thread()
        self._changed.notify_all()

    def _start_thread(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"connector-{self.name}", daemon=True)
        self._thread.start()

    def _retarget(self, target: TargetState) -> None:
        # Whoever resumes a connector wants it to try, however long the outage was before.
        self._is_woken = True
        self._outage = None
        self._backoff.succeeded()
        if target is not TargetState.STOPPED:
            self._log.info("paused" if target is TargetState.PAUSED else "resumed")

    def _is_settled(self) -> bool:
        if self._is_interrupting:
            return False
        # Whoever waits for a start is not kept waiting for an outage.
        is_trying = self._outage is not None and not is_unwanted(self._desired, self._actual)
        return is_trying or is_settled(self._desired, self._actual)

    def _must_end(self, run: int) -> bool:
        job = self._actual.job
        return job is not None and job.run == run and is_unwanted(self._desired, self._actual)

    def _interrupt_if_unwanted(self) -> None:
        """Cancel a turn under way that nobody wants any more, in a thread of its own: Spark may be slow."""
        job, desired = self._actual.job, self._desired
        if job is None or self._is_interrupting or not (self._is_busy or self._actual.has_manager):
            return
        is_pausing = self._is_busy and desired is not None and desired.target is TargetState.PAUSED
        if is_pausing or self._must_end(job.run):
            self._is_interrupting = True
            threading.Thread(
                target=self._interrupt, args=[job.run], name=f"interrupt-{self.name}", daemon=True
            ).start()

    def _interrupt(self, run: int) -> None:
        """Once for a pause, again and again for an end: a batch that is about to start is not interrupted."""
        deadline = self._clock() + _STOP_SECONDS
        while True:
            manager = self._manager
            if manager is not None and self._is_busy:
                try:
                    manager.cancel()
                except Exception:  # the turn may still end by itself
                    self._log.exception("the turn under way was not cancelled")
            with self._changed:
                is_over = self._changed.wait_for(lambda: not self._must_end(run), _AGAIN_SECONDS)
                if not is_over and self._clock() >= deadline:
                    self._log.warning("did not end within %.0f s", _STOP_SECONDS)
                    self._leave_thread(NOTHING)
                    is_over = True
                if is_over:
                    self._is_interrupting = False
                    self._changed.notify_all()
                    return

    def _give_up(self, stuck: Waiting) -> None:
        with self._changed:
            job = self._actual.job
            if job is None or job.target is TargetState.PAUSED or not self._is_busy:
                return
            self._log.error("given up: still %s", stuck)
            trace = f"given up: still {stuck}; restart the connector when it answers"
            self._leave_thread(self._failed(trace, is_fenced=False))

    def _leave_thread(self, actual: ActualState) -> None:
        """The thread cannot be ended. Another takes its place, here or elsewhere: whatever this one does when
        it wakes is refused by the table and by Kafka."""
        self._actual = replace(actual, has_manager=False)
        self._manager = None
        self._is_busy = False
        self._start_thread()
        self._changed.notify_all()

    # The thread's half

    def _run(self) -> None:
        manager: Manager | None = None
        while (step := self._await_step()) is not Step.END:
            if step is Step.CLOSE:
                self._close(manager)
                manager = None
            else:
                manager = self._turn(manager)
        if manager is not None:
            # This thread was given up while it hung.
            self._close(manager)

    def _await_step(self) -> Step:
        """Wait until there is something to do."""
        with self._changed:
            if self._is_left():
                return Step.END
            self._is_busy = False
            while True:
                next_turn = -math.inf if self._is_woken else self._next_turn
                step, seconds = next_step(self._desired, self._actual, self._clock(), next_turn)
                self._changed.notify_all()
                if step is Step.END:
                    self._thread = None
                    return step
                if step is Step.BEGIN and self._can_begin():
                    self._begin()
                elif step is Step.CLOSE or (step in (Step.MAKE, Step.TICK) and not self._is_interrupting):
                    self._prepare(step)
                    return step
                else:
                    self._changed.wait(seconds)
                    if self._is_left():
                        return Step.END

    def _is_left(self) -> bool:
        """Whether this thread was given up, and another has its place."""
        return self._thread is not threading.current_thread()

    def _can_begin(self) -> bool:
        assert self._desired is not None
        return self._desired.refused is not None or self._maker() is not None

    def _begin(self) -> None:
        self._actual = ActualState(job=self._desired)
        self._has_begun = True
        self._next_turn = -math.inf
        self._outage = None
        self._progress = Progress()

    def _prepare(self, step: Step) -> None:
        self._is_busy = True
        self._turn_desired = self._desired
        if step is Step.CLOSE:
            return
        self._is_woken = False
        if self._actual.trace is not None:
            # The automatic restart of a failed job.
            recovery = after_start(self._actual.recovery, self._clock())
            self._actual = ActualState(self._actual.job, recovery=recovery)
            self._progress = Progress()
        if self._manager is not None:
            # Under the lock, so that whoever pauses or stops it from now on cancels this turn.
            self._manager.allow()

    def _turn(self, manager: Manager | None) -> Manager | None:
        """Make the manager, or let it tick. What goes wrong is the job's failure, never the worker's."""
        pause = 0.0
        try:
            if manager is None:
                manager = self._made()
            else:
                pause = manager.tick()
            self._went_well(manager, pause)
        except Cancelled:
            self._next_turn = -math.inf
        except RetriableError as error:
            self._retry(error, manager)
        except Exception as error:  # the job fails, the worker lives
            self._fail(error, manager)
        return manager

    def _made(self) -> Manager:
        job, make = self._actual.job, self._maker()
        assert job is not None
        if job.refused is not None:
            raise job.refused
        assert make is not None
        resolved = self._resolve(job.config)
        secrets = secrets_of(job.config, resolved)
        conceal(secrets)
        with self._changed:
            if not self._is_left():
                self._secrets = secrets
        patience = outage_patience({**resolved, "name": self.name})
        manager = make(self.name, resolved, self.wake)
        with self._changed:
            if not self._is_left():
                self._backoff = Backoff(patience=patience, clock=self._clock)
                self._manager = manager
                self._actual = replace(self._actual, has_manager=True)
                self._log.info("started")
        return manager

    def _went_well(self, manager: Manager, pause: float) -> None:
        with self._changed:
            if self._is_left():
                return
            self._next_turn = self._clock() + pause if pause else -math.inf
            self._backoff.succeeded()
            self._outage = None
            self._progress = manager.progress
            if self._actual.recovery is not NO_RECOVERY:
                recovery = after_turn(self._actual.recovery, self._progress.batches, self._clock())
                self._actual = replace(self._actual, recovery=recovery)

    def _retry(self, error: RetriableError, manager: Manager | None) -> None:
        """Try again later, unless that has gone on for too long."""
        with self._changed:
            if self._is_left():
                return
            if self._desired is not self._turn_desired:
                # The turn may have failed because it was to end.
                self._next_turn = -math.inf
                return
            delay = self._backoff.failed()
            if delay is not None:
                since = self._outage.since if self._outage else self._wall()
                self._outage = Waiting(str(error), since)
                self._next_turn = self._clock() + delay
                self._progress = manager.progress if manager is not None else self._progress
        if delay is None:
            self._fail(error, manager)
        else:
            self._log.warning("trying again in %.1f s: %s", delay, error)

    def _fail(self, error: Exception, manager: Manager | None) -> None:
        with self._changed:
            if self._is_left():
                return
            # A turn may land rows before it fails.
            self._progress = manager.progress if manager is not None else self._progress
            trace = discreet(shown_trace(error), self._secrets)
            self._actual = self._failed(trace, is_fenced=isinstance(error, Fenced))
            note = self._note_of(self._actual)
        self._log.error("failed: %s%s", discreet(str(error), self._secrets), f"; {note}" if note else "")

    def _failed(self, trace: str, *, is_fenced: bool) -> ActualState:
        job = self._actual.job
        assert job is not None
        self._outage = None
        policy = job.restarts_when_fenced if is_fenced else job.restarts
        recovery = after_failure(policy, self._actual.recovery, self._clock())
        return replace(self._actual, trace=trace, is_fenced=is_fenced, recovery=recovery)

    def _close(self, manager: Manager | None) -> None:
        if manager is not None:
            try:
                manager.close()
            except Exception as error:  # the job has ended anyway
                self._log.warning("was not closed in order: %s", error)
        with self._changed:
            if self._is_left():
                return
            self._manager = None
            if is_unwanted(self._desired, self._actual):
                self._actual = NOTHING
                self._outage = None
                self._log.info("stopped")
            else:
                self._actual = replace(self._actual, has_manager=False)
