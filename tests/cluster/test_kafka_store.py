"""The stores on Kafka's topics, against a real broker: what one bad record or one failed write may do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from icestream.api.errors import FatalError, NotReadyError, SourceUnavailable
from icestream.cluster.connector_registry import task_configs
from icestream.cluster.service import ConnectorService
from icestream.cluster.stores.connector_store import StoredConnector
from icestream.cluster.stores.kafka_store import KafkaStore
from icestream.embedded.kafka import Broker
from icestream.kafka.log import LogRecord, LogWriter, TopicLog
from icestream.kafka.topics import Topics
from tests.cluster.workers import eventually

SMALL = StoredConnector({"connector.class": "FileStreamSource"})
OpenStore = Callable[[], KafkaStore]


@pytest.fixture
def open_store(broker: Broker, group: str) -> Iterator[OpenStore]:
    """Opens the store of the group; its topic takes messages as large as a broker allows by default."""
    settings = {"bootstrap.servers": broker.bootstrap}
    topic = f"{group}-store"
    Topics(settings).create(topic, 1, 1, {"cleanup.policy": "compact", "max.message.bytes": "1048588"})
    opened: list[KafkaStore] = []

    def start() -> KafkaStore:
        store = KafkaStore(settings, topic, group, task_configs)
        opened.append(store)
        eventually(lambda: _is_started(store), lambda: "the topic has no leader", 120)
        return store

    yield start
    for store in opened:
        store.close()


def _is_started(store: KafkaStore) -> bool:
    """As workers do it: a topic that was made this moment may have no leader yet."""
    try:
        store.start()
    except SourceUnavailable:
        return False
    return True


def test_a_connector_that_is_too_large_for_kafka_ends_no_later_change(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A broker whose limit is lower than the one that we know of.
    monkeypatch.setattr("icestream.cluster.stores.kafka_store._MOST_BYTES", 10_000_000)
    store = open_store()
    store.lead()
    with pytest.raises(FatalError, match="too large"):
        store.put("large", StoredConnector({**SMALL.config, "file": "x" * 1_500_000}))
    assert not store.can_write
    with pytest.raises(NotReadyError):
        store.put("small", SMALL)
    store.lead()
    store.put("small", SMALL)
    assert list(store.load()) == ["small"]
    assert list(open_store().load()) == ["small"], "nothing of the large one was committed"


def test_a_start_that_is_tried_again_starts_nothing_twice(open_store: OpenStore) -> None:
    store = open_store()
    store.start()
    store.lead()
    store.put("small", SMALL)
    assert list(store.load()) == ["small"]


def test_a_long_topic_is_read_to_its_end_as_long_as_records_come(broker: Broker, group: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    topic = f"{group}-long"
    Topics(settings).create(topic, 1, 1)
    writer = LogWriter(settings, topic)
    for number in range(8):
        writer.send(str(number).encode(), b"{}")
    assert writer.flush()
    writer.close()
    told: list[int] = []

    def slowly(record: LogRecord) -> None:
        time.sleep(0.5)
        told.append(record.offset)

    log = TopicLog(settings, topic, slowly)
    log.start()
    log.read_to_end(seconds=3)
    log.close()
    assert told == list(range(8))


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"{}",
        b'"text"',
        b'{"properties": ["list"]}',
        b'{"properties": {"connector.class": 5}}',
        b'{"properties": {"connector.class": "FileStreamSource", "tasks.max": 1, "file": null}}',
    ],
)
def test_a_worker_starts_whatever_the_config_topic_holds(
    broker: Broker, group: str, open_store: OpenStore, body: bytes
) -> None:
    writer = LogWriter({"bootstrap.servers": broker.bootstrap}, f"{group}-store")
    writer.send(b"connector-strange", body)
    assert writer.flush()
    writer.close()
    store = open_store()
    service = ConnectorService("worker", store, {})
    service.restore()
    store.lead()
    store.put("small", SMALL)
    assert "small" in service.names() and service.names() == sorted(store.load(), reverse=True)
