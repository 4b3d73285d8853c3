"""`icestream standalone`: one worker in this process, REST first, then Spark, then the connectors."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from icestream.api.config import Config
from icestream.api.errors import Problem, RetriableError

if TYPE_CHECKING:
    from icestream.api.status import JobStarter
    from icestream.cluster.connector_config import DeepCheck
    from icestream.cluster.properties import ConnectorFile
    from icestream.cluster.worker_config import WorkerConfig

_LOG = logging.getLogger(__name__)
_CLUSTER_ID_EVERY = 15.0


@click.command(
    epilog="Example: icestream standalone worker.properties iceberg-sink-apilogs.json",
    short_help="Run a worker in this process.",
)
@click.argument("worker_file", metavar="WORKER.properties", type=click.Path(path_type=Path))
@click.argument(
    "connector_files",
    metavar="[CONNECTOR.properties|CONNECTOR.json]...",
    nargs=-1,
    type=click.Path(path_type=Path),
)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    help="Which lines to log; icestream.log.level otherwise.",
)
def standalone(worker_file: Path, connector_files: tuple[Path, ...], log_level: str | None) -> None:
    """Run a standalone worker: connectors from the files and from its state file, REST on 'listeners'.

    Ctrl-C or SIGTERM stops the jobs and ends it; a second Ctrl-C ends it at once.
    """
    from icestream import logs
    from icestream.cluster.properties import read_connector, read_properties
    from icestream.cluster.worker_config import parse_worker_config

    config = parse_worker_config(read_properties(worker_file))
    files = [read_connector(path) for path in connector_files]
    logs.configure(log_level or config.log_level)
    worker = StandaloneWorker(config, files)
    run_until_told(worker)


class StandaloneWorker:
    """Service, REST and jobs of one process. REST answers once this exists; `start` brings the jobs."""

    def __init__(
        self,
        config: WorkerConfig,
        files: Sequence[ConnectorFile] = (),
        make_starter: Callable[[], JobStarter] | None = None,
        deep_check: DeepCheck | None = None,
    ) -> None:
        from icestream.cluster.service import ConnectorService
        from icestream.cluster.stores import FileStore
        from icestream.cluster.worker import Patience, Worker
        from icestream.rest.app import CrossOrigin
        from icestream.rest.server import listen, serve

        self._make_starter = make_starter or _spark_starter(config)
        self._cluster_id = ClusterId(config.raw)
        store = FileStore(config.state_file)
        listener = listen(config.listener.host, config.listener.port)
        worker_id = config.worker_id(listener.getsockname()[1])
        self._worker = Worker(worker_id, Patience(stop=max(config.stop_timeout, 1.0)))
        self.service = ConnectorService(
            store, self._worker, config.raw, deep_check or _deep_check, self._cluster_id
        )
        for warning in config.warnings:
            _LOG.warning("%s", warning)
        self.service.restore(files)
        self._rest = serve(
            self.service,
            config.listener.host,
            listener=listener,
            cross_origin=CrossOrigin(config.allow_origin, config.allow_methods),
        )
        self.url = self._rest.url
        _LOG.info("REST API on %s, state in %s", self.url, config.state_file)

    def start(self) -> None:
        """Start what runs the jobs, then the jobs; blocks while Spark starts."""
        self._cluster_id.start()
        self._worker.use(self._make_starter())
        self.service.ready()
        _LOG.info("worker ready, %d connector(s)", len(self.service.names()))

    def stop(self) -> None:
        """REST closes first, so that nobody starts what we stop."""
        self._rest.stop()
        self.service.close()
        _LOG.info("worker stopped")


class ClusterId:
    """The id of the Kafka cluster, asked for in the background so that REST never waits for Kafka."""

    def __init__(self, worker_config: Config, sleep: Callable[[float], None] = time.sleep) -> None:
        self._config = worker_config
        self._sleep = sleep
        self._found: str | None = None
        self._thread = threading.Thread(target=self._ask, name="cluster-id", daemon=True)

    def __call__(self) -> str | None:
        return self._found

    def start(self) -> None:
        self._thread.start()

    def _ask(self) -> None:
        from icestream.kafka.clients import client_settings
        from icestream.kafka.topics import Topics

        topics = Topics(client_settings(self._config))
        while self._found is None:
            try:
                self._found = topics.cluster_id()
            except RetriableError as error:
                _LOG.warning("%s", error)
                self._sleep(_CLUSTER_ID_EVERY)


def run_until_told(worker: StandaloneWorker) -> None:
    """Run until SIGTERM or SIGINT, or until the start fails, which it raises."""
    told = threading.Event()
    failure: list[Exception] = []
    _on_signals(told)

    def start() -> None:
        try:
            worker.start()
        except Exception as error:  # the worker's edge: without Spark it has no reason to live
            failure.append(error)
            told.set()

    # In a thread, so that a signal is answered at once even while Spark starts.
    threading.Thread(target=start, name="start", daemon=True).start()
    while not told.wait(timeout=1.0):
        pass
    worker.stop()
    if failure:
        raise failure[0]


def _on_signals(told: threading.Event) -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        if told.is_set():
            os._exit(130)
        told.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def _spark_starter(config: WorkerConfig) -> Callable[[], JobStarter]:
    def make() -> JobStarter:
        from icestream.jobs.build import job_starter

        return job_starter(config.raw)

    return make


def _deep_check(config: Config) -> list[Problem]:
    from icestream.jobs.build import check_connector

    return check_connector(config)
