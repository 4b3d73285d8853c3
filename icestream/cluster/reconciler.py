"""Brings one connector of this worker from its actual to its desired state. The connector registry
has one for each.

Callers only write down what they desire. The reconciler's own thread compares that with what there is, and
makes, ticks, pauses, closes and restarts the connector's manager, one step at a time: no caller waits for a
job, and two managers of one connector never work at the same time.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from icestream.api.config import Config
from icestream.api.errors import (
    Cancelled,
    EngineUnavailable,
    Fenced,
    RetriableError,
    is_destination_outage,
)
from icestream.api.history import Event, NobodyLooks, Observer
from icestream.api.manager import MakeManager, Manager
from icestream.api.status import JobStatus, Progress, Waiting
from icestream.cluster.configs.secrets import discreet, secrets_of
from icestream.cluster.desired_state import (
    ActualState,
    DesiredState,
    Step,
    is_settled,
    is_unwanted,
    next_step,
    status_of,
)
from icestream.cluster.restarts import NO_RECOVERY, after_failure, after_start, after_turn
from icestream.cluster.settings.retry_settings import RetrySettings, retry_settings
from icestream.cluster.stores.connector_store import TargetState
from icestream.logs import about, conceal, for_connector
from icestream.resilience.backoff import Backoff
from icestream.resilience.breaker import CircuitBreaker, Circuits, Permit
from icestream.traces import shown_trace
from icestream.waits import oldest_wait, silent_for

_LOG = logging.getLogger(__name__)
_STOP_SECONDS: Final = 20.0
"""How long a manager has for its end; after that its thread is left behind."""
_AGAIN_SECONDS: Final = 0.5
_SHOWN_AFTER: Final = 30.0
"""Seconds: what takes longer is shown as what the connector waits for."""
_GIVEN_UP_AFTER: Final = 3600.0
"""Seconds: every call has a shorter limit of its own, so a thread that waits for longer is lost."""
_AT_ONCE: Final = -math.inf
_MOST_TOLD: Final = 1_000
"""Characters of an event."""


class _Held(Exception):
    """The circuit breaker of the destination lets no turn through for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Reconciler:
    """Of one connector. `maker` returns the function that makes managers, or None while the worker is still
    starting; `wake` says that it may be asked again. `circuits` are those of the worker."""

    def __init__(
        self,
        name: str,
        maker: Callable[[], MakeManager | None],
        resolve: Callable[[Config], dict[str, str]] = dict,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        circuits: Circuits | None = None,
        retries: Callable[[Config], RetrySettings] = lambda config: retry_settings(config, {}),
        observer: Observer | None = None,
    ) -> None:
        self._observer = observer or NobodyLooks()
        self.name = name
        self._maker = maker
        self._resolve = resolve
        self._clock = clock
        self._wall = wall
        self._log = for_connector(_LOG, name)
        # Guards all that follows; whoever changes something notifies.
        self._changed = threading.Condition()
        self._desired: DesiredState | None = None
        self._actual = ActualState()
        self._thread: threading.Thread | None = None
        self._manager: Manager | None = None
        self._is_busy = False
        """The thread makes, ticks or closes its manager."""
        self._is_interrupting = False
        self._is_woken = False
        self._next_turn = _AT_ONCE
        self._seen_by = math.inf
        """When the thread should have moved on from where it is: the end of its pause, or the beginning of
        its turn."""
        self._turn_desired: DesiredState | None = None
        """What was desired when the turn under way began."""
        self._circuits = circuits or Circuits(clock)
        self._retries = retries
        self._settings = RetrySettings()
        self._backoff = Backoff(self._settings.limits, clock)
        self._circuit: CircuitBreaker | None = None
        """None: the config has not been resolved yet."""
        self._permit: Permit | None = None
        """Of the turn under way."""
        self._must_answer = True
        """The next good turn has asked the destination: it is the first one, or follows a failure."""
        self._secrets: Mapping[str, str] = {}
        self._last_status: tuple[tuple[object, ...], JobStatus] | None = None
        """What `status` said, and the facts that it was made from."""

    # For any thread. None of these waits for the job, except `wait`.

    def set_desired(self, desired: DesiredState | None) -> None:
        """None: this worker should have nothing of the connector."""
        with self._changed:
            before, self._desired = self._desired, desired
            job = self._actual.job
            if desired is not None and job is not None and desired.run == job.run:
                if desired.target is not TargetState.STOPPED:
                    self._change(job=desired)
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

        def is_done() -> bool:
            return not self._is_interrupting and is_settled(self._desired, self._actual)

        with self._changed:
            return self._changed.wait_for(is_done, timeout)

    @property
    def desired(self) -> DesiredState | None:
        return self._desired

    @property
    def is_gone(self) -> bool:
        """Whether there is no job, and none is desired."""
        with self._changed:
            return self._desired is None and self._actual.job is None

    def lost_for(self) -> float:
        """Seconds since the thread should have moved on, 0 if it does: it was lost to a call that never
        returns, or has ended. Takes no lock: another that hangs may hold it."""
        thread, seen_by = self._thread, self._seen_by
        if thread is None or thread.ident is None:
            return 0.0
        if not thread.is_alive():
            return math.inf
        silence = silent_for(thread) if self._is_busy else None
        late = self._clock() - seen_by
        return max(0.0, late if silence is None else min(late, silence))

    def status(self) -> JobStatus:
        """How the connector is; the same object until something changes, which is quick to see."""
        stuck = self._stuck()
        if stuck is not None and self._age(stuck) > _GIVEN_UP_AFTER:
            self._give_up(stuck)
        circuit = self._circuit
        facts = (self._desired, self._actual, stuck, circuit.view if circuit else None)
        last = self._last_status
        if last is not None and all(new is old for new, old in zip(facts, last[0], strict=True)):
            return last[1]
        status = status_of(*facts, self._secrets)
        self._last_status = (facts, status)
        return status

    # How callers change things: all under the lock

    def _change(self, **what: Any) -> None:
        self._actual = replace(self._actual, **what)

    def _retarget(self, target: TargetState) -> None:
        # Whoever resumes a connector wants it to try, however long the outage was before.
        self._is_woken = True
        self._backoff.succeeded()
        if self._circuit is not None:
            self._circuit.try_now()
        self._change(outage=None)
        if target is not TargetState.STOPPED:
            self._log.info("paused" if target is TargetState.PAUSED else "resumed")

    def _go_on(self) -> None:
        if self._thread is None:
            self._start_thread()
        self._changed.notify_all()

    def _start_thread(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"connector-{self.name}", daemon=True)
        self._thread.start()

    def _must_end(self, run: int) -> bool:
        job = self._actual.job
        return job is not None and job.run == run and is_unwanted(self._desired, self._actual)

    def _interrupt_if_unwanted(self) -> None:
        """Cancel a turn that nobody wants any more, in a thread of its own: Spark may take seconds for it."""
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
        is_over = False
        while not is_over:
            manager = self._manager
            if manager is not None and self._is_busy:
                try:
                    manager.cancel()
                except Exception:  # the turn may still end by itself
                    self._log.exception("the turn under way was not cancelled")
            with self._changed:
                is_over = self._changed.wait_for(lambda: not self._must_end(run), _AGAIN_SECONDS)
                if not is_over and self._clock() >= deadline:
                    wait = oldest_wait(self._thread) if self._thread is not None else None
                    self._log.warning(
                        "did not end within %.0f s and is left behind%s; what it does later is refused",
                        _STOP_SECONDS,
                        f", still {wait}" if wait else "",
                    )
                    self._leave_thread(ActualState(has_run=True))
                    is_over = True
                # With the lock held since the last look: whoever wants an end later interrupts anew.
                self._is_interrupting = not is_over
                self._changed.notify_all()

    # What is told

    def _tell(self, kind: str, text: str, about: str = "", **numbers: float) -> None:
        """Returns at once: the lock is held by some who tell."""
        at_ms = int(self._wall().timestamp() * 1000)
        text = discreet(text, self._secrets)[:_MOST_TOLD]
        try:
            self._observer.event(self.name, Event(at_ms, kind, text, about=about, numbers=numbers))
        except Exception:  # an observer's edge
            self._log.exception("nobody was told of an event")

    def _tell_retry(self, error: RetriableError, delay: float, *, is_outage: bool) -> None:
        ends = self._backoff.gives_up_in(is_outage=is_outage)
        until = ""
        if ends is not None:
            at = self._wall() + dt.timedelta(seconds=ends)
            until = f", gives up at {at.isoformat(timespec='seconds')}"
        who = "spark" if isinstance(error, EngineUnavailable) else "destination" if is_outage else "kafka"
        self._tell(
            "retry",
            f"trying again in {delay:.1f} s{until}: {error}",
            about=who,
            attempt=self._backoff.failures,
            seconds=delay,
        )

    # Threads that hang

    def _stuck(self) -> Waiting | None:
        thread = self._thread
        wait = oldest_wait(thread) if thread is not None else None
        return wait if wait is not None and self._age(wait) > _SHOWN_AFTER else None

    def _age(self, wait: Waiting) -> float:
        return (self._wall() - wait.since).total_seconds()

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
        if self._permit is not None:
            self._permit.release()
        self._is_busy = False
        self._start_thread()
        self._changed.notify_all()

    def _is_left(self) -> bool:
        """Whether the thread that asks was given up, and another has its place."""
        return self._thread is not threading.current_thread()

    # The thread

    def _run(self) -> None:
        with about(self.name):
            self._steps()

    def _steps(self) -> None:
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
            if not self._is_left():
                self._is_busy = False
            while not self._is_left():
                next_turn = _AT_ONCE if self._is_woken else self._next_turn
                step, seconds = next_step(self._desired, self._actual, self._clock(), next_turn)
                self._changed.notify_all()
                if step is Step.END:
                    self._thread = None
                elif step is Step.BEGIN and self._can_begin():
                    self._begin()
                elif step is Step.CLOSE or (step in (Step.MAKE, Step.TICK) and not self._is_interrupting):
                    self._prepare(step)
                    return step
                else:
                    self._seen_by = math.inf if seconds is None else self._clock() + seconds
                    self._changed.wait(seconds)
            return Step.END

    def _can_begin(self) -> bool:
        assert self._desired is not None
        return self._desired.refused is not None or self._maker() is not None

    def _begin(self) -> None:
        self._actual = ActualState(job=self._desired, has_run=True)
        self._next_turn = _AT_ONCE
        self._backoff.succeeded()

    def _prepare(self, step: Step) -> None:
        self._is_busy = True
        self._seen_by = self._clock()
        self._turn_desired = self._desired
        if step is Step.CLOSE:
            return
        self._is_woken = False
        if self._actual.trace is not None:
            # The automatic restart of a failed job.
            recovery = after_start(self._actual.recovery, self._clock())
            note = f"restart {recovery.attempt} of {recovery.attempts} is under way"
            self._tell("restart", note, attempt=recovery.attempt, attempts=recovery.attempts)
            self._actual = ActualState(self._actual.job, recovery=recovery, note=note, has_run=True)
            self._backoff.succeeded()
        if self._manager is not None:
            # Under the lock, so that whoever pauses or stops it from now on cancels this turn.
            self._manager.allow()

    def _turn(self, manager: Manager | None) -> Manager | None:
        """Make the manager, or let it tick. What goes wrong is the job's failure, never the worker's."""
        pause, permit = 0.0, None
        try:
            if manager is None:
                resolved = self._resolved()
                permit = self._admitted()
                manager = self._made(resolved)
            else:
                permit = self._admitted()
                pause = manager.tick()
                self._answered(manager, permit)
            self._went_well(manager, pause)
        except _Held as held:
            self._hold(held.seconds, manager)
        except Cancelled:
            self._next_turn = _AT_ONCE
        except RetriableError as error:
            self._retry(error, manager, permit)
        except (Exception, SystemExit) as error:  # the job fails, the worker and this thread live
            self._fail(error, manager)
        finally:
            if permit is not None:
                permit.release()
        return manager

    def _resolved(self) -> dict[str, str]:
        """The config with its secrets; what it says of outages holds from now on."""
        job = self._actual.job
        assert job is not None
        if job.refused is not None:
            raise job.refused
        resolved = self._resolve(job.config)
        secrets = secrets_of(job.config, resolved)
        conceal(secrets)
        settings = self._retries({**resolved, "name": self.name})
        circuit = self._circuits.of(discreet(settings.destination, secrets) or f"connector '{self.name}'")
        with self._changed:
            if not self._is_left():
                self._secrets = secrets
                if settings != self._settings:
                    self._settings = settings
                    self._backoff = Backoff(settings.limits, self._clock)
                self._circuit = circuit
                self._must_answer = True
        return resolved

    def _made(self, resolved: dict[str, str]) -> Manager:
        make = self._maker()
        assert make is not None
        manager = make(self.name, resolved, self.wake)
        with self._changed:
            if not self._is_left():
                self._manager = manager
                self._change(has_manager=True)
                self._log.info("started")
                self._tell("state", "RUNNING: its job has started")
        return manager

    # What the circuit breaker says, and is told

    def _admitted(self) -> Permit:
        circuit = self._circuit
        assert circuit is not None
        answer = circuit.admit(self.name, self._settings.circuit)
        if not isinstance(answer, Permit):
            raise _Held(answer)
        with self._changed:
            if not self._is_left():
                self._permit = answer
        return answer

    def _hold(self, seconds: float, manager: Manager | None) -> None:
        """The job keeps its place: its manager is not asked for anything."""
        with self._changed:
            if self._is_left():
                return
            circuit, before = self._circuit, self._actual.outage
            assert circuit is not None
            if before is None:
                self._log.warning("waits: %s", circuit.view)
                self._tell("circuit", str(circuit.view), about=circuit.view.state.value)
            said = Waiting(str(circuit.view), before.since if before else self._wall())
            if said != before:
                self._change(outage=said, progress=self._progress_of(manager))
            self._next_turn = self._clock() + seconds

    def _with_circuit(self, say: Callable[[], None]) -> None:
        """Tell the circuit breaker how it went, and everybody if that changes its state."""
        circuit = self._circuit
        before = circuit.view.state if circuit else None
        say()
        if circuit is not None and circuit.view.state is not before:
            self._tell("circuit", str(circuit.view), about=circuit.view.state.value)

    def _answered(self, manager: Manager, permit: Permit) -> None:
        """A turn that has committed has asked the destination; so has the first one after a start or a
        failure, which looks where to go on. Others may only have looked for records."""
        if self._must_answer or manager.progress.batches != self._actual.progress.batches:
            self._must_answer = False
            self._with_circuit(permit.succeeded)

    def _went_well(self, manager: Manager, pause: float) -> None:
        with self._changed:
            if self._is_left():
                return
            self._next_turn = self._clock() + pause if pause else _AT_ONCE
            self._backoff.succeeded()
            before, progress = self._actual, manager.progress
            recovery = after_turn(before.recovery, progress.batches, self._clock())
            if (before.progress, before.outage, before.recovery) != (progress, None, recovery):
                note = before.note if recovery is not NO_RECOVERY else ""
                self._change(progress=progress, outage=None, recovery=recovery, note=note)

    def _retry(self, error: RetriableError, manager: Manager | None, permit: Permit | None) -> None:
        """Try again later, unless that has gone on for too long."""
        is_outage = is_destination_outage(error)
        with self._changed:
            if self._is_left():
                return
            if self._desired is not self._turn_desired:
                # The turn may have failed because it was to end.
                self._next_turn = _AT_ONCE
                return
            self._must_answer = True
            if is_outage and permit is not None:
                self._with_circuit(lambda: permit.failed(discreet(str(error), self._secrets)))
            delay = self._backoff.failed(is_outage=is_outage)
            if delay is not None:
                since = self._actual.outage.since if self._actual.outage else self._wall()
                now_ms = int(self._wall().timestamp() * 1000)
                ends = self._backoff.gives_up_in(is_outage=is_outage)
                outage = Waiting(
                    str(error),
                    since,
                    now_ms + int(delay * 1000),
                    None if ends is None else now_ms + int(ends * 1000),
                )
                self._change(outage=outage, progress=self._progress_of(manager))
                self._next_turn = self._clock() + delay
                self._tell_retry(error, delay, is_outage=is_outage)
        if delay is None:
            self._fail(error, manager)
        else:
            self._log.warning("trying again in %.1f s: %s", delay, error)

    def _fail(self, error: BaseException, manager: Manager | None) -> None:
        with self._changed:
            if self._is_left():
                return
            trace = discreet(shown_trace(error), self._secrets)
            failed = self._failed(trace, is_fenced=isinstance(error, Fenced))
            # A turn may land rows before it fails.
            self._actual = replace(failed, progress=self._progress_of(manager))
            note = self._actual.note
            said = f"{discreet(str(error), self._secrets)}{f'; {note}' if note else ''}"
            self._tell("state", f"FAILED: {said}")
            if isinstance(error, Fenced):
                self._tell("fenced", said)
        self._log.error("failed: %s%s", discreet(str(error), self._secrets), f"; {note}" if note else "")

    def _failed(self, trace: str, *, is_fenced: bool) -> ActualState:
        job, now = self._actual.job, self._clock()
        assert job is not None
        policy = job.restarts_when_fenced if is_fenced else job.restarts
        recovery = after_failure(policy, self._actual.recovery, now)
        note = f"restart {recovery.attempt} of {recovery.attempts} failed too" if recovery.attempt else ""
        if recovery.due is not None:
            at = self._wall() + dt.timedelta(seconds=recovery.due - now)
            note = f"restart {recovery.attempt} of {recovery.attempts} at {at.isoformat(timespec='seconds')}"
        return replace(self._actual, trace=trace, recovery=recovery, note=note, outage=None)

    def _progress_of(self, manager: Manager | None) -> Progress:
        return manager.progress if manager is not None else self._actual.progress

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
                self._actual = ActualState(has_run=True)
                self._log.info("stopped")
                self._tell("state", "its job has ended")
            else:
                self._change(has_manager=False)
