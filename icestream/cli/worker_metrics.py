"""The metrics of a worker of either mode: what its jobs tell is counted, and told where the config says."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icestream.cli.worker_process import DataPlane
    from icestream.cluster.metrics_settings import MetricsConfig
    from icestream.cluster.service import ConnectorService
    from icestream.metrics.collector import WorkerCollector
    from icestream.rest.app import ApiOptions

_LOG = logging.getLogger(__name__)


class WorkerMetrics:
    """Its sockets are open once this exists; `serve` answers there."""

    def __init__(self, config: MetricsConfig) -> None:
        from icestream.metrics.counters import Counters
        from icestream.metrics.requests import RequestCounts
        from icestream.rest.metrics_answers import bind_metrics
        from icestream.rest.server import RestServer

        self._config = config
        self._bound = bind_metrics(config)
        self._server: RestServer | None = None
        self.counters = Counters()
        """The observer of the jobs."""
        self._requests = RequestCounts()

    def collector(self, service: ConnectorService, plane: DataPlane) -> WorkerCollector:
        from icestream.metrics.collector import WorkerCollector
        from icestream.metrics.facts import facts_of
        from icestream.metrics.processes import ProcessFamilies

        plane.observers.add(self.counters)
        collector = WorkerCollector(facts_of(service, self.counters, plane.engine))
        collector.add(ProcessFamilies())
        collector.add(self._requests.families)
        return collector

    def on_rest(self, options: ApiOptions, collector: WorkerCollector) -> ApiOptions:
        """The same options, with requests counted, and with /metrics if REST has it."""
        from dataclasses import replace

        from icestream.rest.metrics_answers import metrics_route

        options = replace(options, requests=self._requests)
        if not self._config.on_rest:
            return options
        return replace(options, routes=(*options.routes, metrics_route(collector.registry)))

    def serve(self, collector: WorkerCollector) -> None:
        from icestream.rest.metrics_answers import serve_metrics

        if self._bound is not None:
            self._server = serve_metrics(collector.registry, self._config, self._bound)
            _LOG.info("metrics on %s", ", ".join(f"{url}/metrics" for url in self._server.urls))

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        elif self._bound is not None:
            self._bound.close()
