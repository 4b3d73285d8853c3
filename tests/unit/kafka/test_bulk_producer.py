"""Records of source jobs on their way into Kafka's client; no broker is needed to queue them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.kafka.bulk_producer import BulkProducer, OutgoingColumns

Headers = list[tuple[str, bytes | None]]


@pytest.fixture
def producer() -> Iterator[BulkProducer]:
    made = BulkProducer({"bootstrap.servers": "127.0.0.1:1"})
    yield made
    made.close()


HEADERS: list[Headers] = [[("a", b"1"), ("a", None)], []]


@pytest.mark.parametrize("headers", [None, HEADERS])
@pytest.mark.parametrize("keys", [None, [b"k", None]])
def test_records_with_and_without_keys_and_headers_are_queued(
    producer: BulkProducer,
    keys: list[bytes | None] | None,
    headers: list[Headers] | None,
) -> None:
    producer.send(OutgoingColumns("t", [b"v", None], keys, headers))
    assert producer.has_room
    assert not producer.flush(0)


@pytest.mark.parametrize("headers", [None, [[]]])
def test_a_record_that_is_too_large_is_named(producer: BulkProducer, headers: list[Headers] | None) -> None:
    with pytest.raises(FatalError, match=r"2000000 bytes for topic 't'.*max\.request\.size"):
        producer.send(OutgoingColumns("t", [b"x" * 2_000_000], None, headers))


def test_a_record_that_kafka_does_not_take_is_told() -> None:
    producer = BulkProducer({"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": "100"})
    producer.send(OutgoingColumns("t", [b"v"], timestamps=[1], partitions=[0]))
    with pytest.raises(SourceUnavailable, match="1 were not delivered"):
        producer.flush(60)
    producer.close()


def test_records_wait_for_room_and_none_is_left_out() -> None:
    """The queue has room for ten; those that no broker takes make room in the end, and each is told of."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "queue.buffering.max.messages": "10"}
    producer = BulkProducer({**settings, "message.timeout.ms": "100"})
    with pytest.raises(SourceUnavailable, match=r"(1\d|20) were not delivered"):
        producer.send(OutgoingColumns("t", [b"v"] * 20, partitions=[0] * 20))
    with pytest.raises(SourceUnavailable, match="10 were not delivered"):
        producer.flush(60)
    producer.close()
