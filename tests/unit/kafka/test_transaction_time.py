"""Transactions have a minute, or as much of it as the brokers allow (transaction.max.timeout.ms)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException

from icestream.api.errors import SourceUnavailable
from icestream.kafka import transactions
from icestream.kafka.transactions import Transactions


class Producer:
    """Of a cluster that allows so many milliseconds."""

    allowed = 20_000
    asked: ClassVar[list[int]] = []

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def init_transactions(self, seconds: float) -> None:
        self.asked.append(self.settings["transaction.timeout.ms"])
        assert int(self.settings.get("message.timeout.ms", 0)) <= self.asked[-1]
        if self.asked[-1] > self.allowed:
            raise KafkaException(KafkaError(KafkaError.INVALID_TRANSACTION_TIMEOUT))

    def poll(self, seconds: float) -> int:
        return 0


class Consumer:
    def __init__(self, settings: dict[str, Any]) -> None:
        pass

    def consumer_group_metadata(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> type[Producer]:
    class Kafka(Producer):
        asked: ClassVar[list[int]] = []

    monkeypatch.setattr(transactions, "Producer", Kafka)
    monkeypatch.setattr(transactions, "Consumer", Consumer)
    return Kafka


def test_half_the_time_is_asked_for_until_the_brokers_allow_it(kafka: type[Producer]) -> None:
    Transactions({"message.timeout.ms": "50000"}, "id", "group")
    assert kafka.asked == [60_000, 30_000, 15_000]


def test_brokers_that_allow_almost_nothing_are_an_outage(kafka: type[Producer]) -> None:
    kafka.allowed = 10
    with pytest.raises(SourceUnavailable, match="transaction of id"):
        Transactions({}, "id", "group")
    assert kafka.asked[-1] >= 1_000
