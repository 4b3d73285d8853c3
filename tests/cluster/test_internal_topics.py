"""The three topics of a cluster: made as they must be, refused if they are not."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.stores.internal_topics import internal_topics, prepare_internal_topics
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics


def worker(group: str, **more: str) -> dict[str, str]:
    kinds = ("offset", "config", "status")
    return {
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in kinds},
        **{f"{kind}.storage.replication.factor": "1" for kind in kinds},
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def prepared(broker: Broker, config: dict[str, str]) -> Topics:
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    prepare_internal_topics(topics, internal_topics(config))
    return topics


def test_made_compacted_with_their_partitions(broker: Broker, group: str) -> None:
    config = worker(group, status_storage_partitions="2", offset_storage_retention_ms="1000")
    topics = prepared(broker, config)
    made = topics.describe([f"{group}-{kind}" for kind in ("offset", "config", "status")])
    assert {name: facts.partitions for name, facts in made.items()} == {
        f"{group}-offset": 25,
        f"{group}-config": 1,
        f"{group}-status": 2,
    }
    for name in made:
        assert topics.config(name)["cleanup.policy"] == "compact"
    assert topics.config(f"{group}-offset")["retention.ms"] == "1000"
    prepared(broker, config)


def test_topics_that_would_lose_configs_are_refused(broker: Broker, group: str) -> None:
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    topics.create(f"{group}-config", 3, 1, {"cleanup.policy": "compact"})
    topics.create(f"{group}-status", 1, 1)
    with pytest.raises(ConfigError) as refused:
        prepared(broker, worker(group))
    assert [problem.key for problem in refused.value.problems] == [
        "config.storage.topic",
        "status.storage.topic",
    ]
    assert "has 3 partitions" in str(refused.value) and "cleanup.policy=delete" in str(refused.value)


def test_more_copies_than_brokers_are_refused(broker: Broker, group: str) -> None:
    with pytest.raises(
        ConfigError, match=r"'offset\.storage\.replication\.factor=3' is more than the 1 broker"
    ):
        prepared(broker, {**worker(group), "offset.storage.replication.factor": "3"})
