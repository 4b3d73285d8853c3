"""What is asked of a group whose offsets Kafka holds back."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition
from icestream.kafka import topics
from icestream.kafka.clients import ANSWER_SECONDS
from icestream.kafka.topics import GroupOffset, Topics


class Group:
    """A consumer that takes all the time it is given, unless it may read what is not stable."""

    waited: float = 0.0
    is_away = False

    def __init__(self, settings: dict[str, Any]) -> None:
        self._waits = settings["isolation.level"] == "read_committed"

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self._waits or Group.is_away:
            Group.waited += timeout
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [TopicPartition(one.topic, one.partition, 7, metadata="note") for one in asked]

    def poll(self, seconds: float) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> type[Group]:
    monkeypatch.setattr(Group, "waited", 0.0)
    monkeypatch.setattr(Group, "is_away", False)
    monkeypatch.setattr(topics, "AdminClient", lambda settings: MagicMock())
    monkeypatch.setattr(topics, "Consumer", Group)
    return Group


def test_offsets_of_a_transaction_that_does_not_end_are_left_out(group: type[Group]) -> None:
    asked = Partition("t", 0)
    assert Topics({}).group_offsets("g", [asked]) == {asked: GroupOffset(7, "note")}


def test_who_asks_a_broker_that_is_away_waits_no_longer_than_for_any_answer(group: type[Group]) -> None:
    group.is_away = True
    with pytest.raises(SourceUnavailable, match="asking for the offsets of group g"):
        Topics({}).group_offsets("g", [Partition("t", 0)])
    assert group.waited <= ANSWER_SECONDS
