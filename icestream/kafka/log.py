"""A topic whose latest record per key is the truth, read from its beginning and followed.

Used by the stores of a distributed worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet
from icestream.kafka.topics import Topics

_LOG = logging.getLogger(__name__)
_RECORDS_A_CALL = 500


@dataclass(frozen=True)
class LogRecord:
    offset: int
    key: bytes
    value: bytes | None


class TopicLog:
    """Tells every record to `on_record`, in order, always from the thread of the log."""

    def __init__(
        self, settings: Mapping[str, str], topic: str, on_record: Callable[[LogRecord], None]
    ) -> None:
        self._topic = topic
        self._on_record = on_record
        self._topics = Topics(settings)
        self._settings = settings
        self._reached: dict[Partition, int] = {}
        self._moved = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._follow, name=f"log-{topic}", daemon=True)

    def start(self) -> None:
        """Follow the topic from its beginning; `read_to_end` waits for what is there already.

        Does nothing the second time: whoever starts several things tries all of them again.
        """
        if self._thread.ident is not None:
            return
        facts = self._topics.describe([self._topic]).get(self._topic)
        if facts is None:
            raise SourceUnavailable(f"topic '{self._topic}' does not exist")
        self._reached = {Partition(self._topic, number): 0 for number in range(facts.partitions)}
        self._thread.start()

    def read_to_end(self, seconds: float = ANSWER_SECONDS) -> None:
        """Return when every record that is committed now has been told.

        However many there are: it gives up when none has come for so many seconds.
        """
        ends = self._topics.ends(self._reached)

        def unread() -> dict[Partition, int]:
            return {p: self._reached[p] for p in ends if self._reached[p] < ends[p]}

        with self._moved:
            while before := unread():
                if not self._moved.wait_for(lambda before=before: unread() != before, seconds):  # type: ignore[misc]
                    raise SourceUnavailable(
                        f"topic '{self._topic}' was not read to its end, nothing came for {seconds:.0f} s; "
                        "is Kafka well?"
                    )

    def read_past(self, offset: int, seconds: float = ANSWER_SECONDS) -> None:
        """Return when the record at this offset of the topic's only partition has been told.

        Kafka may show a committed transaction to readers a moment after it told the writer.
        """
        only = Partition(self._topic, 0)
        with self._moved:
            if not self._moved.wait_for(lambda: self._reached[only] > offset, seconds):
                raise SourceUnavailable(
                    f"record {offset} of topic '{self._topic}' did not come back within {seconds:.0f} s"
                )

    def close(self) -> None:
        self._closing = True
        if self._thread.is_alive():
            self._thread.join(5)

    def _follow(self) -> None:
        while not self._closing:
            try:
                self._read()
            except Exception:  # the thread's edge: a worker that follows no more would believe old configs
                _LOG.exception("reading topic '%s' begins again where it ended", self._topic)
                time.sleep(1)

    def _read(self) -> None:
        consumer = Consumer(
            quiet(
                {
                    **self._settings,
                    "group.id": f"reader-of-{self._topic}",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                }
            )
        )
        consumer.assign([TopicPartition(topic, number, at) for (topic, number), at in self._reached.items()])
        try:
            while not self._closing:
                for message in consumer.consume(_RECORDS_A_CALL, timeout=0.05):
                    self._take(message)
        finally:
            consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            _LOG.debug("reading topic '%s': %s", self._topic, error.str())
            return
        offset = cast(int, message.offset())
        if error is None:
            key, value = message.key(), message.value()
            if isinstance(key, bytes):
                self._tell(LogRecord(offset, key, value))
            offset += 1
        with self._moved:
            self._reached[Partition(self._topic, cast(int, message.partition()))] = offset
            self._moved.notify_all()

    def _tell(self, record: LogRecord) -> None:
        try:
            self._on_record(record)
        except Exception:  # the log's edge: one strange record must not end the reading of all others
            _LOG.exception("record %d of topic '%s' was left out", record.offset, self._topic)


class LogWriter:
    """Sends records and waits for none of them: the last one of a key is what counts."""

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        with kafka_errors(f"connecting to write topic '{topic}'"):
            self._producer = Producer(
                quiet(
                    {
                        **settings,
                        "enable.idempotence": True,
                        "partitioner": "murmur2_random",
                        "linger.ms": 5,
                        "message.timeout.ms": 60_000,
                    }
                )
            )

    def send(self, key: bytes, value: bytes | None) -> None:
        try:
            self._producer.produce(self._topic, key=key, value=value)
        except BufferError:
            # Kafka is away, and the buffer is full of older statuses.
            _LOG.warning("a record for topic '%s' was dropped: Kafka does not answer", self._topic)
        self._producer.poll(0)

    def flush(self, seconds: float = ANSWER_SECONDS) -> bool:
        """Whether Kafka has all that was sent."""
        return self._producer.flush(seconds) == 0

    def close(self) -> None:
        deadline = time.monotonic() + 3
        while len(self._producer) and time.monotonic() < deadline:
            self._producer.flush(0.5)
        self._producer.purge()
