"""What Kafka knows about topics: who they are, how many partitions, from where to where. Used to plan
batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Node,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from icestream.api.errors import SourceUnavailable
from icestream.api.java_regex import java_pattern
from icestream.api.offsets import Offsets, Partition, named
from icestream.api.sink import LeftBehind, LeftRecord
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet

_log = logging.getLogger(__name__)

_CREATE_ATTEMPTS = 4
_COORDINATOR_ATTEMPTS = 10
_COORDINATOR_MOVES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
_CREATE_SECONDS = 5.0
_STABLE_SECONDS = 10.0
"""How long the offsets of a group may wait for the end of a transaction."""
_UNSTABLE_SECONDS = 5.0
_REFRESH_SECONDS = 3.0


@dataclass(frozen=True)
class TopicFacts:
    id: str
    partitions: int
    leaderless: frozenset[int] = frozenset()
    """Partitions that no broker answers for at present."""
    copies: int = 1
    """Of the partition that has fewest."""


@dataclass(frozen=True)
class GroupOffset:
    next: int
    note: str
    """The metadata that whoever committed left beside the offset."""


def is_public(name: str) -> bool:
    """Whether a topic is not one of Kafka's own."""
    return not name.startswith("__")


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Topics whose whole name matches a pattern of Java's."""
    wanted = java_pattern(pattern)
    return [name for name in names if is_public(name) and wanted.fullmatch(name)]


