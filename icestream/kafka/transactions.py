"""Kafka transactions of one stable id: messages and group offsets, all or nothing. For channels, replays and
the config topic."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from icestream.api.offsets import Offsets, Partition
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet
from icestream.kafka.sending import Outgoing, Purged, Sending, TooLarge, Window

__all__ = ["LARGEST_MESSAGE_BYTES", "Outgoing", "Purged", "TooLarge", "Transactions"]

LARGEST_MESSAGE_BYTES: Final = 100 * 1024 * 1024 - 64 * 1024
"""A broker closes the connection on a request of more than 100 MiB (socket.request.max.bytes)."""
_TRANSACTION_MS: Final = 60_000
_LEAST_TRANSACTION_MS: Final = 1_000
_SHARE: Final = 6
"""A transaction stops taking messages after a sixth of its time: the rest is for what is under way."""
_PURGE_SECONDS: Final = 0.2


class Transactions:
    """A transactional producer with a stable id. Opening it fences every older one with the same id.

    After an error the outcome is open and it is of no more use, except where said: a new one ends what is
    left.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        transactional_id: str,
        group: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._doing = f"transaction of {transactional_id}"
        self._clock = clock
        self._window = Window()
        self._silent_until = 0.0
        self._sending: Sending | None = None
        self._steps = 0
        self._producer, self._seconds = self._opened(settings, transactional_id)
        with kafka_errors(self._doing, self._producer.poll):
            # Never subscribed: it only tells the coordinator which group the offsets belong to.
            member = Consumer(quiet({**settings, "group.id": group, "enable.auto.commit": False}))
            self._group = member.consumer_group_metadata()
            member.close()

    def write(self, messages: Iterable[Outgoing], offsets: Offsets, note: str) -> int:
        """Commit messages and offsets together; `note` is stored beside each offset.

        Returns the highest offset that a message got, -1 without messages.
        """
        with kafka_errors(self._doing, self._producer.poll):
            sending = self._begun()
            for message in messages:
                sending.send(message)
            sending.finish()
            self._end(offsets, note)
            return sending.last_offset

    def write_some(
        self,
        messages: Iterator[Outgoing],
        last: Sequence[Outgoing],
        offsets_after: Callable[[int], Offsets],
        note: str,
        *,
        singly: bool = False,
    ) -> int:
        """Commit as many messages as Kafka takes in a part of a transaction's time, and the offsets that go
        with so many. `last` follows the last message, in the same transaction. Returns how many there were.

        After TooLarge and Purged nothing is written, and it can be used again.
        """
        with kafka_errors(self._doing, self._producer.poll):
            sending, began = self._begun(), self._clock()
            count = 0
            try:
                for message in messages:
                    if count and self._clock() - began > self._seconds / _SHARE:
                        break
                    sending.send(message)
                    count += 1
                    if singly:
                        sending.finish()
                else:
                    for message in last:
                        sending.send(message)
                sending.finish()
            except (TooLarge, Purged):
                self._abort(began)
                raise
            self._end(offsets_after(count), note)
            return count

    def prove(self, partition: Partition) -> None:
        """Ask Kafka whether a newer one has fenced this one: Fenced. Nothing is written."""
        with kafka_errors(self._doing, self._producer.poll):
            began = self._clock()
            self._producer.begin_transaction()
            self._send_offsets(Offsets({partition: 0}), "")
            self._abort(began)

    @property
    def progress(self) -> int:
        """Changes whenever Kafka has answered. Other threads may read it."""
        return self._steps + (self._sending.arrivals if self._sending else 0)

    def close(self) -> None:
        # A fenced producer complains that it cannot end its transaction; the newer one has done that.
        with warnings.catch_warnings(), contextlib.suppress(KafkaException, SystemError):
            warnings.simplefilter("ignore", RuntimeWarning)
            # What a broker that is away has not taken would keep the producer from closing.
            self._producer.purge()
            self._producer.close()

    # -- how --

    def _opened(self, settings: Mapping[str, str], transactional_id: str) -> tuple[Producer, float]:
        """A producer whose transactions have a minute, or as much of it as the brokers allow."""
        own: dict[str, str | int | bool] = {
            "linger.ms": 5,
            "partitioner": "murmur2_random",
            "message.max.bytes": LARGEST_MESSAGE_BYTES,
            **settings,
            "transactional.id": transactional_id,
        }
        allowed = _TRANSACTION_MS
        while True:
            limited = quiet({**own, **_limits(own, allowed)})
            with kafka_errors(self._doing):
                producer = Producer({**limited, "throttle_cb": self._throttled})
            with kafka_errors(self._doing, producer.poll):
                try:
                    producer.init_transactions(ANSWER_SECONDS)
                    return producer, allowed / 1000
                except KafkaException as error:
                    refused = error.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT
                    if not refused or allowed // 2 < _LEAST_TRANSACTION_MS:
                        raise
            allowed //= 2

    def _begun(self) -> Sending:
        self._producer.begin_transaction()
        self._steps = self.progress + 1
        self._sending = Sending(
            self._producer, self._doing, self._window, lambda: self._silent_until, self._clock
        )
        return self._sending

    def _end(self, offsets: Offsets, note: str) -> None:
        began = self._clock()
        self._steps += 1
        if offsets:
            self._patiently(lambda: self._send_offsets(offsets, note), began)
        self._steps += 1
        self._patiently(lambda: self._producer.commit_transaction(ANSWER_SECONDS), began)

    def _abort(self, began: float) -> None:
        self._patiently(lambda: self._producer.abort_transaction(ANSWER_SECONDS), began)
        # librdkafka may throw away what it is given now, with what it had: its threads hear of it late.
        self._producer.poll(_PURGE_SECONDS)

    def _send_offsets(self, offsets: Offsets, note: str) -> None:
        positions = [
            TopicPartition(topic, number, offsets[Partition(topic, number)], metadata=note)
            for topic, number in offsets
        ]
        self._producer.send_offsets_to_transaction(positions, self._group, ANSWER_SECONDS)

    def _patiently(self, call: Callable[[], Any], began: float) -> None:
        """A broker that a quota keeps silent answers later: the call may be repeated."""
        while True:
            try:
                call()
                return
            except KafkaException as error:
                told = error.args[0]
                late = told.code() == KafkaError._TIMED_OUT and told.retriable()
                is_silenced = self._clock() < self._silent_until + ANSWER_SECONDS
                if not late or not is_silenced or self._clock() - began > self._seconds:
                    raise

    def _throttled(self, event: Any) -> None:
        self._steps += 1
        self._silent_until = max(self._silent_until, self._clock() + event.throttle_time)


def _limits(settings: Mapping[str, str | int | bool], allowed: int) -> dict[str, int]:
    """librdkafka wants messages to have no more time than their transaction."""
    limits = {"transaction.timeout.ms": allowed}
    if int(settings.get("message.timeout.ms", 0)) > allowed:
        limits["message.timeout.ms"] = allowed
    return limits
