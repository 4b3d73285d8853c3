"""The compacted topic of source offsets, read to its end. Called by the offset stores of source jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from icestream.api.errors import PreconditionError
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.topic_follower import read_to_end
from icestream.kafka.topics import Topics

_COMPACTED = {"cleanup.policy": "compact"}
_OPEN_SECONDS = 60.0
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
    topics = Topics(settings)
    facts = topics.describe([topic]).get(topic)
    if facts is None:
        return []
    partitions = [Partition(topic, number) for number in range(facts.partitions)]
    beginnings = topics.beginnings(partitions)
    # What an open transaction holds back must have become visible or void before we go on.
    ends = topics.ends_with_open(partitions)
    filled = [partition for partition in ends if beginnings[partition] < ends[partition]]
    if not filled:
        return []
    records, _ = read_to_end(
        settings,
        topic,
        {partition: beginnings[partition] for partition in filled},
        Offsets({partition: ends[partition] for partition in filled}),
        only_committed=only_committed,
        seconds=_OPEN_SECONDS,
        clock=clock,
    )
    return [(record.key, record.value) for record in records if record.key is not None]