class Topics:
    """Questions to one cluster. Each call asks anew."""

    def __init__(
        self,
        settings: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = dict(settings)
        self._clock = clock
        self._sleep = sleep
        with kafka_errors("connecting to Kafka"):
            self._admin = AdminClient(quiet(settings))

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """Errors as ours. After an outage the client learns anew which brokers there are.

        By itself it does not while it knows no topic: it would ask a broker that died, as the controller of
        the cluster, for minutes.
        """
        try:
            with kafka_errors(doing, self._admin.poll):
                yield
        except SourceUnavailable:
            with suppress(KafkaException):
                self._admin.list_topics(timeout=_REFRESH_SECONDS)
            raise

    def cluster_id(self) -> str:
        with self._asking("asking for the cluster id"):
            described = self._admin.describe_cluster(request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
            return str(described.cluster_id)

    def names(self) -> list[str]:
        with self._asking("listing topics"):
            listed = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
        return sorted(name for name in listed if is_public(name))

    def matching(self, pattern: str) -> list[str]:
        return matching(self.names(), pattern)

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """The topics that exist, by name."""
        wanted = list(names)
        facts: dict[str, TopicFacts] = {}
        if not wanted:
            return facts
        with self._asking(f"describing topics {', '.join(wanted)}"):
            futures = self._admin.describe_topics(TopicCollection(wanted), request_timeout=ANSWER_SECONDS)
            for name, future in futures.items():
                try:
                    described = future.result(ANSWER_SECONDS)
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise
                leaderless = frozenset(one.id for one in described.partitions if not _has_leader(one.leader))
                copies = min((len(one.replicas) for one in described.partitions), default=0)
                facts[name] = TopicFacts(
                    str(described.topic_id), len(described.partitions), leaderless, copies
                )
        return facts

    def ends(self, partitions: Iterable[Partition]) -> Offsets:
        """Where each partition ends for a reader of committed records."""
        return self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def ends_with_open(self, partitions: Iterable[Partition]) -> Offsets:
        """Where each partition ends, records of open transactions included."""
        return self._offsets(partitions, OffsetSpec.latest(), with_open=True)  # type: ignore[no-untyped-call]

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets:
        return self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def _offsets(
        self, partitions: Iterable[Partition], spec: OffsetSpec, *, with_open: bool = False
    ) -> Offsets:
        isolation = IsolationLevel.READ_UNCOMMITTED if with_open else IsolationLevel.READ_COMMITTED
        asked = {TopicPartition(topic, number): spec for topic, number in partitions}
        if not asked:
            return Offsets({})
        with self._asking("asking for offsets"):
            futures = self._admin.list_offsets(
                asked, isolation_level=isolation, request_timeout=ANSWER_SECONDS
            )
            found = {
                Partition(asked_for.topic, asked_for.partition): future.result(ANSWER_SECONDS).offset
                for asked_for, future in futures.items()
            }
            # librdkafka gives no error for partitions whose broker did not answer: their offset is -1001.
            if unknown := [partition for partition, offset in found.items() if offset < 0]:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer for {named(unknown)}"))
            return Offsets(found)

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]:
        """What a consumer group has committed, for the partitions where it has."""
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        try:
            answers = self._committed(group, asked, _STABLE_SECONDS, waits=True)
        except SourceUnavailable:
            # A broker that dies in mid-transaction may keep offsets of it for ever, and then says nothing to
            # those who wait for its end. Whoever goes on from these offsets has fenced its writer before.
            answers = self._committed(group, asked, _UNSTABLE_SECONDS, waits=False)
            _log.warning("group %s has offsets of a transaction that does not end; they do not count", group)
        return {
            Partition(answer.topic, answer.partition): GroupOffset(answer.offset, answer.metadata or "")
            for answer in answers
            if answer.offset >= 0
        }

    def _committed(
        self, group: str, asked: list[TopicPartition], seconds: float, *, waits: bool
    ) -> list[TopicPartition]:
        """Asked again while brokers settle who coordinates the group, as on one that has just started."""
        # Not by the admin client: librdkafka 2.16 crashes there when the coordinator asks for patience.
        with kafka_errors("connecting to Kafka"):
            member = self._member(group, waits=waits)
        # Closed after each answer: a worker has as many groups as connectors, and each client has its threads
        # and connections.
        with closing(member), kafka_errors(f"asking for the offsets of group {group}", member.poll):
            for _ in range(_COORDINATOR_ATTEMPTS):
                try:
                    return list(member.committed(asked, timeout=seconds))
                except KafkaException as error:
                    if error.args[0].code() not in _COORDINATOR_MOVES:
                        raise
                    self._sleep(0.3)
            return list(member.committed(asked, timeout=seconds))

    def _member(self, group: str, *, waits: bool) -> Consumer:
        """A consumer that never subscribes: it only asks for offsets.

        One that waits hears nothing before the transactions are over that have written some.
        """
        return Consumer(
            quiet(
                {
                    **self._settings,
                    "group.id": group,
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed" if waits else "read_uncommitted",
                }
            )
        )

    def has_members(self, group: str) -> bool:
        from icestream.kafka.group_members import GroupMembers

        return GroupMembers(self._settings, group).count() > 0

    def left_behind(self, topic: str, group: str) -> LeftBehind:
        """The committed records of a topic behind the offsets of a group, once no transaction is open in it;
        from the beginning if the group has none."""
        from icestream.kafka.topic_follower import read_to_end

        facts = self.describe([topic]).get(topic)
        if facts is None:
            return LeftBehind((), {})
        partitions = [Partition(topic, number) for number in range(facts.partitions)]
        done, beginnings = self.group_offsets(group, partitions), self.beginnings(partitions)
        start = {p: max(done[p].next if p in done else 0, beginnings[p]) for p in partitions}
        ends = self.ends_with_open(partitions)
        records, positions = read_to_end(self._settings, topic, start, ends, clock=self._clock)
        return LeftBehind([LeftRecord(one.partition, one.offset, one.value) for one in records], positions)

    def create(
        self, name: str, partitions: int, replication: int, config: Mapping[str, str] | None = None
    ) -> bool:
        """Create a topic, and wait until brokers answer for its partitions; False if it exists."""
        is_new = self._create(NewTopic(name, partitions, replication, config=dict(config or {})))
        deadline = self._clock() + _CREATE_SECONDS
        while not self._is_led(name) and self._clock() < deadline:
            self._sleep(0.02)
        return is_new

    def _is_led(self, name: str) -> bool:
        facts = self.describe([name]).get(name)
        if facts is None:
            return False
        try:
            self.ends(Partition(name, number) for number in range(facts.partitions))
        except SourceUnavailable:
            return False
        return True

    def _create(self, topic: NewTopic) -> bool:
        name = topic.topic
        with self._asking(f"creating topic '{name}'"):
            for attempt in range(_CREATE_ATTEMPTS):
                # A client that asks while the controller changes waits for an answer that never comes; asking
                # again finds the new one.
                last = attempt == _CREATE_ATTEMPTS - 1
                try:
                    future = self._admin.create_topics([topic], request_timeout=_CREATE_SECONDS)[name]
                    future.result(_CREATE_SECONDS + 1)
                    return True
                except TimeoutError:
                    if last:
                        raise
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                        return attempt > 0
                    if last or error.args[0].code() != KafkaError._TIMED_OUT:
                        raise
        return False

    def config(self, name: str) -> dict[str, str]:
        """The settings of a topic, the broker's defaults included."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        with self._asking(f"asking for the config of topic '{name}'"):
            future = self._admin.describe_configs([resource], request_timeout=ANSWER_SECONDS)[resource]
            entries = future.result(ANSWER_SECONDS)
        return {key: entry.value or "" for key, entry in entries.items()}

    def delete(self, name: str) -> None:
        with self._asking(f"deleting topic '{name}'"):
            self._admin.delete_topics([name], request_timeout=ANSWER_SECONDS)[name].result(ANSWER_SECONDS)

    def brokers(self) -> int:
        with self._asking("listing brokers"):
            found = len(self._admin.list_topics(timeout=ANSWER_SECONDS).brokers)
        if not found:
            raise SourceUnavailable("no broker answers; check bootstrap.servers")
        return found


def _has_leader(leader: Node | None) -> bool:
    return leader is not None and leader.id >= 0


def reach(settings: Mapping[str, str], seconds: float) -> None:
    """Raise what keeps a client from Kafka: a refused login or certificate is a ConfigError that says so."""
    with kafka_errors("connecting to Kafka"):
        admin = AdminClient(quiet(settings))
    with kafka_errors("connecting to Kafka", admin.poll):
        admin.describe_cluster(request_timeout=seconds).result(seconds + 1)
