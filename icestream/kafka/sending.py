"""Messages on their way to Kafka within one transaction: no more at once than Kafka soon takes. For
`transactions`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.kafka.clients import ANSWER_SECONDS, flush

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
            self.last_offset = max(self.last_offset, told.offset() or -1)

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
