"""The process around a job that environment variables configure: its settings, its log, its HTTP answers, its
end. Called by `icestream job-manager`.

What the job does is the plugin's; when it is tried again, and what is said of it, is the reconciler's, as for
every connector of a worker.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icestream.api.config import ConfigDef, Setting, Type
from icestream.api.environment_job import EnvironmentJob
from icestream.api.errors import ConfigError, FatalError, PreconditionError, Problem
from icestream.cli.worker_process import on_signals
from icestream.logs import FORMATS, hidden
from icestream.observers import Observers

if TYPE_CHECKING:
    from icestream.api.manager import Manager
    from icestream.api.status import JobStatus
    from icestream.rest.job_health import Answers

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 25.0
"""A pod has 30 seconds for its end; the reconciler leaves a turn that hangs behind after 20."""

VARIABLES: Final = ConfigDef(
    (
        Setting(
            "HTTP_HOST",
            Type.STRING,
            "127.0.0.1",
            "Where /live, /ready and /metrics answer; in a pod 0.0.0.0, so that the kubelet reaches them.",
        ),
        Setting(
            "HTTP_PORT",
            Type.INT,
            8080,
            "Their port; 0 takes a free one, which the log names.",
            at_least=0,
            check=lambda port: None if port < 65536 else "a port is below 65536",
        ),
        Setting(
            "LOG_LEVEL",
            Type.STRING,
            "INFO",
            "DEBUG, INFO, WARNING or ERROR.",
            choices=("DEBUG", "INFO", "WARNING", "ERROR"),
            ignores_case=True,
        ),
        Setting(
            "LOG_FORMAT",
            Type.STRING,
            "text",
            "text: lines for people. json: one object per line.",
            choices=FORMATS,
            ignores_case=True,
        ),
    )
)
"""Those of the process, whatever the job."""


def parse_environment(environ: Mapping[str, str]) -> tuple[EnvironmentJob, Mapping[str, Any]]:
    """The job, and the values of our own variables; raises ConfigError with every problem of either."""
    from icestream.plugins import environment_job

    given = {name: environ[name] for name in VARIABLES.names if environ.get(name, "").strip()}
    problems = [
        Problem(one.key, one.message.replace("configuration ", "environment variable "))
        for one in VARIABLES.problems(given)
    ]
    try:
        job = environment_job(environ)
    except ConfigError as error:
        raise ConfigError([*error.problems, *problems]) from None
    if problems:
        raise ConfigError(problems)
    if job is None:
        raise PreconditionError("no connector of this Python environment coordinates workers of others")
    return job, VARIABLES.parse(given)


def run_job(job: EnvironmentJob, values: Mapping[str, Any]) -> None:
    """Run until SIGTERM or SIGINT; raises FatalError if the job fails."""
    from icestream import logs

    how = logs.Logging(values["LOG_FORMAT"].lower(), socket.gethostname())
    logs.configure_process(values["LOG_LEVEL"], how)
    logs.conceal(job.secrets)
    told = threading.Event()
    on_signals(told)
    shell = JobShell(job)
    http = _served(values, shell.answers())
    try:
        for warning in job.warnings:
            _LOG.warning("%s", warning)
        _LOG.info("job %s: %s; /live, /ready and /metrics on %s", job.name, job.about, http.url)
        shell.run(told)
    finally:
        http.stop()


def _served(values: Mapping[str, Any], answers: Answers) -> Any:
    from icestream.rest.job_health import serve_health

    try:
        return serve_health(values["HTTP_HOST"], values["HTTP_PORT"], answers)
    except PreconditionError as error:
        where = f"HTTP_HOST={values['HTTP_HOST']} and HTTP_PORT={values['HTTP_PORT']}"
        raise PreconditionError(f"{where} cannot be used: {error.__cause__ or error}") from error


class JobShell:
    """The job with its reconciler. `run` is called once."""

    def __init__(self, job: EnvironmentJob) -> None:
        from icestream.cluster.reconciler import Reconciler
        from icestream.metrics.counters import Counters

        self._job = job
        self._counts = _Counts()
        self.observers = Observers(discreet=self._discreet)
        """Told of the job's commits; whoever wants to know is added before it runs."""
        self._counters = Counters()
        self.observers.add(self._counters)
        self._reconciler = Reconciler(job.name, lambda: self._make, observer=self.observers)

    def run(self, told: threading.Event) -> None:
        """Until told to stop: then the commit under way ends first. FatalError if the job fails."""
        from icestream.api.status import State
        from icestream.cluster.desired_state import DesiredState
        from icestream.cluster.stores.connector_store import TargetState

        self._reconciler.set_desired(DesiredState(1, _FOR_EVER, TargetState.STARTED))
        status = self._status()
        while not told.wait(_LOOK_SECONDS) and status.state is not State.FAILED:
            status = self._status()
        self._reconciler.set_desired(None)
        if not self._reconciler.wait(_STOP_SECONDS):
            _LOG.warning("the job did not end within %.0f s; what it does later is refused", _STOP_SECONDS)
        self.observers.close()
        if status.state is State.FAILED:
            reason = (status.trace or "").strip().splitlines()[-1:]
            raise FatalError(f"job {self._job.name} failed: {self._discreet(' '.join(reason))}")
        _LOG.info("stopped")

    def answers(self) -> Answers:
        from icestream.metrics.facts import facts_of_job
        from icestream.rest.job_health import Answers

        return Answers(
            alive=self._lost,
            ready=self._missing,
            facts=facts_of_job(self._job.name, self._status, self._counters),
        )

    def _status(self) -> JobStatus:
        return self._reconciler.status()

    def _lost(self) -> str | None:
        """Why another process should have the place of this one."""
        from icestream.api.status import State
        from icestream.cluster.liveness import LifeLimits

        if self._status().state is State.FAILED:
            return _FAILED
        return _SILENT if self._reconciler.lost_for() > LifeLimits.job else None

    def _missing(self) -> str | None:
        """What the job lacks to be at work."""
        from icestream.api.status import State

        status = self._status()
        if status.waiting is not None:
            return self._discreet(str(status.waiting))
        if status.state is State.FAILED:
            return _FAILED
        return None if self._counts.turns else "the job is starting"

    def _make(self, name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
        return _CountedManager(self._job.make(wake, self.observers), self._counts)

    def _discreet(self, text: str) -> str:
        return hidden(text, self._job.secrets)


_FAILED: Final = "the job failed; see the log"
_SILENT: Final = "the thread of the job has shown no sign of life for hours; see the log"
_FOR_EVER: Final = {"connector.class": "job", "errors.retry.timeout": "-1"}
"""An outage is waited for: another process in the place of this one would wait as well."""


@dataclass
class _Counts:
    """Written by the thread of the job only."""

    turns: int = 0


class _CountedManager:
    """A manager whose turns are counted, for /ready."""

    def __init__(self, manager: Manager, counts: _Counts) -> None:
        self._manager = manager
        self._counts = counts
        self.cancel, self.allow, self.close = manager.cancel, manager.allow, manager.close

    @property
    def progress(self) -> Any:
        return self._manager.progress

    def tick(self) -> float:
        pause = self._manager.tick()
        self._counts.turns += 1
        return pause
