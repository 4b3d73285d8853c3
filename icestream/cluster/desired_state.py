"""Desired and actual state of a connector on a worker, and what follows from them. Pure: no clock, no thread.

`connector_registry.py` says what is desired; `reconciler.py` asks what to do next and what to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from icestream.api.errors import IcestreamError
from icestream.api.status import JobStatus, Progress, State, Waiting
from icestream.cluster.configs.secrets import discreet
from icestream.cluster.restarts import NEVER, NO_RECOVERY, Policy, Recovery
from icestream.cluster.stores.connector_store import TargetState
from icestream.resilience.breaker import CircuitState, CircuitView


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
    """What there is of a connector on this worker. Replaced as a whole whenever something changes."""

    job: DesiredState | None = None
    """The desired state that the thread works on; None: there is no job."""
    has_manager: bool = False
    trace: str | None = None
    """Why the job failed."""
    recovery: Recovery = NO_RECOVERY
    note: str = ""
    """How the recovery goes, for the status."""
    progress: Progress = field(default_factory=Progress)
    outage: Waiting | None = None
    """What the job tries again, since when."""
    has_run: bool = False
    """There has been a job."""


class Step(Enum):
    """What the thread of a reconciler does next."""

    BEGIN = auto()
    """Take up the desired state."""
    MAKE = auto()
    """Make a manager."""
    TICK = auto()
    CLOSE = auto()
    """Close the manager, and with it the job that nobody wants any more."""
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
    """Whether the desired state has come about, has failed to, or waits for the end of an outage."""
    if desired is None or desired.target is TargetState.STOPPED:
        return actual.job is None
    if actual.job is None or actual.job.run != desired.run:
        return False
    has_started = actual.has_manager or actual.trace is not None or actual.outage is not None
    return has_started or desired.target is TargetState.PAUSED


def status_of(
    desired: DesiredState | None,
    actual: ActualState,
    stuck: Waiting | None,
    circuit: CircuitView | None,
    secrets: Mapping[str, str],
) -> JobStatus:
    """What the world sees. `stuck` is a call of the job that does not return, `circuit` the circuit breaker
    of its destination."""
    if desired is None:
        return JobStatus(State.UNASSIGNED)
    job = actual.job
    if job is None:
        if desired.target is TargetState.STOPPED:
            return JobStatus(State.STOPPED)
        return JobStatus(State.RESTARTING if actual.has_run else State.UNASSIGNED)
    outage = actual.outage
    waits = [outage.what if outage else "", str(stuck) if stuck else ""]
    said = [actual.note, *actual.progress.warnings, *waits]
    warnings = tuple(discreet(one, secrets) for one in said if one)
    progress = replace(actual.progress, warnings=warnings, circuit=circuit.plain() if circuit else None)
    if job.run != desired.run and desired.target is not TargetState.STOPPED:
        return JobStatus(State.RESTARTING, None, progress)
    if actual.trace is not None:
        trace = f"{actual.note}\n{actual.trace}" if actual.note else actual.trace
        return JobStatus(State.FAILED, trace, progress)
    if job.target is TargetState.PAUSED:
        return JobStatus(State.PAUSED, None, progress)
    waiting = stuck or outage
    if waiting is not None:
        waiting = replace(waiting, what=discreet(waiting.what, secrets))
    # While the breaker is not closed: a field that every client of Kafka Connect knows and shows.
    is_held = circuit is not None and circuit.state is not CircuitState.CLOSED
    return JobStatus(State.RUNNING, str(circuit) if is_held else None, progress, waiting=waiting)
