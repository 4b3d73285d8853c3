"""One look for all jobs that wait: whom it tells, and whom it leaves asleep."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.topics import matching
from icestream.kafka.watch import Seen, Watch


@dataclass
class FakeCluster:
    """Topics with the ends of their partitions; `leaderless` has no answer."""

    found: dict[str, list[int]]
    leaderless: set[Partition] = field(default_factory=set)
    is_away: bool = False
    questions: list[int] = field(default_factory=list)

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        if self.is_away:
            raise SourceUnavailable("no broker")
        if not partitions:
            raise SourceUnavailable("as Kafka's client: invalid argument")
        self.questions.append(len(partitions))
        return {
            Partition(topic, number): self.found[topic][number]
            for topic, number in partitions
            if topic in self.found and Partition(topic, number) not in self.leaderless
        }

    def topics(self) -> Mapping[str, int]:
        return {name: len(ends) for name, ends in self.found.items()}


class Waiting:
    """A watch with jobs that have seen the cluster as it is, and note when they are told."""

    def __init__(self, **topics: list[int]) -> None:
        self.cluster = FakeCluster(dict(topics))
        self.now = 0.0
        self.watch = Watch(lambda: self.cluster, lambda: self.now)
        # Turns are taken by the tests.
        self.watch._thread = threading.current_thread()
        self.told: list[str] = []

    def job(self, name: str, *topics: str, pattern: str | None = None, every: float = 0.25) -> None:
        ends = {
            Partition(topic, number): end
            for topic in topics
            for number, end in enumerate(self.cluster.found[topic])
        }
        chooses = (lambda names: matching(names, pattern)) if pattern else None
        seen = Seen(Offsets(ends), chooses, every)
        self.watch.when_changed(name, seen, lambda: self.told.append(name))

    def turn(self, seconds: float = 0.25) -> float:
        self.now += seconds
        return self.watch.turn()


def test_one_question_for_all_jobs_and_only_those_with_records_are_told() -> None:
    waiting = Waiting(a=[5, 5], b=[0], c=[7])
    for name in "abc":
        waiting.job(name, name)
    waiting.turn()
    assert waiting.told == []
    waiting.cluster.found["b"][0] = 1
    waiting.turn()
    assert (waiting.told, waiting.cluster.questions) == (["b"], [4, 4])


def test_a_job_whose_pattern_matches_nothing_yet_sleeps_until_something_does() -> None:
    waiting = Waiting(other=[1])
    waiting.job("a", pattern="a.*")
    for _ in range(30):
        waiting.turn()
    assert waiting.told == []
    waiting.cluster.found["a1"] = [0]
    waiting.turn(6)
    assert waiting.told == ["a"]


def test_a_job_is_told_once_until_it_says_again_what_it_has_seen() -> None:
    waiting = Waiting(a=[5])
    waiting.job("a", "a")
    waiting.cluster.found["a"][0] = 6
    waiting.turn()
    waiting.cluster.found["a"][0] = 7
    waiting.turn()
    assert waiting.told == ["a"]
    waiting.job("a", "a")
    waiting.turn()
    assert waiting.told == ["a"]
    waiting.cluster.found["a"][0] = 8
    waiting.turn()
    assert waiting.told == ["a", "a"]


def test_a_topic_that_was_cut_or_made_anew_is_news_too() -> None:
    waiting = Waiting(a=[5])
    waiting.job("a", "a")
    waiting.cluster.found["a"][0] = 0
    waiting.turn()
    assert waiting.told == ["a"]


def test_a_partition_without_a_leader_keeps_nobody_from_hearing_of_others() -> None:
    waiting = Waiting(a=[5, 5], b=[0])
    waiting.job("a", "a")
    waiting.job("b", "b")
    waiting.cluster.leaderless.add(Partition("a", 0))
    waiting.turn()
    assert waiting.told == []
    waiting.cluster.found["a"][1] = 6
    waiting.turn()
    assert waiting.told == ["a"]


def test_new_partitions_topics_that_go_and_topics_that_match_are_news() -> None:
    waiting = Waiting(a=[5], b=[5], logs_1=[0], other=[0])
    waiting.job("grows", "a")
    waiting.job("goes", "b")
    waiting.job("matches", "logs_1", pattern="logs_.*")
    waiting.turn()
    assert waiting.told == []
    waiting.cluster.found["a"].append(0)
    del waiting.cluster.found["b"]
    waiting.cluster.found["logs_2"] = [0]
    waiting.turn(5.0)
    assert waiting.told == ["grows", "goes", "matches"]


def test_topics_are_listed_soon_while_a_partition_has_no_answer() -> None:
    waiting = Waiting(a=[5, 5])
    waiting.job("a", "a")
    waiting.turn(10.0)
    waiting.cluster.leaderless.add(Partition("a", 0))
    del waiting.cluster.found["a"][1]
    waiting.cluster.leaderless.add(Partition("a", 1))
    waiting.turn(1.0)
    assert waiting.told == ["a"]


def test_an_outage_is_told_to_all_since_each_knows_how_long_to_try() -> None:
    waiting = Waiting(a=[5], b=[5])
    waiting.job("a", "a")
    waiting.job("b", "b")
    waiting.cluster.is_away = True
    waiting.turn()
    assert waiting.told == ["a", "b"]


def test_a_job_that_has_ended_is_not_told() -> None:
    waiting = Waiting(a=[5])
    waiting.job("a", "a")
    waiting.watch.forget("a")
    waiting.cluster.found["a"][0] = 6
    waiting.turn()
    assert waiting.told == []


def test_looks_come_as_often_as_the_most_eager_job_wants() -> None:
    waiting = Waiting(a=[5], b=[5])
    waiting.job("a", "a", every=0.25)
    waiting.job("b", "b", every=0.01)
    assert waiting.turn() == 0.01
    assert waiting.cluster.questions == [2]


def test_the_thread_of_a_watch_tells_by_itself() -> None:
    cluster = FakeCluster({"a": [0]})
    watch = Watch(lambda: cluster)
    told = threading.Event()
    watch.when_changed("a", Seen(Offsets({Partition("a", 0): 0}), every=0.01), told.set)
    cluster.found["a"][0] = 1
    assert told.wait(60)
    watch.forget("a")


def test_a_watch_has_a_thread_as_long_as_it_has_jobs() -> None:
    cluster = FakeCluster({"a": [0]})
    watch = Watch(lambda: cluster)
    for number in range(2):
        told = threading.Event()
        seen = Seen(Offsets({Partition("a", 0): number}), every=0.01)
        for job in ("a", "b"):
            watch.when_changed(job, seen, told.set)
        thread = watch._thread
        assert thread is not None
        watch.forget("b")
        cluster.found["a"][0] = number + 1
        assert told.wait(60)
        watch.forget("a")
        thread.join(60)
        assert not thread.is_alive()
