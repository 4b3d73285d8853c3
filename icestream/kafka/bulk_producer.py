"""Sends records of source jobs in bulk, in order, with or without transactions. Called by their outlets."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.kafka.clients import ANSWER_SECONDS, flush, kafka_errors, quiet

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
class Outgoing:
    """Records for one topic, in their order."""

    topic: str
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    """None: no record has one."""
    headers: Sequence[Sequence[tuple[str, bytes | None]]] | None = None

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
            self._producer = Producer(quiet({**_SETTINGS, **settings, **own}))
            if transactional_id:
                # Ends what an older producer of this id left open, and fences it.
                self._producer.init_transactions(ANSWER_SECONDS)

    def begin(self) -> None:
        """Open a transaction if none is."""
        if not self._is_open:
            with kafka_errors(self._doing):
                self._producer.begin_transaction()
            self._is_open = True

    def send(self, outgoing: Outgoing) -> None:
        """Queue records; waits while the queue is full."""
        if outgoing.headers is None:
            self._send_batch(outgoing)
        else:
            self._send_singly(outgoing)
        self._raise_failures()

    def _send_batch(self, outgoing: Outgoing) -> None:
        waiting: list[dict[str, Any]] = [{"value": value} for value in outgoing.values]
        if outgoing.keys is not None:
            for record, key in zip(waiting, outgoing.keys, strict=True):
                record["key"] = key
        with kafka_errors(self._doing):
            while waiting:
                self._make_room(len(waiting))
                self._producer.produce_batch(outgoing.topic, waiting, on_delivery=self._failed)
                waiting = self._not_taken(outgoing.topic, waiting)

    def _send_singly(self, outgoing: Outgoing) -> None:
        """The client has no bulk call for records with headers."""
        assert outgoing.headers is not None
        keys = outgoing.keys or [None] * len(outgoing)
        with kafka_errors(self._doing):
            for key, value, headers in zip(keys, outgoing.values, outgoing.headers, strict=True):
                self._make_room(1)
                self._send_one(outgoing.topic, value, key, headers)

    def _send_one(
        self, topic: str, value: bytes | None, key: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> None:
        waited = 0.0
        while True:
            try:
                self._producer.produce(topic, value, key, headers=list(headers), on_delivery=self._failed)
                return
            except KafkaException as error:
                raise _for_good(error.args[0], topic, value) from None
            except BufferError:  # the queue has room for the record, but not for its bytes
                if waited >= ANSWER_SECONDS:
                    raise SourceUnavailable("Kafka takes no records; is the broker up?") from None
                self._producer.poll(0.05)
                waited += 0.05

    def send_keyed(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        with kafka_errors(self._doing):
            for key, value in records:
                self._make_room(1)
                self._producer.produce(topic, key=key, value=value, on_delivery=self._failed)
        self._raise_failures()

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

    def _make_room(self, count: int) -> None:
        needed = min(count, _QUEUE_MESSAGES)
        waited = 0.0
        while len(self._producer) + needed > _QUEUE_MESSAGES:
            before = len(self._producer)
            self._producer.poll(0.05)
            waited = waited + 0.05 if len(self._producer) >= before else 0.0
            if waited >= ANSWER_SECONDS:
                raise SourceUnavailable("Kafka takes no records; is the broker up?")
        self._producer.poll(0)

    def _not_taken(self, topic: str, sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records that did not fit into the queue; any other refusal is for good."""
        refused = [(record, error) for record in sent if (error := record.pop("_error", None)) is not None]
        for record, error in refused:
            if isinstance(error, KafkaError) and error.code() == KafkaError._QUEUE_FULL:
                continue
            raise _for_good(error, topic, record["value"])
        if refused:
            self._producer.poll(0.05)
        return [record for record, _ in refused]

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
