"""The one Kafka transaction of a batch: dead letters, control events and group offsets, all or nothing."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.clients import ANSWER_SECONDS, flush, kafka_errors, quiet

_ANY = -1


@dataclass(frozen=True)
class Outgoing:
    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    """None: as the key says."""


class Transactions:
    """A transactional producer with a stable id. Opening it fences every older one with the same id."""

    def __init__(self, settings: Mapping[str, str], transactional_id: str, group: str) -> None:
        self._doing = f"transaction of {transactional_id}"
        with kafka_errors(self._doing):
            self._producer = Producer(
                quiet(
                    {
                        "linger.ms": 5,
                        "partitioner": "murmur2_random",
                        "message.max.bytes": 16 * 1024 * 1024,
                        **settings,
                        "transactional.id": transactional_id,
                        "transaction.timeout.ms": 60_000,
                    }
                )
            )
        with kafka_errors(self._doing, self._producer.poll):
            self._producer.init_transactions(ANSWER_SECONDS)
            # Never subscribed: it only tells the coordinator which group the offsets belong to.
            member = Consumer(quiet({**settings, "group.id": group, "enable.auto.commit": False}))
            self._group = member.consumer_group_metadata()
            member.close()

    def write(self, messages: Iterable[Outgoing], offsets: Offsets, note: str) -> int:
        """Commit messages and offsets together; `note` is stored beside each offset.

        Returns the highest offset that a message got, -1 without messages.
        After an error the outcome is open and this object is of no more use: a new one ends what is left.
        """
        with kafka_errors(self._doing, self._producer.poll):
            self._producer.begin_transaction()
            last = self._produce(messages)
            positions = [
                TopicPartition(topic, number, offsets[Partition(topic, number)], metadata=note)
                for topic, number in offsets
            ]
            if positions:
                self._producer.send_offsets_to_transaction(positions, self._group, ANSWER_SECONDS)
            self._producer.commit_transaction(ANSWER_SECONDS)
            return last

    def _produce(self, messages: Iterable[Outgoing]) -> int:
        failures: list[tuple[KafkaError, Message]] = []
        offsets = [-1]

        def delivered(error: KafkaError | None, message: Message) -> None:
            # A fenced producer calls with its error under way, which a question to `error` would swallow.
            if error is not None:
                failures.append((error, message))
            offsets[0] = max(offsets[0], message.offset() or -1)

        for message in messages:
            while True:
                try:
                    self._producer.produce(
                        message.topic,
                        key=message.key,
                        value=message.value,
                        headers=list(message.headers) or None,
                        partition=_ANY if message.partition is None else message.partition,
                        timestamp=max(message.timestamp_ms or 0, 0),
                        on_delivery=delivered,
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                        raise self._too_large(message.topic, len(message.value or b"")) from None
                    if error.args[0].code() == KafkaError._STATE:
                        # The broker has refused an earlier message meanwhile, and only its report says why.
                        self._raise_refusals(failures, flush(self._producer, ANSWER_SECONDS))
                    raise
        self._raise_refusals(failures, flush(self._producer, ANSWER_SECONDS))
        return offsets[0]

    def _raise_refusals(self, failures: Sequence[tuple[KafkaError, Message]], undelivered: int) -> None:
        for refusal, letter in failures:
            if refusal.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise self._too_large(str(letter.topic()), len(letter))
        if undelivered or failures:
            reason = failures[0][0].str() if failures else "the broker does not answer"
            raise SourceUnavailable(f"{self._doing}: a message could not be delivered: {reason}")

    def _too_large(self, topic: str, size: int) -> FatalError:
        return FatalError(
            f"{self._doing}: a message of {size:,} bytes is too large for topic '{topic}'; raise its "
            "max.message.bytes, and producer.override.max.request.size above 16 MiB"
        )

    def close(self) -> None:
        # A fenced producer complains that it cannot end its transaction; the newer one has done that.
        with warnings.catch_warnings(), contextlib.suppress(KafkaException, SystemError):
            warnings.simplefilter("ignore", RuntimeWarning)
            # What a broker that is away has not taken would keep the producer from closing.
            self._producer.purge()
            self._producer.close()
