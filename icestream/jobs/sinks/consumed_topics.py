"""The topics that a sink job reads: their partitions, which of these have a leader, and the ids that tell a
topic from a later one of the same name. Used by the sink manager and by `resume_finder`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, TopicIds
from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.offsets import NOTHING, Offsets, Partition, named
from icestream.jobs.sinks.job import SinkJob
from icestream.jobs.sinks.resuming.inheritance import KafkaOfOthers
from icestream.jobs.sinks.resuming.resume import refuse_other_source
from icestream.kafka.topics import GroupOffset, TopicFacts

_log = logging.getLogger(__name__)


class KafkaFacts(KafkaOfOthers, Protocol):
    """What a job asks Kafka. `icestream.kafka.topics.Topics` is the real one."""

    def cluster_id(self) -> str: ...

    def matching(self, pattern: str) -> list[str]: ...

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]: ...

    def ends(self, partitions: Iterable[Partition]) -> Offsets: ...

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets: ...

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]: ...


class ConsumedTopics:
    """As Kafka described them last; `refresh` asks again."""

    def __init__(
        self,
        job: SinkJob,
        kafka: KafkaFacts,
        clock: Callable[[], float],
        warn: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._job = job
        self._kafka = kafka
        self._clock = clock
        self._warn = warn
        """Told all warnings there are, whenever they change."""
        self._warnings: tuple[str, ...] = ()
        self._names: Sequence[str] = ()
        self._in_targets: frozenset[str] = frozenset()
        """The topics that a target has offsets of."""
        self._latest: Offsets | None = None
        self.ids = TopicIds("", {})
        """Of the topics that exist, of those that are read and those that a target has offsets of."""
        self.leaderless: frozenset[Partition] = frozenset()
        self.refreshed_at = 0.0

    def refresh(self) -> list[Partition]:
        """Ask Kafka; the partitions that have a leader."""
        job = self._job
        names = self._kafka.matching(job.topics_pattern) if job.topics_pattern else list(job.topics)
        facts = self._kafka.describe(names)
        if missing := [name for name in names if name not in facts]:
            raise SourceUnavailable(f"topic '{missing[0]}' does not exist; create it or change 'topics'")
        ids = {**self._ids_of_unread(names), **{name: fact.id for name, fact in facts.items()}}
        self.ids = TopicIds(self._kafka.cluster_id(), ids)
        self._names, self.refreshed_at = names, self._clock()
        partitions = [Partition(name, number) for name in names for number in range(facts[name].partitions)]
        self._note_leaderless([p for p in partitions if p.number in facts[p.topic].leaderless])
        return [partition for partition in partitions if partition not in self.leaderless]

    def note_targets(self, found: Sequence[FoundCheckpoint]) -> None:
        """`refresh` asks from now on also for the ids of the topics that these targets have offsets of."""
        self._in_targets = frozenset[str]().union(
            *(item.checkpoint.topics for item in found if item.checkpoint)
        )

    def fresh_offsets(self, beginnings: Offsets, *, is_new: bool) -> Offsets:
        """Where partitions begin that no target knows. Where `latest` was is decided once: it moves."""
        if self._latest is None:
            begins_late = is_new and self._job.begins_at == "latest"
            if begins_late and self.leaderless:
                raise SourceUnavailable(
                    f"where {named(self.leaderless)} ends is not known before it has a leader, and the job "
                    "is to begin at the end"
                )
            self._latest = self._kafka.ends(list(beginnings)) if begins_late else NOTHING
        return Offsets({**beginnings.positions, **self._latest.positions})

    def refuse_others(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Stop when the cluster or a topic is not the one whose offsets the targets have."""
        refuse_other_source(self._job.name, checkpoints, self.ids, self._names)

    def refuse_recreated_since(self, names: Sequence[str]) -> None:
        """The ids were right before a batch was read; if they still are, it was read from these topics."""
        facts = self._kafka.describe(names)
        now = {name: facts[name].id for name in names if name in facts}
        if any(now.get(name) != self.ids.topics[name] for name in names):
            raise SourceUnavailable(
                f"a topic of {', '.join(names)} was deleted or created again while a batch was read; "
                "nothing of it is committed"
            )

    def _note_leaderless(self, partitions: Sequence[Partition]) -> None:
        """These wait; all others go on."""
        said: tuple[str, ...] = ()
        if partitions:
            said = (f"{named(partitions)} waits for a leader, which Kafka has to elect; all others go on",)
        if said != self._warnings:
            self._warnings = said
            self._warn(said)
            for line in said:
                _log.warning(line, extra={"connector": self._job.name})
        self.leaderless = frozenset(partitions)

    def _ids_of_unread(self, reads: Sequence[str]) -> dict[str, str]:
        """Of topics that a target has offsets of and that are not read any more, those that exist."""
        unread = sorted(self._in_targets.difference(reads))
        try:
            return {name: fact.id for name, fact in self._kafka.describe(unread).items()} if unread else {}
        except (SourceUnavailable, FatalError) as error:
            _log.debug("topics that are not read any more cannot be described: %s", error)
            return dict.fromkeys(unread, "")
