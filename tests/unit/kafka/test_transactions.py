"""What a transaction says of a message that its broker refuses, however soon the refusal comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from icestream.api.errors import FatalError, Fenced
from icestream.api.offsets import NOTHING
from icestream.kafka import transactions
from icestream.kafka.transactions import Outgoing, Transactions


class Letter:
    def offset(self) -> None:
        return None


class Refused:
    """A producer whose broker refuses the first message before the second one is sent."""

    def __init__(self, settings: object) -> None:
        self._reports: list[Callable[..., None]] = []

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **_: Any) -> None:
        if self._reports:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self._reports.append(on_delivery)

    def flush(self, seconds: float) -> int:
        for report in self._reports:
            report(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), Letter())
        return 0

    def poll(self, seconds: float = 0) -> int:
        return 0

    def init_transactions(self, seconds: float) -> None: ...
    def begin_transaction(self) -> None: ...
    def __len__(self) -> int:
        return 0


class Replaced(Refused):
    """A producer that a newer one has fenced since its first message."""

    def produce(self, topic: str, **_: Any) -> None:
        self._reports.append(lambda *_: None)
        raise KafkaException(KafkaError(KafkaError._FATAL))

    def begin_transaction(self) -> None:
        if self._reports:
            raise KafkaException(KafkaError(KafkaError._FENCED))


class Member:
    def __init__(self, settings: object) -> None: ...
    def consumer_group_metadata(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(transactions, "Producer", Refused)
    monkeypatch.setattr(transactions, "Consumer", Member)
    yield


def test_a_refusal_that_comes_between_two_messages_is_told_as_what_it_is(refused: None) -> None:
    messages = [Outgoing("configs", b"large", b"x" * 199_995), Outgoing("configs", b"commit", b"x")]
    with pytest.raises(FatalError, match=r"200,000 bytes is too large for topic 'configs'"):
        Transactions({}, "connect-cluster", "group").write(messages, NOTHING, "")


def test_a_producer_that_was_replaced_between_two_messages_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "Producer", Replaced)
    monkeypatch.setattr(transactions, "Consumer", Member)
    with pytest.raises(Fenced, match="another manager of this job is alive"):
        Transactions({}, "connect-cluster", "group").write([Outgoing("t", b"k", b"v")], NOTHING, "")


class Accepted(Refused):
    """A producer whose broker takes all that it is given, as the first records of their topics."""

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **_: Any) -> None:
        self._reports.append(on_delivery)

    def flush(self, seconds: float) -> int:
        while self._reports:
            self._reports.pop()(None, First())
        return 0

    def commit_transaction(self, seconds: float) -> None: ...


class First:
    def offset(self) -> int:
        return 0


def test_the_first_record_of_a_topic_has_offset_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for it to come back would not wait for offset -1."""
    monkeypatch.setattr(transactions, "Producer", Accepted)
    monkeypatch.setattr(transactions, "Consumer", Member)
    opened = Transactions({}, "connect-cluster", "group")
    assert opened.write([Outgoing("configs", b"k", b"v")], NOTHING, "") == 0
    assert opened.write([], NOTHING, "") == -1


class Throttled(Accepted):
    """A producer whose broker tells of a quota when it is asked to."""

    throttle: Callable[[Any], None]

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        Throttled.throttle = settings["throttle_cb"]


def test_a_quota_that_keeps_kafka_silent_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for progress waits for as long as the broker said, and no longer."""
    monkeypatch.setattr(transactions, "Producer", Throttled)
    monkeypatch.setattr(transactions, "Consumer", Member)
    clock = SimpleNamespace(now=100.0)
    opened = Transactions({}, "id", "group", clock=lambda: clock.now)
    before = opened.progress
    clock.now = 110.0
    assert opened.progress == before, "time alone is no progress"
    Throttled.throttle(SimpleNamespace(throttle_time=30.0))
    told = []
    for clock.now in (110.0, 120.0, 139.0, 140.0, 141.0, 200.0):
        told.append(opened.progress)
    assert told == sorted(told)
    assert len(set(told[:4])) == 4
    assert len(set(told[3:])) == 1


class Hangs(Accepted):
    """A producer with an open transaction, whose broker is away."""

    go_on = threading.Event()
    closed = threading.Event()

    def purge(self) -> None: ...

    def close(self) -> None:
        self.go_on.wait()
        self.closed.set()


def test_one_that_cannot_be_closed_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "Producer", Hangs)
    monkeypatch.setattr(transactions, "Consumer", Member)
    monkeypatch.setattr(transactions, "_CLOSE_SECONDS", 0.05)
    Transactions({}, "id", "group").close()
    assert not Hangs.closed.is_set()
    Hangs.go_on.set()
    assert Hangs.closed.wait(60)
