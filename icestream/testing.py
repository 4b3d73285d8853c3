"""Public test kit: jobs that only pretend, for tests of everything above the data plane."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from icestream.api.status import JobStatus, Progress, RunningJob, State


@dataclass
class FakeJob:
    """A job that remembers what it was told. `stop_takes` seconds make a slow one."""

    name: str
    config: Mapping[str, str]
    state: State = State.RUNNING
    progress: Progress = field(default_factory=Progress)
    trace: str | None = None
    is_fenced: bool = False
    stop_takes: float = 0.0
    calls: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.calls.append("pause")
        self.state = State.PAUSED

    def resume(self) -> None:
        self.calls.append("resume")
        self.state = State.RUNNING

    def stop(self) -> None:
        self.calls.append("stop")
        time.sleep(self.stop_takes)
        self.state = State.STOPPED

    def status(self) -> JobStatus:
        return JobStatus(self.state, self.trace, self.progress, self.is_fenced)

    def fail(self, trace: str) -> None:
        """From now on the job is FAILED with this trace."""
        self.trace = trace
        self.state = State.FAILED

    def advance(self, progress: Progress) -> None:
        """From now on the job is this far."""
        self.progress = progress


@dataclass
class FakeStarter:
    """A JobStarter that keeps every job it made; `broken` makes the start of a connector fail."""

    jobs: list[FakeJob] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)
    start_takes: float = 0.0
    stop_takes: float = 0.0
    is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, name: str, config: Mapping[str, str], *, paused: bool) -> RunningJob:
        time.sleep(self.start_takes)
        if name in self.broken:
            raise self.broken[name]
        job = FakeJob(name, config, State.PAUSED if paused else State.RUNNING, stop_takes=self.stop_takes)
        with self._lock:
            self.jobs.append(job)
        return job

    def close(self) -> None:
        self.is_closed = True

    def latest(self, name: str) -> FakeJob:
        """The job that was started last for a connector."""
        return next(job for job in reversed(self.jobs) if job.name == name)

    def alive(self, name: str) -> list[FakeJob]:
        """Jobs of a connector that were not stopped; more than one is a bug."""
        return [job for job in self.jobs if job.name == name and "stop" not in job.calls]
