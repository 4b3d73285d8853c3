"""The connector registry: no reconciler starts a job after the end, none outlives its connector."""

from __future__ import annotations

import threading
import time

from icestream.cluster.connector_registry import Patience
from icestream.cluster.group.membership import Alone
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore, StoredConnector
from icestream.testing import FakeManagers

STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"key.converter": STRING, "value.converter": STRING, "icestream.file.connectors.enabled": "true"}


class Losing(Alone):
    lost: frozenset[str] = frozenset()

    def owns(self, name: str) -> bool:
        return name not in self.lost


def connector(name: str) -> dict[str, str]:
    return {"name": name, "connector.class": "FileStreamSink", "topics": "t"}


def threads_of(prefix: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"connector-{prefix}")]


def test_a_closed_worker_starts_nothing_any_more() -> None:
    managers, store = FakeManagers(), MemoryStore()
    service = ConnectorService("w:1", store, WORKER, extras=Extras(patience=Patience(60.0, 60.0)))
    service.connectors.use(managers)
    service.create("a", connector("a"))
    service.connectors.close()
    for name in ("a", "b"):
        store.put(name, StoredConnector(connector(name)))
        service.connectors.settle(name)
    assert [manager.name for manager in managers.made] == ["a"]
    assert managers.alive("a") == []
    assert service.connectors.running() == frozenset()


def test_connectors_that_went_elsewhere_leave_no_threads() -> None:
    membership, store = Losing(), MemoryStore()
    extras = Extras(patience=Patience(60.0, 60.0))
    service = ConnectorService("w:1", store, WORKER, membership, extras=extras)
    service.connectors.use(FakeManagers())
    names = [f"gone-{number}" for number in range(10)]
    for name in names:
        service.create(name, connector(name))
    assert len(threads_of("gone-")) == 10, "one thread for each connector"
    # Nobody waits for the end of a job that a rebalance takes.
    membership.lost = frozenset(names)
    service.connectors.ownership_changed()
    while service.connectors.running():
        time.sleep(0.005)
    for thread in threads_of("gone-"):
        thread.join(60)
    assert threads_of("gone-") == []
    assert service.connectors._reconcilers == {}
    service.close()
