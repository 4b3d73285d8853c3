"""From configs to running jobs: which parts a connector needs. Called by the worker's command.

What only some connectors need is imported when the first of them starts: a worker without Spark jobs is ready
at once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin
from icestream.api.connector_settings import FRAMEWORK
from icestream.api.sink import SinkPlugin
from icestream.api.source import SourcePlugin
from icestream.api.status import JobStarter, Outage, RunningJob
from icestream.jobs.job_thread import PATIENCE, Bell, JobThread, Manager
from icestream.jobs.shared import Shared
from icestream.plugins import find_connector
from icestream.retry import Patience
from icestream.waits import waiting_for

if TYPE_CHECKING:
    from icestream.pipeline.run import SparkPlane, SparkRunner

_LEAST_WAIT: Final = 0.1


def job_starter(worker: Mapping[str, str], late: LateSpark | None = None) -> JobStarter:
    """What starts connectors. Spark starts with the first that needs it, or now if the config names it.

    Whoever sets it up has such connectors, and the first of them should not wait.
    """
    spark = late or LateSpark(worker)
    shared = Shared()
    if any(key.startswith("spark.") for key in worker):
        spark.plane()

    def start(name: str, config: Mapping[str, str], *, paused: bool) -> RunningJob:
        plugin = find_connector(config["connector.class"]).plugin
        patience = patience_with({**config, "name": name})
        if isinstance(plugin, SinkPlugin) and plugin.uses_spark:
            bell = Bell()
            job = LateRunner(spark, name, config, worker, shared, bell)
            return JobThread(
                name, job.manager, job.cancel, job.allow, paused=paused, patience=patience, bell=bell
            )

        def make() -> Manager:
            return _manager(plugin, name, config, worker)

        return JobThread(name, make, _nothing, _nothing, paused=paused, patience=patience)

    return start


def patience_with(config: Config) -> Patience:
    """How long a connector waits for what is away: Kafka, a registry, a catalog, an object store.

    Never shorter than without the keys: Java's clients wait for a broker that restarts whatever
    `errors.retry.timeout` says, whose default of 0 means one attempt.
    """
    errors = FRAMEWORK.parse(config)
    timeout = errors["errors.retry.timeout"] / 1000
    longest = PATIENCE.longest_wait
    if "errors.retry.delay.max.ms" in config:
        longest = max(errors["errors.retry.delay.max.ms"] / 1000, _LEAST_WAIT)
    return Patience(math.inf if timeout < 0 else max(timeout, PATIENCE.seconds), longest)


class LateSpark:
    """The worker's Spark session, opened and warmed when it is first asked for."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._plane: SparkPlane | None = None

    def outage(self) -> Outage | None:
        """Whether Spark was here and is away. Never blocks."""
        plane = self._plane
        return plane.outage if plane else None

    def plane(self) -> SparkPlane:
        from icestream.kafka.clients import client_settings
        from icestream.pipeline.run import SparkPlane

        with waiting_for("Spark to start"), self._lock:
            if self._plane is None:
                plane = SparkPlane(self._worker)
                plane.warm_up(client_settings(self._worker, "consumer"))
                self._plane = plane
            return self._plane


class LateRunner:
    """The runner of one job, made in the job's own thread; may be cancelled before it is there."""

    def __init__(
        self,
        spark: LateSpark,
        name: str,
        config: Config,
        worker: Mapping[str, str],
        shared: Shared,
        bell: Bell,
    ) -> None:
        self._spark = spark
        self._name = name
        self._config = config
        self._worker = worker
        self._shared = shared
        self._bell = bell
        self._lock = threading.Lock()
        self._runner: SparkRunner | None = None
        self._is_cancelled = False

    def manager(self) -> Manager:
        from icestream.jobs.build_iceberg import job_manager, spark_runner

        runner = spark_runner(self._spark.plane(), self._name, self._config, self._worker)
        with self._lock:
            self._runner = runner
            if self._is_cancelled:
                runner.cancel()
        return job_manager(
            self._name, self._config, self._worker, runner, shared=self._shared, wake=self._bell.ring
        )

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            if self._runner is not None:
                self._runner.cancel()

    def allow(self) -> None:
        with self._lock:
            self._is_cancelled = False
            if self._runner is not None:
                self._runner.allow()


def _manager(plugin: ConnectorPlugin, name: str, config: Config, worker: Mapping[str, str]) -> Manager:
    if isinstance(plugin, SourcePlugin):
        from icestream.jobs.source_manager import source_manager

        return source_manager(name, plugin, config, worker)
    from icestream.jobs.build_file_sink import file_sink_manager

    return file_sink_manager(name, config, worker)


def _nothing() -> None:
    """Turns of these jobs are short: there is nothing to give up."""
