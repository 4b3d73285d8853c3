"""Kafka's part of a coordinator: control topic, offsets of `<group>-coord`, the workers' group."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icestream.api.errors import FatalError, NotReadyError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.iceberg.coordinator.rounds import SourceState
from icestream.kafka.group_admin import set_group_offsets
from icestream.kafka.group_members import GroupMembers
from icestream.kafka.log import LogWriter
from icestream.kafka.topic_follower import TopicFollower, TopicRecord
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions

_log = logging.getLogger(__name__)

_MESSAGE_LIMIT = {"max.message.bytes": str(100 * 1024 * 1024)}
_REPLICATION = 3


@dataclass(frozen=True)
class ControlSettings:
    """Which topic and group, and how to reach them."""

    topic: str
    group: str
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    transactional_id: str | None
    """None: without transactions; then only the tables shut an older coordinator out."""
    timeout_ms: int = 60_000

    @property
    def own_group(self) -> str:
        return f"{self.group}-coord"


class KafkaControlTopic:
    """The control topic of one job, read from where its group says that all before is in the tables."""

    def __init__(self, settings: ControlSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics
        facts = topics.describe([settings.topic]).get(settings.topic)
        if facts is None:
            topics.create(settings.topic, 1, min(_REPLICATION, topics.brokers()), _MESSAGE_LIMIT)
            facts = topics.describe([settings.topic])[settings.topic]
        self._partitions = [Partition(settings.topic, number) for number in range(facts.partitions)]
        self._key = str(uuid.uuid4()).encode()
        # First, because it ends the transaction that an earlier coordinator may have left open.
        self._writer = _writer(settings)
        try:
            self._follower = TopicFollower(settings.reads, settings.topic, self._start())
        except BaseException:
            self._writer.close()
            raise

    @property
    def positions(self) -> Mapping[int, int]:
        return self._follower.positions

    def _start(self) -> dict[int, int]:
        """From the group's offsets; from the beginning where it has none, never from the end."""
        group = self._topics.group_offsets(self._settings.own_group, self._partitions)
        beginnings = self._topics.beginnings(self._partitions)
        ends = self._topics.ends(self._partitions)
        start = {p: group[p].next if p in group else beginnings[p] for p in self._partitions}
        for partition, at in start.items():
            if at < beginnings[partition]:
                raise FatalError(
                    f"events {at} to {beginnings[partition] - 1} of {partition} were removed by the topic's "
                    "retention before this job had read them: files that they told of may be missing in the "
                    f"tables. To go on, set the offset of group '{self._settings.own_group}' to "
                    f"{beginnings[partition]}"
                )
            if at > ends[partition]:
                raise FatalError(
                    f"group '{self._settings.own_group}' is at {at} of {partition}, which ends at "
                    f"{ends[partition]}: the topic was deleted and created again. Give the connector and "
                    "this job another control topic"
                )
        return {partition.number: at for partition, at in start.items()}

    def read(self, seconds: float) -> Sequence[TopicRecord]:
        return self._follower.read(seconds)

    def ends(self) -> Mapping[int, int]:
        ends = self._topics.ends(self._partitions)
        return {partition.number: ends[partition] for partition in ends}

    def has_grown(self) -> bool:
        facts = self._topics.describe([self._settings.topic]).get(self._settings.topic)
        return facts is not None and facts.partitions > len(self._partitions)

    def write(self, values: Sequence[bytes], offsets: Offsets, note: str) -> None:
        messages = [Outgoing(self._settings.topic, self._key, value) for value in values]
        self._writer.write(messages, offsets, note)

    def prove(self) -> None:
        self._writer.prove(self._partitions[0])

    def close(self) -> None:
        self._follower.close()
        self._writer.close()


def _writer(settings: ControlSettings) -> Transactions | _Untransacted:
    if settings.transactional_id is None:
        return _Untransacted(settings)
    return Transactions(
        settings.writes, settings.transactional_id, settings.own_group, timeout_ms=settings.timeout_ms
    )


class _Untransacted:
    """Events first, then the offsets: a crash in between tells an event twice, and loses none."""

    def __init__(self, settings: ControlSettings) -> None:
        self._settings = settings
        self._log = LogWriter(settings.writes, settings.topic)

    def write(self, messages: Sequence[Outgoing], offsets: Offsets, note: str) -> int:
        for message in messages:
            self._log.send(message.key or b"", message.value)
        if not self._log.flush():
            raise SourceUnavailable(f"topic '{self._settings.topic}' takes no events; is Kafka well?")
        if offsets:
            try:
                set_group_offsets(self._settings.reads, self._settings.own_group, offsets)
            except NotReadyError as error:
                # The Java coordinator holds it. The tables know what they have: it is only read again.
                _log.warning("%s", error)
        return -1

    def prove(self, partition: Partition) -> None:
        return

    def close(self) -> None:
        self._log.close()


class SourceGroup:
    """The consumer group with which the workers read."""

    def __init__(self, settings: Mapping[str, str], group: str, topics: Topics) -> None:
        self._group = group
        self._topics = topics
        self._members = GroupMembers(settings, group)

    def state(self) -> SourceState:
        assigned = frozenset(p for member in self._members.assignments() for p in member)
        if not assigned:
            return SourceState()
        committed = self._topics.group_offsets(self._group, assigned)
        beginnings, ends = self._topics.beginnings(assigned), self._topics.ends(assigned)
        spans = {
            p: (max(committed[p].next if p in committed else 0, beginnings[p]), ends[p]) for p in assigned
        }
        return SourceState(assigned, {p: span for p, span in spans.items() if span[0] < span[1]})


def keep_group_alive(settings: Mapping[str, str], group: str, topic: str) -> None:
    """Make a group without members, or keep it from being forgotten, by an offset that nobody reads."""
    set_group_offsets(settings, group, Offsets({Partition(topic, 0): 0}))
