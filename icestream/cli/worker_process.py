"""What workers of both modes have in common: how their parts are made, and how the process ends."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import click

from icestream.api.config import Config
from icestream.api.errors import IcestreamError, Problem
from icestream.observers import Observers

if TYPE_CHECKING:
    from icestream.api.engine import EngineNumbers
    from icestream.api.manager import MakeManager
    from icestream.api.status import Outage
    from icestream.cluster.configs.validation import Probing
    from icestream.cluster.service import Extras
    from icestream.cluster.settings.worker_config import WorkerConfig
    from icestream.jobs.audits.verdicts import TargetVerdict

_LOG = logging.getLogger(__name__)
_CLUSTER_ID_EVERY = 15.0


def log_format_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--log-format",
        type=click.Choice(["text", "json"], case_sensitive=False),
        help="Lines for people or for programs; icestream.log.format otherwise.",
    )(command)


class WorkerProcess(Protocol):
    """A worker of either mode. REST answers once it exists; `start` brings the jobs."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class DataPlane:
    """What runs the jobs, and what opens the things that a config names; tests bring their own."""

    prepare: Callable[[], MakeManager]
    """Gives what makes the connectors' managers; may start Spark first."""
    deep_check: Probing
    outage: Callable[[], Outage | None] = lambda: None
    """What the jobs of this worker need and is away, such as Spark."""
    observers: Observers = field(default_factory=Observers)
    """Told by the jobs of their batches; whoever wants to know is added before the jobs start."""
    engine: Callable[[], EngineNumbers | None] = lambda: None
    """What Spark tells of itself; None while there is none."""


def data_plane(config: WorkerConfig) -> DataPlane:
    from icestream.cluster.configs.secrets import discreet
    from icestream.jobs.build import LateSpark, manager_maker
    from icestream.logs import concealed

    spark = LateSpark(config.raw)

    def deep_check(connector: Config) -> list[Problem]:
        from icestream.jobs.probes import probe_connector

        return probe_connector(connector, config.raw)

    observers = Observers(discreet=lambda text: discreet(text, concealed()))
    return DataPlane(
        lambda: manager_maker(config.raw, spark, observers),
        deep_check,
        spark.outage,
        observers,
        spark.numbers,
    )


def extras(config: WorkerConfig, plane: DataPlane, cluster_id: ClusterId) -> Extras:
    from icestream.cluster.connector_registry import Patience
    from icestream.cluster.history.history import History
    from icestream.cluster.liveness import life_limits
    from icestream.cluster.service import Extras
    from icestream.jobs.build import offset_admin
    from icestream.jobs.letters.desk import LetterDesk
    from icestream.jobs.sinks.target_commits import target_commits

    def audit(name: str, connector: Config, deep: bool) -> list[TargetVerdict]:
        from icestream.jobs.audits.verdicts import verdicts

        return verdicts(name, connector, config.raw, deep=deep)

    history = History()
    plane.observers.add(history)
    return Extras(
        deep_check=plane.deep_check,
        cluster_id=cluster_id,
        offsets=offset_admin(config.raw),
        dead_letters=LetterDesk(config.raw),
        audit=audit,
        resolve=config.providers.resolved,
        outage=plane.outage,
        patience=Patience(stop=max(config.stop_timeout, 1.0)),
        life=life_limits(config.raw),
        notice=config.rest.exposure or "",
        target_commits=target_commits,
        history=history,
        observer=plane.observers,
    )


class ClusterId:
    """The id of the Kafka cluster, asked for in the background so that REST never waits for Kafka."""

    def __init__(self, worker_config: Config) -> None:
        self._config = worker_config
        self._stopping = threading.Event()
        self._found: str | None = None
        self._thread = threading.Thread(target=self._ask, name="cluster-id", daemon=True)

    def __call__(self) -> str | None:
        return self._found

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask no more. The question under way is not waited for."""
        self._stopping.set()

    def _ask(self) -> None:
        from icestream.kafka.clients import client_settings
        from icestream.kafka.topics import Topics

        topics = Topics(client_settings(self._config))
        while self._found is None and not self._stopping.is_set():
            try:
                self._found = topics.cluster_id()
            except IcestreamError as error:
                if not self._stopping.is_set():
                    _LOG.warning("%s", error)
                self._stopping.wait(_CLUSTER_ID_EVERY)


def prepare_process(config: WorkerConfig, log_level: str | None, log_format: str | None = None) -> None:
    """Logs as the config says, and as many open files as this process may have."""
    from icestream import logs
    from icestream.cluster.logger_levels import LoggerLevels
    from icestream.rest.audit_log import audit_to
    from icestream.rest.connections import raise_file_limit

    # Until its address is known, a worker is its machine.
    how = logs.Logging(log_format or config.log_format, socket.gethostname())
    logs.configure_process(log_level or config.log_level, how)
    LoggerLevels().set_levels(config.raw.get("icestream.log.loggers", ""))
    if config.audit_file is not None:
        audit_to(config.audit_file)
    raise_file_limit()


def run_until_told(worker: WorkerProcess) -> None:
    """Run until SIGTERM or SIGINT, or until the start fails, which it raises."""
    told = threading.Event()
    failure: list[Exception] = []
    on_signals(told)

    def start() -> None:
        try:
            worker.start()
        except Exception as error:  # the worker's edge: a worker that cannot start has no reason to live
            failure.append(error)
            told.set()

    # In a thread, so that a signal is answered at once even while Spark starts.
    threading.Thread(target=start, name="start", daemon=True).start()
    while not told.wait(timeout=1.0):
        pass
    worker.stop()
    if failure:
        raise failure[0]


def on_signals(told: threading.Event) -> None:
    """SIGTERM and SIGINT tell; whoever sends one again ends the process at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        if told.is_set():
            os._exit(130)
        told.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
