"""Offsets of a sink that keeps them in its consumer group, and who may write them: a real broker."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Consumer, Producer

from icestream.api.errors import BadOffsets, Fenced, NotReadyError
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Offsets, Partition
from icestream.embedded.kafka import Broker
from icestream.jobs.offsets.group_offsets import ALTERED, RESET
from icestream.jobs.offsets.sink_offsets import SinkOffsets
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions


@pytest.fixture
def config(broker: Broker) -> dict[str, str]:
    """A connector whose topic has 2 partitions with 10 records each."""
    name = f"files-{uuid.uuid4().hex[:8]}"
    Topics({"bootstrap.servers": broker.bootstrap}).create(name, 2, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(20):
        producer.produce(name, b"x", partition=number % 2)
    assert producer.flush(30) == 0
    return {"name": name, "connector.class": "FileStreamSink", "topics": name, "file": "/dev/null"}


@pytest.fixture
def admin(broker: Broker) -> SinkOffsets:
    return SinkOffsets({"bootstrap.servers": broker.bootstrap})


def entry(topic: str, number: int, offset: int | None) -> OffsetEntry:
    asked = None if offset is None else {"kafka_offset": offset}
    return OffsetEntry({"kafka_topic": topic, "kafka_partition": number}, asked)


def test_the_group_is_read_altered_and_reset(admin: SinkOffsets, config: dict[str, str]) -> None:
    name = config["name"]
    assert admin.read(name, config) == []
    assert admin.reset(name, config) == RESET
    assert admin.alter(name, config, [entry(name, 0, 4), entry(name, 1, 6)]) == ALTERED
    assert admin.read(name, config) == [entry(name, 0, 4), entry(name, 1, 6)]
    assert admin.alter(name, config, [entry(name, 1, None)]) == ALTERED
    assert admin.read(name, config) == [entry(name, 0, 4), entry(name, 1, 0)]
    assert admin.reset(name, config) == RESET
    assert admin.read(name, config) == []


def test_a_topic_or_partition_that_is_not_there_is_refused(
    admin: SinkOffsets, config: dict[str, str]
) -> None:
    name = config["name"]
    with pytest.raises(BadOffsets, match="topic 'nowhere' does not exist"):
        admin.alter(name, config, [entry(name, 0, 3), entry("nowhere", 0, 0)])
    with pytest.raises(BadOffsets, match="topic 'no topic!' does not exist"):
        admin.alter(name, config, [entry("no topic!", 0, 0)])
    with pytest.raises(BadOffsets, match=r"has no partition 2; it has 0\.\.1"):
        admin.alter(name, config, [entry(name, 2, 3)])
    assert admin.read(name, config) == []


def test_a_group_with_members_is_left_alone(
    admin: SinkOffsets, config: dict[str, str], broker: Broker
) -> None:
    name = config["name"]
    member = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"connect-{name}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([name])
    try:
        for _ in range(120):
            if member.poll(1) is not None:
                break
        with pytest.raises(NotReadyError, match="still has members"):
            admin.alter(name, config, [entry(name, 0, 4)])
        with pytest.raises(NotReadyError, match="still has members"):
            admin.reset(name, config)
    finally:
        member.close()
    assert admin.alter(name, config, [entry(name, 0, 4)]) == ALTERED


def test_a_producer_that_was_replaced_is_told_so_whatever_it_was_busy_with(
    config: dict[str, str], broker: Broker
) -> None:
    """Its callbacks make the client raise a thing that is no exception."""
    settings = {"bootstrap.servers": broker.bootstrap}
    at = Offsets({Partition(config["name"], 0): 1})
    letters = [Outgoing(config["name"], b"key", b"value")] * 50
    older = Transactions(settings, config["name"], "a-group")
    older.write(letters, at, "")
    newer = Transactions(settings, config["name"], "a-group")
    with pytest.raises(Fenced):
        older.write(letters, at, "")
    older.close()
    newer.write(letters, at, "")
    newer.close()
