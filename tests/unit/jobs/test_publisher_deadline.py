"""A transaction that Kafka's client never ends is given up, as an outage."""

import threading
from typing import Any

import pytest

from icestream.api.errors import Fenced, SourceUnavailable
from icestream.api.offsets import Offsets
from icestream.api.sink import SinkOptions
from icestream.jobs.publishing import publisher
from icestream.jobs.publishing.publisher import KafkaPublisher
from icestream.jobs.sinks.job import sink_job

CONFIG = {"connector.class": "IcebergSinkConnector", "topics": "t", "iceberg.tables": "ns.t"}


class Transactions:
    """Kafka's client, as it is when its broker is gone."""

    def __init__(self, *_: Any) -> None:
        self.ended = threading.Event()
        self.error: Exception | None = None

    progress = 0

    def write_some(self, *_: Any, **__: Any) -> int:
        if self.error is not None:
            raise self.error
        self.ended.wait(60)
        return 0


class Moving(Transactions):
    """Further whenever it is looked at, and done at last."""

    looks = 0

    @property
    def progress(self) -> int:  # type: ignore[override]
        self.looks += 1
        if self.looks == 20:
            self.ended.set()
        return self.looks


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> KafkaPublisher:
    monkeypatch.setattr(publisher, "Transactions", Transactions)
    return KafkaPublisher(sink_job("slow", CONFIG, SinkOptions()), {}, seconds=0.1)


def test_a_transaction_that_never_ends_is_given_up(made: KafkaPublisher) -> None:
    with pytest.raises(SourceUnavailable, match=r"did not end the transaction of connect-slow-coordinator"):
        made.publish("commit", [], [], Offsets({}))
    transactions: Any = made._transactions
    transactions.ended.set()


def test_a_transaction_that_goes_on_has_all_the_time_it_needs(made: KafkaPublisher) -> None:
    moving: Any = Moving()
    made._transactions = moving
    made.publish("commit", [], [], Offsets({}))
    assert moving.looks >= 20


def test_what_the_client_says_in_time_is_told(made: KafkaPublisher) -> None:
    transactions: Any = made._transactions
    transactions.error = Fenced("another one")
    with pytest.raises(Fenced):
        made.publish("commit", [], [], Offsets({}))
