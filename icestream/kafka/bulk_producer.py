"""Sends records of sources in bulk, in order, with or without transactions. For `jobs.sources.writers`."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from confluent_kafka import KafkaError, KafkaException, Producer

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.kafka.clients import ANSWER_SECONDS, flush, kafka_errors, quiet

ANY_PARTITION = -1
"""The key of a record, or the producer, chooses its partition."""
_WHEN_SENT = 0
_QUEUE_MESSAGES = 400_000
_SETTINGS: Mapping[str, str | int | bool] = {
    # Records keep their order and arrive once, whatever has to be sent again.
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": _QUEUE_MESSAGES,
    "queue.buffering.max.kbytes": 256 * 1024,
    # As large as a request of Java's producer.
    "message.max.bytes": 1024 * 1024,
    # Keys land in the partitions where Java's producer puts them.
    "partitioner": "murmur2_random",
    # Records without a key that come together stay together, as with Java's producer.
    "sticky.partitioning.linger.ms": 100,
    "delivery.report.only.error": True,
}


@dataclass(frozen=True)
class OutgoingColumns:
    """Records for one topic, in their order."""

    topic: str
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    """None: no record has one."""
    headers: Sequence[list[tuple[str, bytes | None]] | None] | None = None
    timestamps: Sequence[int] | None = None
    """Milliseconds since 1970; None: the time at which each is sent."""
    partitions: Sequence[int] | None = None
    """None: ANY_PARTITION for all."""

    def __len__(self) -> int:
        return len(self.values)


class BulkProducer:
    """After an error from `send` or `commit` it is of no more use, except where said."""

    def __init__(self, settings: Mapping[str, str], transactional_id: str | None = None) -> None:
        self._doing = f"transaction of {transactional_id}" if transactional_id else "sending records"
        own = {"transactional.id": transactional_id} if transactional_id else {}
        self._failures: list[KafkaError] = []
        self._is_open = False
        with kafka_errors(self._doing):
            self._producer = Producer(
                {**quiet({**_SETTINGS, **settings, **own}), "on_delivery": self._failed}
            )
            if transactional_id:
                # Ends what an older producer of this id left open, and fences it.
                self._producer.init_transactions(ANSWER_SECONDS)

    def begin(self) -> None:
        """Open a transaction if none is."""
        if not self._is_open:
            with kafka_errors(self._doing):
                self._producer.begin_transaction()
            self._is_open = True

    def send(self, outgoing: OutgoingColumns) -> None:
        """Queue records; waits while the queue is full."""
        size = len(outgoing)
        # One by one: the client's bulk call (2.16) takes neither headers nor timestamps, gives librdkafka one
        # partition for all, and costs more CPU, as each record has to be a dict. By position, which is fast;
        # the two that are None would be a callback for this record.
        columns = (
            outgoing.values,
            outgoing.keys or repeat(None, size),
            outgoing.partitions or repeat(ANY_PARTITION, size),
            repeat(None, size),
            repeat(None, size),
            outgoing.timestamps or repeat(_WHEN_SENT, size),
            outgoing.headers or repeat(None, size),
        )
        produce: Callable[..., None] = self._producer.produce
        self._producer.poll(0)
        with kafka_errors(self._doing):
            for record in zip(*columns, strict=True):
                while True:
                    try:
                        produce(outgoing.topic, *record)
                        break
                    except BufferError:
                        self._wait_for_room()
                    except KafkaException as error:
                        raise _for_good(error.args[0], outgoing.topic, record[0]) from None
        self._raise_failures()

    def send_keyed(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        self.send(OutgoingColumns(topic, [value for _, value in records], [key for key, _ in records]))

    @property
    def has_room(self) -> bool:
        """Whether a slice can be sent without waiting for Kafka."""
        self._producer.poll(0)
        return len(self._producer) < _QUEUE_MESSAGES // 2

    def flush(self, seconds: float) -> bool:
        """Whether Kafka has all records; those that it lacks still wait for it."""
        with kafka_errors(self._doing):
            left = flush(self._producer, seconds)
        self._raise_failures()
        return left == 0

    def commit(self) -> None:
        """End the transaction: everything that was sent since `begin` becomes visible together."""
        with kafka_errors(self._doing):
            self._producer.commit_transaction(ANSWER_SECONDS)
        self._raise_failures()
        self._is_open = False

    def close(self) -> None:
        # A fenced producer complains that it cannot end its transaction; the newer one has done that.
        with warnings.catch_warnings(), contextlib.suppress(KafkaException, SystemError):
            warnings.simplefilter("ignore", RuntimeWarning)
            # What a broker that is away has not taken would keep the producer from closing.
            self._producer.purge()
            self._producer.close()

    def abandon(self) -> None:
        """Let go of it without waiting: closing waits for a broker that may be away."""
        threading.Thread(target=self.close, name="abandoned-producer", daemon=True).start()

    def _wait_for_room(self) -> None:
        waited = 0.0
        before = len(self._producer)
        while len(self._producer) >= before:
            if waited >= ANSWER_SECONDS:
                raise SourceUnavailable("Kafka takes no records; is the broker up?")
            self._producer.poll(0.05)
            waited += 0.05

    def _failed(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._failures.append(error)

    def _raise_failures(self) -> None:
        if self._failures:
            failures, self._failures = self._failures, []
            with kafka_errors(f"{self._doing}: {len(failures)} were not delivered"):
                raise KafkaException(failures[0])


def _for_good(error: object, topic: str, value: bytes | None) -> Exception:
    """Why Kafka's client did not take a record."""
    if isinstance(error, KafkaError) and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return FatalError(
            f"a record of {len(value or b'')} bytes for topic '{topic}' is larger than "
            "Kafka's client may send; raise producer.override.max.request.size"
        )
    return KafkaException(error)
