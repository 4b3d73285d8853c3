"""The stores on Kafka's topics, against a real broker: what one bad record or one failed write may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from icestream.api.errors import NotReadyError, SourceUnavailable
from icestream.cluster.kafka_store import KafkaStore
from icestream.cluster.service import task_configs
from icestream.cluster.stores import StoredConnector
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics

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
        store.start()
        return store

    yield start
    for store in opened:
        store.close()


def test_a_connector_that_is_too_large_for_kafka_ends_no_later_change(open_store: OpenStore) -> None:
    store = open_store()
    store.lead()
    with pytest.raises(SourceUnavailable, match="too large"):
        store.put("large", StoredConnector({**SMALL.config, "file": "x" * 1_500_000}))
    assert not store.can_write
    with pytest.raises(NotReadyError):
        store.put("small", SMALL)
    store.lead()
    store.put("small", SMALL)
    assert list(store.load()) == ["small"]
    assert list(open_store().load()) == ["small"], "nothing of the large one was committed"
