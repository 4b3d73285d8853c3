"""Kafka transactions of one stable id: messages and group offsets, all or nothing. For the publisher of a
sink job, replays of dead letters and the config topic."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.deadlines import Overdue, within
from icestream.kafka.clients import ANSWER_SECONDS, flush, kafka_errors, quiet

LARGEST_MESSAGE_BYTES: Final = 100 * 1024 * 1024 - 64 * 1024
"""A broker closes the connection on a request of more than 100 MiB (socket.request.max.bytes)."""
_TRANSACTION_MS: Final = 60_000
_LEAST_TRANSACTION_MS: Final = 1_000
_SHARE: Final = 6
"""A transaction stops taking messages after a sixth of its time: the rest is for what is under way."""
_PURGE_SECONDS: Final = 0.2
_CLOSE_SECONDS: Final = 5.0
_ANY = -1
_FIRST_WINDOW, _LEAST_WINDOW, _MOST_WINDOW = 256 * 1024, 16 * 1024, 8 * 1024 * 1024
_BRISK_SECONDS = 0.5


@dataclass(frozen=True)
class Outgoing:
    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    """None: as the key says."""

    @property
    def size(self) -> int:
        own = len(self.key or b"") + len(self.value or b"")
        return own + sum(len(name) + len(value or b"") for name, value in self.headers)


class TooLarge(FatalError):
    """Kafka takes no message as large as one of these; `at` counts the messages of the transaction.

    Those that were sent together may be refused together; alone, only the one that is too large is.
    """

    def __init__(self, message: str, at: frozenset[int]) -> None:
        super().__init__(message)
        self.at = at


class Purged(SourceUnavailable):
    """Kafka's client has thrown messages away that it had taken."""


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
        timeout_ms: int = _TRANSACTION_MS,
    ) -> None:
        """`timeout_ms` is how long a transaction may take, if the brokers allow so much."""
        self._doing = f"transaction of {transactional_id}"
        self._clock = clock
        self._timeout_ms = timeout_ms
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
    def progress(self) -> float:
        """Grows whenever Kafka has answered, and while a quota keeps it silent. Other threads may read it."""
        return self._answers + min(self._clock(), self._silent_until)

    def close(self) -> None:
        # While its broker is away, one with an open transaction would never be closed.
        with contextlib.suppress(Overdue):
            within(_CLOSE_SECONDS, self._close, f"Kafka: closing the {self._doing}")

    def _close(self) -> None:
        # A fenced producer complains that it cannot end its transaction; the newer one has done that.
        with warnings.catch_warnings(), contextlib.suppress(KafkaException, SystemError):
            warnings.simplefilter("ignore", RuntimeWarning)
            # What a broker that is away has not taken would keep the producer from closing.
            self._producer.purge()
            self._producer.close()

    # -- how --

    @property
    def _answers(self) -> int:
        return self._steps + (self._sending.arrivals if self._sending else 0)

    def _opened(self, settings: Mapping[str, str], transactional_id: str) -> tuple[Producer, float]:
        """A producer whose transactions have their time, or as much of it as the brokers allow."""
        own: dict[str, str | int | bool] = {
            "linger.ms": 5,
            "partitioner": "murmur2_random",
            "message.max.bytes": LARGEST_MESSAGE_BYTES,
            **settings,
            "transactional.id": transactional_id,
        }
        allowed = self._timeout_ms
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
        self._steps = self._answers + 1
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
        self._steps += 1
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


