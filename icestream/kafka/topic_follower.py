"""A topic read from given offsets onwards, or to where it ends, by whoever asks for the next records.

No group: whoever reads keeps the positions. Used by coordinators that follow a topic of events, and by
readers of a whole topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet

_RECORDS_A_CALL = 500


@dataclass(frozen=True)
class TopicRecord:
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None


class TopicFollower:
    """Called from one thread."""

    def __init__(
        self,
        settings: Mapping[str, str],
        topic: str,
        start: Mapping[int, int],
        *,
        only_committed: bool = True,
    ) -> None:
        self._doing = f"reading topic '{topic}'"
        self._topic = topic
        self.positions = dict(start)
        """The next offset of each partition: all records before it were handed out."""
        with kafka_errors(self._doing):
            self._consumer = Consumer(
                quiet(
                    {
                        **settings,
                        "group.id": f"follower-of-{topic}",
                        "enable.auto.commit": False,
                        "enable.partition.eof": True,
                        "isolation.level": "read_committed" if only_committed else "read_uncommitted",
                        # What is gone was perhaps not read by anybody: no record is passed over in silence.
                        "auto.offset.reset": "error",
                        "fetch.wait.max.ms": 100,
                    }
                )
            )
            self._consumer.assign([TopicPartition(topic, number, at) for number, at in start.items()])

    def read(self, seconds: float) -> list[TopicRecord]:
        """What there is, in the order of each partition; waits for so many seconds if there is nothing."""
        found: list[TopicRecord] = []
        with kafka_errors(self._doing):
            first = self._consumer.poll(seconds)
            if first is None:
                return found
            for message in (first, *self._consumer.consume(_RECORDS_A_CALL, timeout=0)):
                number, offset = cast(int, message.partition()), cast(int, message.offset())
                if (error := message.error()) is None:
                    found.append(TopicRecord(number, offset, message.value(), _bytes(message.key())))
                    offset += 1
                elif error.code() != KafkaError._PARTITION_EOF:
                    self._met(number, error)
                    continue
                self.positions[number] = max(offset, self.positions[number])
        return found

    def _met(self, number: int, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise FatalError(
                f"topic '{self._topic}' no longer has offset {self.positions[number]} of partition {number}, "
                "which was not read yet: raise its retention.ms"
            )
        if not error.retriable():
            raise KafkaException(error)

    def close(self) -> None:
        self._consumer.close()


def read_to_end(
    settings: Mapping[str, str],
    topic: str,
    start: Mapping[Partition, int],
    ends: Offsets,
    *,
    only_committed: bool = True,
    seconds: float = ANSWER_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[TopicRecord], Mapping[int, int]]:
    """All records up to `ends`, and how far the topic was read. SourceUnavailable if there are fewer: where
    nothing comes for so many seconds, a transaction is open."""
    numbers = {partition.number: at for partition, at in start.items()}
    follower = TopicFollower(settings, topic, numbers, only_committed=only_committed)
    records: list[TopicRecord] = []

    def unread() -> dict[int, int]:
        now = follower.positions
        return {p.number: now[p.number] for p in ends if now[p.number] < ends[p]}

    try:
        before, moved = unread(), clock()
        while before:
            records += follower.read(1.0)
            if (after := unread()) != before:
                before, moved = after, clock()
            elif clock() - moved > seconds:
                number, at = min(before.items())
                raise SourceUnavailable(
                    f"topic '{topic}' was not read to its end: nothing came for {seconds:.0f} s at "
                    f"offset {at} of partition {number}. Either a transaction is open in it, which Kafka "
                    "ends after its transaction.timeout.ms, or the partition has no leader"
                )
        return records, dict(follower.positions)
    finally:
        follower.close()


def _bytes(key: object) -> bytes | None:
    return key if isinstance(key, bytes) else None
