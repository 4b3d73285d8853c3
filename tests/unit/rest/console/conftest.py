"""A worker of fakes with its console, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.settings.rest_settings import RestConfig, parse_rest
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.rest.server import RestServer, bind, serve
from icestream.testing import FakeManagers
from tests.kit.leaks import shared

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
    "iceberg.catalog.password": "s3cr3t-of-catalog",
}
OURS = {"x-icestream-console": "1"}


@dataclass
class World:
    """One service, and a server for each config that a test asks for."""

    managers: FakeManagers
    service: ConnectorService
    servers: dict[str, RestServer] = field(default_factory=dict)
    client: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=60))

    def serve(self, **settings: str) -> RestServer:
        """Keys with `_` for `.`; the same settings give the same server."""
        key = repr(sorted(settings.items()))
        if key not in self.servers:
            with shared():
                self.servers[key] = serve(self.service, bind(config_of(settings)))
        return self.servers[key]

    def ask(self, verb: str, path: str, *, server: RestServer | None = None, **more: Any) -> httpx.Response:
        """A request to the console's API, as its page sends it."""
        headers = {**OURS, **more.pop("headers", {})}
        at = (server or self.serve()).url
        return self.client.request(verb, f"{at}/console/api/{path}", headers=headers, **more)

    def create(self, name: str, **more: str) -> None:
        self.service.create(name, {**CONFIG, "name": name, **more})


def config_of(settings: dict[str, str]) -> RestConfig:
    raw = {"listeners": "http://127.0.0.1:0"}
    return parse_rest({**raw, **{key.replace("_", "."): text for key, text in settings.items()}}, {})


@pytest.fixture(scope="module")
def shared_world() -> Iterator[World]:
    managers = FakeManagers()
    extras = Extras(cluster_id=lambda: "abc", patience=Patience(2.0, 2.0))
    service = ConnectorService("127.0.0.1:8083", MemoryStore(), WORKER, extras=extras)
    service.connectors.use(managers)
    service.ready()
    world = World(managers, service)
    yield world
    world.client.close()
    for server in world.servers.values():
        server.stop()
    service.close()


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    yield shared_world
    for name in shared_world.service.names():
        shared_world.service.delete(name)


Ask = Callable[..., httpx.Response]
