"""The compacted topic of source offsets, read to its end. Called by the offset stores of source jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import cast

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from icestream.api.errors import PreconditionError, SourceUnavailable
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet
from icestream.kafka.topics import Topics

_COMPACTED = {"cleanup.policy": "compact"}
_READ_SECONDS = 60.0
"""An open transaction of another connector, which has to end first, lasts as long at most."""


def prepare_offset_topic(settings: Mapping[str, str], topic: str, partitions: int, replication: int) -> None:
    """Create the topic if it is missing."""
    topics = Topics(settings)
    if topic in topics.describe([topic]):
        return
    brokers = topics.brokers()
    if replication > brokers:
        raise PreconditionError(
            f"topic '{topic}' should have {replication} replicas, but there are {brokers} broker(s); set "
            "offset.storage.replication.factor to what the cluster can hold, or to -1 for its default"
        )
    topics.create(topic, partitions, replication, _COMPACTED)


def read_offset_topic(
    settings: Mapping[str, str],
    topic: str,
    *,
    only_committed: bool,
    clock: Callable[[], float] = time.monotonic,
) -> list[tuple[bytes, bytes | None]]:
    """All records that the topic has now, in order of each partition; none if it does not exist."""
    doing = f"reading topic '{topic}'"
    facts = Topics(settings).describe([topic]).get(topic)
    if facts is None:
        return []
    with kafka_errors(doing):
        partitions = [TopicPartition(topic, number) for number in range(facts.partitions)]
        admin = AdminClient(quiet(settings))
        begins, ends = (_offsets(admin, partitions, spec) for spec in _begin_and_end())
        left = {number: end for number, end in ends.items() if end > begins[number]}
        if not left:
            return []
        consumer = Consumer(
            quiet(
                {
                    **settings,
                    "group.id": f"reader-of-{topic}",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed" if only_committed else "read_uncommitted",
                    "fetch.wait.max.ms": 100,
                }
            )
        )
        try:
            consumer.assign([TopicPartition(topic, number, begins[number]) for number in left])
            return _read(consumer, left, clock, doing)
        finally:
            consumer.close()


def _begin_and_end() -> tuple[OffsetSpec, OffsetSpec]:
    return OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]


def _offsets(admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
    # Uncommitted ends: what an open transaction holds back must have become visible or void before we go on.
    futures = admin.list_offsets(
        dict.fromkeys(partitions, spec),
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=ANSWER_SECONDS,
    )
    return {asked.partition: future.result(ANSWER_SECONDS).offset for asked, future in futures.items()}


def _read(
    consumer: Consumer, left: dict[int, int], clock: Callable[[], float], doing: str
) -> list[tuple[bytes, bytes | None]]:
    found: list[tuple[bytes, bytes | None]] = []
    deadline = clock() + _READ_SECONDS
    while left:
        if clock() > deadline:
            raise SourceUnavailable(f"{doing}: no end after {_READ_SECONDS:.0f} s; is Kafka well?")
        for message in consumer.consume(1000, timeout=0.1):
            number, offset = cast(int, message.partition()), cast(int, message.offset())
            error = message.error()
            if error is None:
                if number in left and offset < left[number] and isinstance(message.key(), bytes):
                    found.append((cast(bytes, message.key()), message.value()))
                offset += 1
            elif error.code() != KafkaError._PARTITION_EOF:
                if not error.retriable():
                    raise KafkaException(error)
                continue
            if number in left and offset >= left[number]:
                del left[number]
    return found
