"""Offsets of a group whose broker keeps those of a transaction that never ends."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from icestream.api.offsets import Offsets, Partition
from icestream.embedded.kafka import Broker
from icestream.kafka import topics as topics_module
from icestream.kafka.topics import GroupOffset, Topics
from icestream.kafka.transactions import Transactions

pytestmark = pytest.mark.network

WHERE = Partition("endless", 0)


def test_a_transaction_without_an_end_keeps_nobody_waiting(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_module, "ANSWER_SECONDS", 3.0)
    settings = {"bootstrap.servers": broker.bootstrap}
    topics = Topics(settings)
    topics.create("endless", 1, 1)
    ours = Transactions(settings, "ending", "endless-group")
    ours.write([], Offsets({WHERE: 5}), "good")
    endless = Producer({**settings, "transactional.id": "endless"})
    endless.init_transactions(20)
    endless.begin_transaction()
    member = Consumer({**settings, "group.id": "endless-group"})
    endless.send_offsets_to_transaction(
        [TopicPartition("endless", 0, 99)], member.consumer_group_metadata(), 20
    )
    assert topics.group_offsets("endless-group", [WHERE]) == {WHERE: GroupOffset(5, "good")}
    ours.write([], Offsets({WHERE: 6}), "better")
    assert topics.group_offsets("endless-group", [WHERE]) == {WHERE: GroupOffset(6, "better")}
    endless.abort_transaction(20)
    ours.close()
    member.close()
