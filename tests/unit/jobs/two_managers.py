"""Two managers of one job that take turns, over fakes that fence and compare as the real ones do.

What the tests of interleavings share. Between any two steps a manager may die, or the other has its turn.
"""

from __future__ import annotations

import datetime as dt
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from icestream.api.batch import Rejected
from icestream.api.errors import Fenced, RetriableError, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Sink
from icestream.jobs.publishing.publisher import PendingDeadLetters
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.jobs.sinks.manager import SinkManager
from icestream.kafka.topics import GroupOffset, TopicFacts
from tests.unit.jobs.managed_sink import JOB, FakeRunner
from tests.unit.jobs.test_idle import FakeWatch

PARTITIONS = 3
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Died(Exception):
    """The process of a manager, between two steps."""


def is_bad(offset: int) -> bool:
    return offset % 5 == 3


class Kafka:
    def __init__(self) -> None:
        self.end = dict.fromkeys(range(PARTITIONS), 0)
        self.leaderless: frozenset[int] = frozenset()
        self.group: dict[Partition, GroupOffset] = {}
        self.letters: Counter[tuple[int, int]] = Counter()
        self.epoch = 0

    def cluster_id(self) -> str:
        return "cluster"

    def matching(self, pattern: str) -> list[str]:
        return ["t"]

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        return {"t": TopicFacts("id", len(self.end), self.leaderless)} if "t" in set(names) else {}

    def ends(self, partitions: Iterable[Partition]) -> Offsets:
        return Offsets({partition: self.end[partition.number] for partition in self._led(partitions)})

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets:
        return Offsets(dict.fromkeys(self._led(partitions), 0))

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]:
        return {partition: self.group[partition] for partition in partitions if partition in self.group}

    def _led(self, partitions: Iterable[Partition]) -> list[Partition]:
        asked = list(partitions)
        if any(partition.number in self.leaderless for partition in asked):
            raise SourceUnavailable("no leader")
        return asked


class FakePublisher:
    """Dead letters go in several transactions; a newer publisher fences it."""

    def __init__(self, world: TwoManagers, who: str) -> None:
        self._world, self._who = world, who
        world.kafka.epoch += 1
        self._epoch = world.kafka.epoch

    def publish(self, commit: str, rejected: Sequence[Rejected], events: Any, offsets: Offsets) -> None:
        kafka, chance = self._world.kafka, self._world.chance
        queue = PendingDeadLetters(self._world.job, rejected, offsets)
        while True:
            self._world.between(self._who)
            if self._epoch != kafka.epoch:
                raise Fenced("a newer one is open")
            if chance.random() < 0.05:
                raise SourceUnavailable("nothing happened")
            some = queue._rejected[queue.sent : queue.sent + chance.randint(1, 3)]
            queue.sent += len(some)
            kafka.letters.update((record.partition.number, record.offset) for record in some)
            reached = queue._reached(queue.sent)
            kafka.group |= {p: GroupOffset(reached[p], f"icestream:{commit}") for p in reached}
            if chance.random() < 0.05:
                raise SourceUnavailable("it happened, and the answer is lost")
            if not queue.left:
                return

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class TwoManagers(ABC):
    """Both are called A or B; a subclass says which sink they have, and what happens meanwhile."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kafka = Kafka()
        self.job = replace(JOB, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
        self._now = 0.0
        self._is_calm = False
        self._busy: list[str] = []
        self._managers = {who: self._started(who) for who in "AB"}

    @abstractmethod
    def sink(self) -> Sink: ...

    @abstractmethod
    def runner(self) -> FakeRunner: ...

    def _started(self, who: str) -> SinkManager:
        return SinkManager(
            self.job,
            self.kafka,
            self.sink(),
            self.runner(),
            lambda: FakePublisher(self, who),
            lambda: self._now,
            lambda: NOW,
            lambda point: self.between(who),
            watch=FakeWatch(),
            aside=lambda work: work(),
        )

    def between(self, who: str) -> None:
        """Between two steps of a manager: it may die there, or the other one may have its turn."""
        luck = 1.0 if self._is_calm else self.chance.random()
        if luck < 0.04:
            raise Died
        if luck < 0.25:
            self._turn("B" if who == "A" else "A")

    def _turn(self, who: str) -> None:
        if who in self._busy:
            return
        self._busy.append(who)
        try:
            self._managers[who].tick()
        except (Died, Fenced):
            self._managers[who] = self._started(who)
        except RetriableError:
            pass
        finally:
            self._busy.remove(who)
