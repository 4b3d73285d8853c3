"""`icestream standalone`: one worker in this process, REST first, then the connectors."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from icestream.cli.topics_of_worker import (
    KEY,
    connectors_of_worker,
    topics_file_option,
    worker_from_environment,
)
from icestream.cli.worker_actuator import WorkerActuator
from icestream.cli.worker_metrics import WorkerMetrics
from icestream.cli.worker_process import (
    ClusterId,
    DataPlane,
    data_plane,
    extras,
    log_format_option,
    prepare_process,
    run_until_told,
)
from icestream.cli.worker_traces import WorkerTraces

if TYPE_CHECKING:
    from icestream.cluster.configs.properties import ConnectorFile
    from icestream.cluster.settings.worker_config import StandaloneConfig

_LOG = logging.getLogger(__name__)


@click.command(
    epilog="Example: icestream standalone worker.properties iceberg-sink-apilogs.json",
    short_help="Run a worker in this process.",
)
@click.argument("worker_file", metavar="[WORKER.properties]", required=False, type=click.Path(path_type=Path))
@click.argument(
    "connector_files",
    metavar="[CONNECTOR.properties|CONNECTOR.json]...",
    nargs=-1,
    type=click.Path(path_type=Path),
)
@topics_file_option
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    help="Which lines to log; icestream.log.level otherwise.",
)
@log_format_option
def standalone(
    worker_file: Path | None,
    connector_files: tuple[Path, ...],
    topics_file: Path | None,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Run a standalone worker: connectors from the files and from its state file, REST on 'listeners'.

    Ctrl-C or SIGTERM stops the jobs and ends it; a second Ctrl-C ends it at once.
    """
    from icestream.cluster.configs.properties import read_connector, read_properties
    from icestream.cluster.settings.worker_config import parse_standalone

    if worker_file is not None:
        given = read_properties(worker_file)
    elif topics_file is not None:
        given = worker_from_environment(topics_file, os.environ, has_peers=False)
    else:
        raise click.UsageError("name a WORKER.properties, or a --topics-file")
    config = parse_standalone({**given, KEY: str(topics_file)} if topics_file else given)
    files = [*(read_connector(path) for path in connector_files), *connectors_of_worker(config.raw)]
    prepare_process(config, log_level, log_format)
    run_until_told(StandaloneWorker(config, files))


class StandaloneWorker:
    """Service, REST and jobs of one process. REST answers once this exists; `start` brings the jobs."""

    def __init__(
        self, config: StandaloneConfig, files: Sequence[ConnectorFile] = (), plane: DataPlane | None = None
    ) -> None:
        from icestream.cluster.group.membership import Alone
        from icestream.cluster.service import ConnectorService
        from icestream.cluster.stores.connector_store import FileStore
        from icestream.cluster.stores.status_store import MemoryStatusStore, StatusReporter
        from icestream.logs import of_worker
        from icestream.rest.app import ApiOptions
        from icestream.rest.exchange import TopicTracking
        from icestream.rest.server import bind, serve

        self._plane = plane or data_plane(config)
        self._cluster_id = ClusterId(config.raw)
        store, status_store = FileStore(config.state_file), MemoryStatusStore()
        self._metrics = WorkerMetrics(config.metrics)
        self._actuator = WorkerActuator(config)
        bound = bind(config.rest)
        worker_id = urlsplit(bound.advertised_url).netloc
        of_worker(worker_id)
        self._traces = WorkerTraces(config, self._plane, worker_id)
        self.service = ConnectorService(
            worker_id,
            store,
            config.raw,
            status_store=status_store,
            extras=extras(config, self._plane, self._cluster_id),
        )
        self._reporter = StatusReporter(
            worker_id,
            self.service.connectors,
            status_store,
            Alone(),
            tracks_topics=config.tracks_topics,
            history=self.service.history,
        )
        for warning in config.warnings:
            _LOG.warning("%s", warning)
        self.service.restore(files)
        topics = TopicTracking(config.tracks_topics, config.resets_topics)
        collector = self._metrics.collector(self.service, self._plane, config.raw)
        self._rest = serve(self.service, bound, self._metrics.on_rest(ApiOptions(topics), collector))
        self._metrics.serve(collector)
        self._actuator.serve(self.service, self._plane, self._rest, collector)
        self.url = self._rest.url
        _LOG.info("REST API on %s, state in %s", self.url, config.state_file)
        for address in self._rest.console_urls:
            _LOG.info("console at %s", address)

    def start(self) -> None:
        """Start what runs the jobs, then the jobs."""
        self._cluster_id.start()
        self.service.connectors.use(self._metrics.counted(self._plane.prepare(), self.service))
        self._reporter.start()
        self.service.ready()
        _LOG.info("worker ready, %d connector(s)", len(self.service.names()))

    def stop(self) -> None:
        """REST closes first, so that nobody starts what we stop."""
        self._cluster_id.stop()
        self._rest.stop()
        self._metrics.stop()
        self._actuator.stop()
        self._reporter.close()
        self.service.close()
        self._traces.stop()
        self._plane.observers.close()
        _LOG.info("worker stopped")
