"""A worker in this process with its console, a broker and tables that are real: all but Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from icestream.api.manager import Manager
from icestream.cluster.connector_registry import Patience
from icestream.cluster.history.history import History
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.embedded.kafka import Broker
from icestream.jobs.audits.verdicts import TargetVerdict, verdicts
from icestream.jobs.build import offset_admin
from icestream.jobs.letters.desk import LetterDesk
from icestream.jobs.sinks.build import sink_manager
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from icestream.rest.server import HERE, RestServer, bind, serve
from tests.console.world import WORKER


@dataclass
class RealWorker:
    service: ConnectorService
    server: RestServer

    @property
    def url(self) -> str:
        return self.server.console_urls[0]


@contextmanager
def running_worker(broker: Broker) -> Iterator[RealWorker]:
    worker = {**WORKER, "bootstrap.servers": broker.bootstrap}
    history = History()

    def make(name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
        settings = {"bootstrap.servers": broker.bootstrap}
        runner = InWorkerRunner(settings, RecordSettings.of(config))
        return sink_manager(name, config, worker, runner, wake=wake, observer=history)

    def audit(name: str, config: Mapping[str, str], deep: bool) -> list[TargetVerdict]:
        return verdicts(name, config, worker, deep=deep)

    extras = Extras(
        patience=Patience(5.0, 20.0),
        offsets=offset_admin(worker),
        dead_letters=LetterDesk(worker),
        audit=audit,
        history=history,
    )
    service = ConnectorService("127.0.0.1:8083", MemoryStore(), worker, extras=extras)
    service.connectors.use(make)
    service.ready()
    server = serve(service, bind(HERE))
    try:
        yield RealWorker(service, server)
    finally:
        server.stop()
        service.close()