class Window:
    """How many bytes may be under way: what a quota or a slow broker lets through in about a second.

    More would wait in the producer while its transaction runs out of time.
    """

    def __init__(self) -> None:
        self.size = _FIRST_WINDOW

    def passed(self, size: int, seconds: float) -> None:
        """So many bytes have arrived in this time."""
        if seconds > 2 * _BRISK_SECONDS:
            self.size = max(_LEAST_WINDOW, self.size // 2)
        elif seconds < _BRISK_SECONDS and size >= self.size // 2:
            self.size = min(_MOST_WINDOW, self.size * 2)


class Sending:
    """The messages of one transaction. Used within `kafka_errors`, by one thread."""

    def __init__(
        self,
        producer: Producer,
        doing: str,
        window: Window,
        silent_until: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._doing = doing
        self._window = window
        self._silent_until = silent_until
        """Until when a quota keeps the broker silent, by the clock."""
        self._clock = clock
        self._failures: list[tuple[KafkaError, int, Outgoing]] = []
        self._sent = 0
        self._arrived = 0
        self._bytes_sent = 0
        self._bytes_arrived = 0
        self._marked_at = clock()
        self._marked_bytes = 0
        self.arrivals = 0
        """How many messages Kafka has answered for."""
        self.last_offset = -1
        """The highest offset that a message got."""

    def send(self, message: Outgoing) -> None:
        """Wait for room, then queue the message."""
        while self._bytes_sent > self._bytes_arrived and self._under_way + message.size > self._window.size:
            self._wait_for_arrivals()
        self._queue(message, self._sent)
        self._sent += 1
        self._bytes_sent += message.size
        self._producer.poll(0)

    def finish(self) -> None:
        """Wait until all have arrived, for as long as some do."""
        while self._arrived < self._sent and not self._failures:
            # Whatever lingers in the client is sent now.
            before = self._arrived
            flush(self._producer, 0.2)
            if self._arrived == before:
                self._wait_for_arrivals()
        self._raise_failures()

    @property
    def _under_way(self) -> int:
        return self._bytes_sent - self._bytes_arrived

    def _wait_for_arrivals(self) -> None:
        self._raise_failures()
        before, since = self._arrived, self._clock()
        while self._arrived == before and not self._failures:
            self._producer.poll(0.1)
            # A quota may keep the broker silent for longer than it would ever need to answer.
            if self._clock() - max(since, self._silent_until()) > ANSWER_SECONDS:
                raise SourceUnavailable(f"{self._doing}: a message could not be delivered: no answer")
        self._raise_failures()
        self._tell_window()

    def _tell_window(self) -> None:
        passed, seconds = self._bytes_arrived - self._marked_bytes, self._clock() - self._marked_at
        if passed >= self._window.size // 2 or seconds > 2 * _BRISK_SECONDS:
            self._window.passed(passed, seconds)
            self._marked_at, self._marked_bytes = self._clock(), self._bytes_arrived

    def _queue(self, message: Outgoing, at: int) -> None:
        def delivered(error: KafkaError | None, told: Message) -> None:
            # A fenced producer calls with its error under way, which a question to `error` would swallow.
            if error is not None:
                self._failures.append((error, at, message))
            self._arrived += 1
            self.arrivals += 1
            self._bytes_arrived += message.size
            offset = told.offset()
            if offset is not None:
                self.last_offset = max(self.last_offset, offset)

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
                return
            except BufferError:
                self._wait_for_arrivals()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise self._too_large(message, frozenset([at])) from None
                if error.args[0].code() == KafkaError._STATE:
                    # The broker has refused an earlier message meanwhile, and only its report says why.
                    flush(self._producer, ANSWER_SECONDS)
                    self._raise_failures()
                if error.args[0].code() == KafkaError._FATAL:
                    # Says no more than that; whoever asks again hears why, such as of a newer producer.
                    self._producer.begin_transaction()
                raise

    def _raise_failures(self) -> None:
        if not self._failures:
            return
        refused = {
            at: it for error, at, it in self._failures if error.code() == KafkaError.MSG_SIZE_TOO_LARGE
        }
        if refused:
            raise self._too_large(max(refused.values(), key=lambda message: message.size), frozenset(refused))
        first = self._failures[0][0]
        reason = first.str()
        if first.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
            raise Purged(f"{self._doing}: {reason}")
        raise SourceUnavailable(f"{self._doing}: a message could not be delivered: {reason}")

    def _too_large(self, message: Outgoing, at: frozenset[int]) -> TooLarge:
        return TooLarge(
            f"{self._doing}: a message of {message.size:,} bytes is too large for topic '{message.topic}'; "
            "raise its max.message.bytes, and producer.override.max.request.size if that is set",
            at,
        )
