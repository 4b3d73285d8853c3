"""A topic read from given offsets onwards, committed records only, by whoever asks for the next ones.

No group: whoever reads keeps the positions. Used by coordinators that follow a topic of events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import LeftBehind, LeftRecord
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet

_RECORDS_A_CALL = 500


@dataclass(frozen=True)
class TopicRecord:
    partition: int
    offset: int
    value: bytes | None


class TopicFollower:
    """Called from one thread."""

    def __init__(self, settings: Mapping[str, str], topic: str, start: Mapping[int, int]) -> None:
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
                        "isolation.level": "read_committed",
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
                    found.append(TopicRecord(number, offset, message.value()))
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
        if not error.retriable() and error.fatal():
            raise KafkaException(error)

    def close(self) -> None:
        self._consumer.close()


def read_to_end(
    settings: Mapping[str, str],
    topic: str,
    start: Mapping[Partition, int],
    ends: Offsets,
    clock: Callable[[], float],
) -> LeftBehind:
    """All records up to `ends`. SourceUnavailable if nothing comes for a while: a transaction is open."""
    follower = TopicFollower(settings, topic, {partition.number: at for partition, at in start.items()})
    records: list[LeftRecord] = []
    try:
        before, moved = dict(follower.positions), clock()
        while any(follower.positions[partition.number] < ends[partition] for partition in ends):
            records += [LeftRecord(one.partition, one.offset, one.value) for one in follower.read(1.0)]
            if before != follower.positions:
                before, moved = dict(follower.positions), clock()
            elif clock() - moved > ANSWER_SECONDS:
                raise SourceUnavailable(
                    f"topic '{topic}' has a transaction that is not over: somebody still writes, or was "
                    "killed; Kafka ends it after its transaction.timeout.ms"
                )
        return LeftBehind(records, dict(follower.positions))
    finally:
        follower.close()
