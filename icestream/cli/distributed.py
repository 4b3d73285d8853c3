"""`icestream distributed`: one worker of a cluster: REST first, then the group, then its share."""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from icestream.api.errors import RetriableError
from icestream.cli.topics_of_worker import (
    KEY,
    apply_in_cluster,
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
    from icestream.cluster.settings.worker_config import DistributedConfig

_LOG = logging.getLogger(__name__)
_AGAIN_SECONDS = 0.5


@click.command(
    epilog="Example: icestream distributed worker.properties",
    short_help="Run a worker of a cluster.",
)
@click.argument("worker_file", metavar="[WORKER.properties]", required=False, type=click.Path(path_type=Path))
@topics_file_option
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    help="Which lines to log; icestream.log.level otherwise.",
)
@log_format_option
def distributed(
    worker_file: Path | None, topics_file: Path | None, log_level: str | None, log_format: str | None
) -> None:
    """Run a worker of the cluster 'group.id': its settings from the file, or from CONNECT_* variables.

    Ctrl-C or SIGTERM stops its jobs, and other workers take them; a second Ctrl-C ends it at once.
    """
    from icestream.cluster.configs.properties import read_properties
    from icestream.cluster.settings.worker_config import parse_distributed
    from icestream.cluster.settings.worker_env import worker_properties_from

    if worker_file is not None:
        given = read_properties(worker_file)
    elif topics_file is not None:
        given = worker_from_environment(topics_file, os.environ, has_peers=True)
    else:
        given = worker_properties_from(os.environ)
    config = parse_distributed({**given, KEY: str(topics_file)} if topics_file else given)
    prepare_process(config, log_level, log_format)
    run_until_told(DistributedWorker(config, topics=connectors_of_worker(config.raw)))


class DistributedWorker:
    """One member of a cluster. REST answers once this exists; `start` joins the others."""

    def __init__(
        self,
        config: DistributedConfig,
        plane: DataPlane | None = None,
        topics: Sequence[ConnectorFile] = (),
    ) -> None:
        from icestream.cluster.connector_registry import task_configs
        from icestream.cluster.group.coordinator import Coordinator
        from icestream.cluster.service import ConnectorService
        from icestream.cluster.stores.kafka_store import KafkaStore
        from icestream.cluster.stores.status_store import KafkaStatusStore, StatusReporter
        from icestream.kafka.clients import client_settings
        from icestream.logs import of_worker
        from icestream.rest.app import ApiOptions
        from icestream.rest.exchange import TopicTracking
        from icestream.rest.server import bind, serve

        self._config = config
        self._topics = topics
        self._plane = plane or data_plane(config)
        self._cluster_id = ClusterId(config.raw)
        self._settings = client_settings(config.raw)
        self._metrics = WorkerMetrics(config.metrics)
        self._actuator = WorkerActuator(config)
        bound = bind(config.rest)
        self.url = bound.advertised_url
        self._store = KafkaStore(self._settings, config.config_topic, config.group, task_configs)
        self._status_store = KafkaStatusStore(self._settings, config.status_topic, _wall_ms)
        self._coordinator = Coordinator(
            self.url,
            self._store,
            outage=self._plane.outage,
            console_url=bound.advertised_console,
            rebalanced=self._metrics.rebalanced,
        )
        worker_id = urlsplit(self.url).netloc
        of_worker(worker_id)
        self._traces = WorkerTraces(config, self._plane, worker_id)
        self.service = ConnectorService(
            worker_id,
            self._store,
            config.raw,
            self._coordinator,
            self._status_store,
            extras(config, self._plane, self._cluster_id),
        )
        self._reporter = StatusReporter(
            worker_id,
            self.service.connectors,
            self._status_store,
            self._coordinator,
            tracks_topics=config.tracks_topics,
            history=self.service.history,
        )
        self._stopping = threading.Event()
        for warning in config.warnings:
            _LOG.warning("%s", warning)
        tracking = TopicTracking(config.tracks_topics, config.resets_topics)
        collector = self._metrics.collector(self.service, self._plane, config.raw)
        self._rest = serve(self.service, bound, self._metrics.on_rest(ApiOptions(tracking), collector))
        self._metrics.serve(collector)
        self._actuator.serve(self.service, self._plane, self._rest, collector)
        _LOG.info("REST API on %s, group %s", self.url, config.group)
        for address in self._rest.console_urls:
            _LOG.info("console at %s", address)

    def start(self) -> None:
        """Read the cluster's topics, start what runs the jobs, join the group."""
        from icestream.kafka.connection import connection_facts
        from icestream.kafka.group import GroupMember

        self._cluster_id.start()
        self._until_kafka_answers(self._prepare)
        self.service.restore()
        self.service.connectors.use(self._metrics.counted(self._plane.prepare(), self.service))
        member = GroupMember(
            self._config.group, connection_facts(self._config.raw), self._config.timing, self._coordinator
        )
        self._metrics.joined(member)
        self._coordinator.join(member, self.service.connectors)
        threading.Thread(target=self._coordinator.run, name="coordinator", daemon=True).start()
        self._reporter.start()
        while not self._coordinator.has_joined:
            if self._stopping.wait(0.05):
                return
        self.service.ready()
        _LOG.info("worker ready, %d connector(s) in the cluster", len(self.service.names()))
        if self._topics:
            work = functools.partial(apply_in_cluster, self.service, self._topics, self._stopping)
            threading.Thread(target=work, name="topics-file", daemon=True).start()

    def stop(self) -> None:
        """Jobs end before the group hears of it: nobody starts what still runs here."""
        self._stopping.set()
        self._cluster_id.stop()
        self._rest.stop()
        self._metrics.stop()
        self._actuator.stop()
        self.service.connectors.close()
        self._reporter.close()
        self._coordinator.close()
        self.service.close()
        self._traces.stop()
        self._plane.observers.close()
        _LOG.info("worker stopped")

    def _prepare(self) -> None:
        from icestream.cluster.stores.internal_topics import internal_topics, prepare_internal_topics
        from icestream.kafka.topics import Topics

        prepare_internal_topics(Topics(self._settings), internal_topics(self._config.raw))
        self._store.start()
        self._status_store.start()

    def _until_kafka_answers(self, step: Callable[[], None]) -> None:
        told = ""
        while not self._stopping.is_set():
            try:
                return step()
            except RetriableError as error:
                if str(error) != told:
                    _LOG.warning("waiting for Kafka: %s", error)
                    told = str(error)
                self._stopping.wait(_AGAIN_SECONDS)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
