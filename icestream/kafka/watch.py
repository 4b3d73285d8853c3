"""One watch per Kafka cluster and login: tells jobs that wait when their topics have changed.

Jobs ask for what they need when they have something to do. Until then one thread asks for the ends of all
their partitions in one request, in place of one client per job. Owned by `jobs.build`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from icestream.api.errors import IcestreamError
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.clients import ANSWER_SECONDS, kafka_errors, quiet
from icestream.kafka.topics import Topics

_LOG = logging.getLogger(__name__)
_TOPICS_SECONDS: Final = 5.0
"""How often the watch looks for new topics and partitions."""
_SHARE: Final = 50
"""A look is followed by a pause of so many times its CPU time: a watch takes about 2 % of a core at most."""
_LONGEST_PAUSE: Final = 1.0
_AT_THE_END: Final = -1
"""Kafka's name for the end of a partition where it expects a time."""
_ALL_UNKNOWN: Final = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
"""What the client says if it knows none of the partitions; of a few it says so one by one."""


@dataclass(frozen=True)
class Seen:
    """What a job has seen of its topics, and wants to hear of any change."""

    ends: Offsets
    matching: Callable[[Sequence[str]], Sequence[str]] | None = None
    """Which of all topics are the job's, if it names them by a pattern."""
    every: float = 0.25
    """Seconds from look to look, if the watch has time for it."""


class Looks(Protocol):
    """The two questions of a watch."""

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """Where partitions end for readers of committed records; without those that nobody leads."""

    def topics(self) -> Mapping[str, int]:
        """All topics of the cluster with the number of their partitions."""


class KafkaLooks:
    """By one consumer that never subscribes."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        with kafka_errors("connecting to Kafka"):
            self._client = Consumer(
                quiet(
                    {
                        **settings,
                        "group.id": "icestream-watch",
                        "enable.auto.commit": False,
                        "isolation.level": "read_committed",
                    }
                )
            )

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        with kafka_errors("asking for offsets", self._client.poll):
            return self._ends(partitions)

    def topics(self) -> Mapping[str, int]:
        with kafka_errors("listing topics", self._client.poll):
            listed = self._client.list_topics(timeout=ANSWER_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in listed.items()}

    def _ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        asked = [TopicPartition(topic, number, _AT_THE_END) for topic, number in partitions]
        try:
            answers = self._client.offsets_for_times(asked, timeout=ANSWER_SECONDS)
        except KafkaException as error:
            if error.args[0].code() in _ALL_UNKNOWN:
                return {}
            if error.args[0].code() < 0:
                # The client's own word: nobody answered.
                raise
            # A broker refuses all for one that it does not lead: the others are asked without it.
            half = len(partitions) // 2
            return {**self._ends(partitions[:half]), **self._ends(partitions[half:])} if half else {}
        return {
            Partition(answer.topic, answer.partition): answer.offset
            for answer in answers
            if answer.error is None and answer.offset >= 0
        }


class Watch:
    """Tells each job once; a job that wants to hear more says again what it has seen.

    Its thread begins with the first job that waits, and ends when every job is forgotten.
    """

    def __init__(self, open_looks: Callable[[], Looks], clock: Callable[[], float] = time.monotonic) -> None:
        self._open_looks = open_looks
        self._looks: Looks | None = None
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: dict[str, tuple[Seen, Callable[[], None]]] = {}
        self._topics_at = -_TOPICS_SECONDS
        self._waiters: set[str] = set()
        self._thread: threading.Thread | None = None

    def when_changed(self, waiter: str, seen: Seen, tell: Callable[[], None]) -> None:
        """Call `tell`, once and from the watch's thread, when Kafka says other than what was seen."""
        with self._changed:
            self._waiting[waiter] = (seen, tell)
            self._waiters.add(waiter)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kafka-watch", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def forget(self, waiter: str) -> None:
        with self._changed:
            self._waiting.pop(waiter, None)
            self._waiters.discard(waiter)
            self._changed.notify_all()

    def turn(self) -> float:
        """One look for all jobs that wait. Returns the shortest pause that one of them wants."""
        with self._changed:
            waiting = dict(self._waiting)
        if not waiting:
            return _LONGEST_PAUSE
        try:
            told = self._look(waiting)
        except IcestreamError as error:
            # Each asks for itself: it knows how long to try, and its status says what is wrong.
            _LOG.debug("the watch looks in vain: %s", error)
            told = list(waiting)
        for job in told:
            self._tell(job, waiting[job])
        return min(seen.every for seen, _ in waiting.values())

    def _look(self, waiting: Mapping[str, tuple[Seen, Callable[[], None]]]) -> list[str]:
        if self._looks is None:
            self._looks = self._open_looks()
        asked = list({partition: None for seen, _ in waiting.values() for partition in seen.ends.positions})
        # Kafka's client does not take an empty question: a job whose pattern matches nothing has none.
        ends = self._looks.ends(asked) if asked else {}
        told = [job for job, (seen, _) in waiting.items() if _has_moved(seen, ends)]
        # The client takes a topic for unknown, once it was, until all are listed.
        pause = _TOPICS_SECONDS if len(ends) == len(asked) else _LONGEST_PAUSE
        if self._clock() - self._topics_at >= pause:
            topics = self._looks.topics()
            self._topics_at = self._clock()
            told += [job for job, (seen, _) in waiting.items() if _has_other_topics(seen, topics)]
        return list(dict.fromkeys(told))

    def _tell(self, job: str, waits: tuple[Seen, Callable[[], None]]) -> None:
        with self._changed:
            if self._waiting.get(job) is not waits:
                # It has gone, or has seen more by now.
                return
            del self._waiting[job]
        waits[1]()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self._waiters)
                if not self._waiters:
                    self._thread = None
                    return
            began = time.thread_time()
            try:
                wanted = self.turn()
            except Exception:  # the thread's edge: jobs that nobody wakes would sleep for long
                _LOG.exception("the watch goes on after an error")
                wanted = _LONGEST_PAUSE
            busy = (time.thread_time() - began) * _SHARE
            with self._changed:
                self._changed.wait_for(lambda: not self._waiters, max(wanted, min(busy, _LONGEST_PAUSE)))


def _has_moved(seen: Seen, ends: Mapping[Partition, int]) -> bool:
    # One that nobody leads just now has not moved.
    return any(ends.get(partition, end) != end for partition, end in seen.ends.positions.items())


def _has_other_topics(seen: Seen, topics: Mapping[str, int]) -> bool:
    known: dict[str, int] = {}
    for partition in seen.ends.positions:
        known[partition.topic] = known.get(partition.topic, 0) + 1
    if seen.matching is not None and set(seen.matching(sorted(topics))) != known.keys():
        return True
    return any(topics.get(name) != count for name, count in known.items())


class Clusters:
    """The clients that the jobs of a process share, one of each kind per cluster and login."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[frozenset[tuple[str, str]], Topics] = {}
        self._watches: dict[frozenset[tuple[str, str]], Watch] = {}

    def topics(self, settings: Mapping[str, str]) -> Topics:
        key = frozenset(settings.items())
        with self._lock:
            if key not in self._topics:
                self._topics[key] = Topics(settings)
            return self._topics[key]

    def watch(self, settings: Mapping[str, str]) -> Watch:
        key = frozenset(settings.items())
        with self._lock:
            if key not in self._watches:
                self._watches[key] = Watch(lambda: KafkaLooks(settings))
            return self._watches[key]
