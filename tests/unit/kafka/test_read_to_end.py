"""Readers of a topic up to an end that they were given: they go on until they have it, or fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, TopicPartition

from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.publishing.dead_letters import DeadLetterReader
from icestream.kafka import fetch_positions, log, reader, topic_follower, topics
from icestream.kafka.log import TopicLog
from icestream.kafka.offset_topic import read_offset_topic
from icestream.kafka.reader import SliceReader
from icestream.kafka.topic_follower import read_to_end
from icestream.kafka.topics import Topics

NO_ANSWER = -1001
"""The offset that librdkafka tells, without an error, of a partition whose broker did not answer."""


@dataclass(frozen=True)
class Said:
    """A record, or the end of the partition."""

    at: int
    code: int | None = None

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"%d" % self.at

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


def end(at: int) -> Said:
    return Said(at, KafkaError._PARTITION_EOF)


@dataclass
class Cluster:
    """A topic `t` with one partition. Its consumers get one item a call, and then nothing."""

    says: Sequence[Said] = ()
    beginning: int = 0
    end: int = 3
    now: float = 0.0
    settings: list[dict[str, Any]] = field(default_factory=list)

    def admin(self, settings: object) -> Admin:
        return Admin(self)

    def consumer(self, settings: dict[str, Any]) -> Played:
        self.settings.append(settings)
        return Played(self, iter(self.says))


def answer(value: object) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


@dataclass
class Admin:
    cluster: Cluster

    def poll(self, seconds: float) -> int:
        return 0

    def list_topics(self, timeout: float) -> None: ...

    def describe_topics(self, names: object, request_timeout: float) -> dict[str, Future[Any]]:
        partition = SimpleNamespace(id=0, leader=SimpleNamespace(id=1), replicas=[1])
        return {"t": answer(SimpleNamespace(topic_id="id", partitions=[partition]))}

    def list_offsets(
        self,
        asked: dict[TopicPartition, object],
        isolation_level: IsolationLevel,
        request_timeout: float,
    ) -> dict[TopicPartition, Future[Any]]:
        offsets = {
            "EarliestSpec": self.cluster.beginning,
            "LatestSpec": self.cluster.end,
        }
        return {
            partition: answer(SimpleNamespace(offset=offsets[type(spec).__name__]))
            for partition, spec in asked.items()
        }


@dataclass
class Played:
    cluster: Cluster
    says: Any

    def poll(self, timeout: float) -> Said | None:
        said: Said | None = next(self.says, None)
        if said is None:
            self.cluster.now += timeout
        return said

    def consume(self, most: int, timeout: float) -> list[Said]:
        if timeout == 0:
            return []
        said = self.poll(timeout)
        if said is None:
            threading.Event().wait(0.001)
        return [] if said is None else [said]

    def assign(self, partitions: object) -> None: ...
    def unassign(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(topics, "AdminClient", cluster.admin)
    for module in (fetch_positions, log, reader, topic_follower):
        monkeypatch.setattr(module, "Consumer", cluster.consumer)
    return cluster


def dead_letters(kafka: Cluster) -> list[int]:
    slices = SliceReader({}, clock=lambda: kafka.now)
    return [one.offset for one in DeadLetterReader("t", "c", Topics({}), slices).dead_letters()]


def offsets_of_sources(kafka: Cluster) -> list[int]:
    stored = read_offset_topic({}, "t", only_committed=True, clock=lambda: kafka.now)
    return [int(value or b"") for _, value in stored]


def left_behind(kafka: Cluster) -> list[int]:
    start, ends = {Partition("t", 0): 0}, Topics({}).ends([Partition("t", 0)])
    records, _ = read_to_end({}, "t", start, ends, clock=lambda: kafka.now)
    return [record.offset for record in records]


def followed(kafka: Cluster) -> list[int]:
    found: list[int] = []
    followed = TopicLog({}, "t", lambda record: found.append(record.offset))
    followed.start()
    try:
        followed.read_to_end(seconds=0.5)
    finally:
        followed.close()
    return found


Read = Callable[[Cluster], list[int]]
readers = pytest.mark.parametrize("read", [dead_letters, offsets_of_sources, left_behind, followed])


@readers
@pytest.mark.parametrize(
    "says",
    [
        [Said(0), end(1), Said(1), Said(2)],
        [end(0), end(0), Said(0), end(1), Said(1), end(2), Said(2), end(3)],
    ],
    ids=["once", "often"],
)
def test_a_topic_that_ends_early_is_read_on(kafka: Cluster, read: Read, says: Sequence[Said]) -> None:
    kafka.says = says
    assert read(kafka) == [0, 1, 2]


@readers
def test_an_end_is_a_position_and_not_a_record(kafka: Cluster, read: Read) -> None:
    """The last offset is the marker of a transaction."""
    kafka.says = [Said(0), Said(1), end(3)]
    assert read(kafka) == [0, 1]


@readers
@pytest.mark.parametrize("says", [[], [Said(0), Said(1)], [Said(0), end(1)]], ids=["none", "some", "end"])
def test_a_topic_that_stays_behind_its_end_is_an_outage(
    kafka: Cluster, read: Read, says: Sequence[Said]
) -> None:
    kafka.says = says
    with pytest.raises(SourceUnavailable, match=r"not read to its end|t-0 sent nothing for 30 s"):
        read(kafka)


def refuses_the_unknown(kafka: Cluster, read: Read) -> None:
    kafka.says = [Said(0), Said(1), Said(2)]
    with pytest.raises(SourceUnavailable, match=r"^asking for offsets: no answer for t-0; check bootstrap"):
        read(kafka)


@readers
def test_an_end_that_no_broker_tells_is_an_outage(kafka: Cluster, read: Read) -> None:
    kafka.end = NO_ANSWER
    refuses_the_unknown(kafka, read)


@pytest.mark.parametrize("read", [dead_letters, offsets_of_sources])
def test_a_beginning_that_no_broker_tells_is_an_outage(kafka: Cluster, read: Read) -> None:
    kafka.beginning = NO_ANSWER
    refuses_the_unknown(kafka, read)


def test_partitions_that_grow_do_not_hide_one_that_is_silent(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records behind the ends count for nothing."""

    @dataclass(frozen=True)
    class Other(Said):
        def partition(self) -> int:
            return 1

    def says() -> Iterable[Said]:
        for at in range(1_000):
            kafka.now += 1.0
            yield Other(at)
        raise AssertionError("it goes on for ever")

    monkeypatch.setattr(topic_follower, "Consumer", lambda settings: Played(kafka, iter(says())))
    start = {Partition("t", 0): 0, Partition("t", 1): 0}
    ends = Offsets({Partition("t", 0): 3, Partition("t", 1): 2})
    with pytest.raises(SourceUnavailable, match="at offset 0 of partition 0"):
        read_to_end({}, "t", start, ends, clock=lambda: kafka.now)


def test_a_refusal_is_told_as_what_it_is(kafka: Cluster) -> None:
    kafka.says = [Said(0, KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(SourceUnavailable, match="Topic authorization failed"):
        left_behind(kafka)


@pytest.mark.parametrize("only_committed", [True, False])
def test_who_reads_offsets_of_sources_says_of_which_records(kafka: Cluster, only_committed: bool) -> None:
    kafka.says = [Said(0), Said(1), Said(2)]
    read_offset_topic({}, "t", only_committed=only_committed)
    wanted = "read_committed" if only_committed else "read_uncommitted"
    assert [settings["isolation.level"] for settings in kafka.settings] == [wanted]


def test_a_topic_without_records_needs_no_consumer(kafka: Cluster) -> None:
    kafka.beginning = kafka.end
    assert offsets_of_sources(kafka) == []
    assert kafka.settings == []
