"""Two people who edit one config: versions, and what the second of them is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.errors import ConfigChanged
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import FileStore, MemoryStore, StoredConnector
from icestream.cluster.stores.internal_records import connector_records
from icestream.cluster.stores.kafka_store import KafkaStore
from icestream.kafka.log import LogRecord
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFIG = {
    "name": "sink",
    "connector.class": "IcebergSink",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}


@pytest.fixture
def service() -> Iterator[ConnectorService]:
    worker = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
    service = ConnectorService("w:1", MemoryStore(), worker, extras=Extras(patience=Patience(2.0, 2.0)))
    service.connectors.use(FakeManagers())
    service.create("sink", CONFIG)
    yield service
    service.close()


def test_a_version_changes_with_the_config_and_with_nothing_else(service: ConnectorService) -> None:
    before = service.config_version("sink")
    service.pause("sink")
    service.restart("sink")
    assert service.config_version("sink") == before
    service.patch_config("sink", {"tasks.max": "2"})
    assert service.config_version("sink") != before


def test_whoever_read_the_newest_version_may_change_it(service: ConnectorService) -> None:
    info = service.patch_config("sink", {"tasks.max": "2"}, expect=service.config_version("sink"))
    assert info.config["tasks.max"] == "2"


def test_the_second_of_two_editors_changes_nothing_and_gets_what_is_stored(service: ConnectorService) -> None:
    read = service.config_version("sink")
    service.patch_config("sink", {"topics": "a"}, expect=read)
    with pytest.raises(ConfigChanged, match="was changed since it was read") as refused:
        service.patch_config("sink", {"topics": "b"}, expect=read)
    assert refused.value.now["topics"] == "a" == service.config("sink")["topics"]
    service.patch_config("sink", {"topics": "b"}, expect=refused.value.version)
    assert service.config("sink")["topics"] == "b"


def test_a_version_tells_nothing_of_the_config(service: ConnectorService) -> None:
    """Whoever knows all but a secret could otherwise find that out by guessing."""
    one, two = MemoryStore(), MemoryStore()
    for store in (one, two):
        store.put("x", StoredConnector({"password": "secret"}))
    assert one.load()["x"].version != two.load()["x"].version


def test_connectors_of_a_file_have_versions_too(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state.json")
    store.put("x", StoredConnector(CONFIG))
    store.close()
    again = FileStore(tmp_path / "state.json")
    assert again.load()["x"].version not in ("", store.load()["x"].version)
    again.close()


def test_a_config_that_is_written_anew_as_it_was_has_one_version_on_all_workers() -> None:
    heard: list[str] = []

    class Listens:
        def connector_changed(self, name: str) -> None:
            heard.append(store.load()[name].version)

        def logger_changed(self, namespace: str, level: str) -> None: ...

    store = KafkaStore({"bootstrap.servers": "127.0.0.1:1"}, "configs", "group", lambda name, connector: [])
    store.listen(Listens())
    for offset in (3, 7):
        for key, value in connector_records("sink", CONFIG, []):
            store._take(LogRecord(offset, key, value))
    # As a worker that has only just read the compacted topic.
    assert heard[-1] == store.load()["sink"].version == "7"
