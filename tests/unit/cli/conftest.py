"""A worker whose jobs only pretend, behind the real REST API, and the command line to steer it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner

from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry
from icestream.cli import main
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.cluster.stores.status_store import MemoryStatusStore
from icestream.rest.server import serve
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}


@dataclass
class FakeOffsets:
    """An OffsetAdmin over a list."""

    entries: list[OffsetEntry] = field(default_factory=list)

    def read(self, name: str, config: Mapping[str, str]) -> list[OffsetEntry]:
        return list(self.entries)

    def alter(self, name: str, config: Mapping[str, str], entries: Sequence[OffsetEntry]) -> str:
        if any(entry.partition.get("kafka_topic") == "no" for entry in entries):
            raise BadOffsets("there is no topic 'no'")
        changed = {str(entry.partition): entry for entry in [*self.entries, *entries]}
        self.entries = list(changed.values())
        return "The offsets for this connector have been altered successfully"

    def reset(self, name: str, config: Mapping[str, str]) -> str:
        self.entries = []
        return "The offsets for this connector have been reset successfully"


@dataclass
class RunningWorker:
    """One for all tests of a file: starting and stopping one takes longer than a test."""

    url: str
    managers: FakeManagers
    service: ConnectorService
    status_store: MemoryStatusStore
    offsets: FakeOffsets

    def create(self, *names: str, **keys: str) -> None:
        for name in names:
            self.service.create(name, {**CONFIG, "name": name, **keys})


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[str]:
        """The lines of the output, blanks squeezed."""
        return [" ".join(line.split()) for line in self.out.splitlines()]


@pytest.fixture(scope="module")
def shared_worker() -> Iterator[RunningWorker]:
    managers, status_store, offsets = FakeManagers(), MemoryStatusStore(), FakeOffsets()
    extras = Extras(offsets=offsets, cluster_id=lambda: "abc", patience=Patience(2.0, 2.0))
    service = ConnectorService(
        "127.0.0.1:8083", MemoryStore(), WORKER, status_store=status_store, extras=extras
    )
    service.connectors.use(managers)
    service.ready()
    server = serve(service)
    yield RunningWorker(server.url, managers, service, status_store, offsets)
    server.stop()
    service.close()


@pytest.fixture
def worker(shared_worker: RunningWorker) -> Iterator[RunningWorker]:
    yield shared_worker
    for name in shared_worker.service.names():
        shared_worker.service.delete(name)
    shared_worker.offsets.entries.clear()


@pytest.fixture
def bare_cli() -> Callable[..., Ran]:
    """The whole command line, exit codes included, without any worker."""

    def run(
        *arguments: str, input: str = "", env: Mapping[str, str | None] | None = None, **more: Any
    ) -> Ran:
        with CliRunner().isolation(
            input=input, env=dict(env or {}), color=more.pop("color", False)
        ) as streams:
            code = main.run(list(arguments), **more)
        return Ran(code, streams[0].getvalue().decode(), streams[1].getvalue().decode())

    return run


@pytest.fixture
def cli(bare_cli: Callable[..., Ran], worker: RunningWorker) -> Callable[..., Ran]:
    """The whole command line, for the worker."""

    def run(*arguments: str, env: Mapping[str, str | None] | None = None, **more: Any) -> Ran:
        return bare_cli(*arguments, env={"ICESTREAM_URL": worker.url, **(env or {})}, **more)

    return run
