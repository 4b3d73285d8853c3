"""What a job tells the world: its state, and how far it is. REST and the live table show these."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from icestream.api.history import PartitionLag


class State(StrEnum):
    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


@dataclass(frozen=True)
class Progress:
    """How far a job is. Counts are totals over the life of the table, as its commits record them."""

    lag: int | None = None
    rows: int = 0
    rejected: int = 0
    filtered: int = 0
    batches: int = 0
    last_commit_ms: int | None = None
    """Epoch milliseconds of the last commit."""
    next_commit_in_ms: int | None = None
    warnings: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    """The topics that the job has really read from or written to."""
    maintenance: tuple[Mapping[str, object], ...] = ()
    """The last maintenance of each target: `MaintenanceRun.shown` of `api/maintenance.py`."""
    circuit: Mapping[str, object] | None = None
    """The circuit breaker of the destination: `CircuitView.plain` of `resilience/breaker.py`."""
    waits_for: str = ""
    """Why records that are there are not written yet, such as that they fill no file."""
    interval_ms: int | None = None
    """Time from commit to commit while records come in; None: as they come."""
    valid_through_ms: int | None = None
    """Up to this time of its topics the job has read everything, as its last commit said; None: not known."""
    oldest_unread_ms: int | None = None
    """About the timestamp of the oldest record that is not in the targets, never later than it; None: there
    is none, or nobody knows. See `jobs/sinks/batches/lags.py`."""
    source_end: int | None = None
    """The sum of the ends of all partitions when they were asked last: what it grows by has come in."""
    partitions: tuple[PartitionLag, ...] = ()
    """Where the job is in each partition. Only the worker that runs the job knows: it is not published."""


@dataclass(frozen=True)
class Waiting:
    """Somebody else's answer that a job needs before it goes on."""

    what: str
    since: dt.datetime
    next_ms: int | None = None
    """When it is asked for again; None: the answer is awaited, or nobody knows."""
    gives_up_ms: int | None = None
    """After this moment the job fails; None: never, or nobody knows."""

    def __str__(self) -> str:
        return f"waiting for {self.what} since {self.since.isoformat(timespec='seconds')}"


@dataclass(frozen=True)
class JobStatus:
    state: State
    trace: str | None = None
    """Why it failed, or what holds it up while it runs."""
    progress: Progress = Progress()
    waiting: Waiting | None = None
    """What holds it up, if that has lasted."""


@dataclass(frozen=True)
class Outage:
    """Something that the jobs of a worker need, and that is away."""

    what: str
    since: dt.datetime
    reason: str
    is_ours: bool = False
    """Whether what is missing is a process of this worker's own, which another in its place might get."""

    def __str__(self) -> str:
        return f"{self.what} is away since {self.since.isoformat(timespec='seconds')}: {self.reason}"
