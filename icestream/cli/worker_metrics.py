"""The metrics of a worker of either mode: what its jobs tell is counted, and told where the config says."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icestream.api.config import Config
    from icestream.api.manager import MakeManager, Manager
    from icestream.cli.worker_process import DataPlane
    from icestream.cluster.service import ConnectorService
    from icestream.cluster.settings.metrics_settings import MetricsConfig
    from icestream.kafka.group import GroupMember
    from icestream.metrics.collector import WorkerCollector
    from icestream.metrics.dialects.collecting import ConnectMetrics
    from icestream.metrics.dialects.facts import RebalanceFacts
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
        self._connect: ConnectMetrics | None = None
        """Kafka Connect's own metrics."""
        self._member: GroupMember | None = None

    def collector(self, service: ConnectorService, plane: DataPlane, raw: Config) -> WorkerCollector:
        from icestream.metrics.collector import WorkerCollector
        from icestream.metrics.facts import facts_of
        from icestream.metrics.processes import ProcessFamilies

        plane.observers.add(self.counters)
        self._connect = self._connect_metrics(service, raw)
        plane.observers.add(self._connect)
        collector = WorkerCollector(facts_of(service, self.counters, plane.engine))
        collector.add(ProcessFamilies())
        collector.add(self._requests.families)
        collector.add(lambda facts: self._connect.collect() if self._connect else ())
        return collector

    def _connect_metrics(self, service: ConnectorService, raw: Config) -> ConnectMetrics:
        from icestream.metrics.dialects.collecting import ConnectMetrics
        from icestream.metrics.dialects.facts import WorkerFacts
        from icestream.metrics.dialects.windows import window_size
        from icestream.metrics.dialects.worker_facts import FactsOfWorker

        server = service.server()
        identity = WorkerFacts(
            f"connect-{service.worker_id}", server.version, server.commit, time.time_ns() // 1_000_000
        )
        facts = FactsOfWorker(service.local_jobs, raw, identity, lambda: self._group(service))
        return ConnectMetrics(
            facts, self._config.dialects, window_size(raw), shows_partitions=self._config.shows_partitions
        )

    def _group(self, service: ConnectorService) -> RebalanceFacts | None:
        from icestream.kafka.group import PROTOCOL
        from icestream.metrics.dialects.facts import RebalanceFacts

        if self._member is None:
            return None
        numbers, group = self._member.numbers(), service.group()
        return RebalanceFacts(
            group.leader_url,
            PROTOCOL,
            group.generation,
            numbers.is_rebalancing,
            numbers.coordinator,
            numbers.network,
        )

    # What the worker tells, besides its jobs

    def joined(self, member: GroupMember) -> None:
        """The worker is a member of a group from here on."""
        self._member = member

    def rebalanced(self, seconds: float) -> None:
        if self._connect is not None:
            self._connect.rebalanced(seconds)

    def counted(self, make: MakeManager, service: ConnectorService) -> MakeManager:
        """The same, with every start of a connector counted."""

        def made(name: str, config: Config, wake: Callable[[], None]) -> Manager:
            try:
                manager = make(name, config, wake)
            except Exception:  # counted, whatever it is, and raised again
                self._started(service, name, is_success=False)
                raise
            self._started(service, name, is_success=True)
            return manager

        return made

    def _started(self, service: ConnectorService, name: str, *, is_success: bool) -> None:
        connector = service.connectors.known.get(name)
        if self._connect is not None:
            self._connect.started(len(connector.task_ids) if connector else 0, is_success=is_success)

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
