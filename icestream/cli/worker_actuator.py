"""The actuator of a worker of either mode, if its config has one: made, started and stopped here."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icestream.cli.worker_process import DataPlane
    from icestream.cluster.service import ConnectorService
    from icestream.cluster.settings.worker_config import WorkerConfig
    from icestream.metrics.collector import WorkerCollector
    from icestream.rest.actuator.meters import Measured
    from icestream.rest.server import RestServer

_LOG = logging.getLogger(__name__)


class WorkerActuator:
    """Its sockets are open once this exists, if it has any; `serve` answers there."""

    def __init__(self, config: WorkerConfig) -> None:
        from icestream.cluster.settings.actuator_settings import LISTENERS
        from icestream.cluster.settings.rest_settings import RestConfig
        from icestream.rest.server import bind

        self._config = config
        listeners = config.actuator.listeners
        self._bound = bind(RestConfig(listeners=listeners), LISTENERS) if listeners else None
        self._server: RestServer | None = None
        self._watch: Any = None

    @property
    def urls(self) -> list[str]:
        return self._server.urls if self._server is not None else []

    def serve(
        self, service: ConnectorService, plane: DataPlane, rest: RestServer, collector: WorkerCollector
    ) -> None:
        if self._bound is None:
            return
        from icestream.rest.actuator.app import Told, actuator_app
        from icestream.rest.actuator.connector_metrics import connector_metrics
        from icestream.rest.actuator.health import WorkerHealth
        from icestream.rest.actuator.kafka_watch import KafkaWatch
        from icestream.rest.actuator.meters import ConnectorMeters
        from icestream.rest.server import serve_app

        actuator = self._config.actuator
        meters = ConnectorMeters()
        plane.observers.add(meters)
        self._watch = KafkaWatch(self._ask_kafka)

        def measured() -> Sequence[Measured]:
            return list(meters.measured([job.name for job in service.local_jobs()]))

        told = Told(
            WorkerHealth(
                service, lambda: rest.heartbeat.age, self._watch, self._folder(), actuator.shows_details
            ),
            measured,
            lambda: connector_metrics(service, measured()),
            collector.registry,
            {"systemEnvironment": os.environ, "workerConfig": self._config.raw} if actuator.has_env else None,
        )
        self._server = serve_app(actuator_app(told), self._bound, actuator.tls)
        self._watch.start()
        _LOG.info("actuator on %s", ", ".join(f"{url}/actuator" for url in self._server.urls))

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._server is not None:
            self._server.stop()
        elif self._bound is not None:
            self._bound.close()

    def _folder(self) -> str:
        """Where the worker writes: its state, or what it stages."""
        state = self._config.raw.get("offset.storage.file.filename", "")
        return str(Path(state).absolute().parent) if state else tempfile.gettempdir()

    def _ask_kafka(self) -> dict[str, object]:
        from icestream.kafka.clients import client_settings
        from icestream.kafka.topics import Topics

        topics = Topics(client_settings(self._config.raw))
        return {"clusterId": topics.cluster_id(), "nodes": topics.brokers()}
