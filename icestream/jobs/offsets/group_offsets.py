"""The offsets of a sink that are in its consumer group, and a connector's Kafka. Used by `sink_offsets`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from icestream.api.config import Config, subset
from icestream.api.errors import BadOffsets, Fenced, NotReadyError
from icestream.api.offset_admin import PartitionPosition
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import SinkPlugin
from icestream.jobs.offsets.entries import Moves
from icestream.jobs.sinks.job import SinkJob
from icestream.kafka.clients import client_settings
from icestream.kafka.group_admin import delete_group, set_group_offsets
from icestream.kafka.topics import TopicFacts, Topics
from icestream.kafka.transactions import Transactions

ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True)
class ConnectorKafka:
    """A connector's topics, and the settings of its clients."""

    names: Sequence[str]
    pattern: str | None
    topics: Topics
    reads: dict[str, str]
    writes: dict[str, str]

    @classmethod
    def of(cls, plugin: SinkPlugin, config: Config, worker: Mapping[str, str]) -> ConnectorKafka:
        return cls(
            [topic.strip() for topic in config.get("topics", "").split(",") if topic.strip()],
            config.get("topics.regex") or None,
            Topics(client_settings(worker, "admin", subset(config, "admin.override."))),
            client_settings(worker, "consumer", subset(config, "consumer.override.")),
            client_settings(worker, "producer", plugin.client_overrides(config, "producer")),
        )

    def facts(self, also: Sequence[str] = ()) -> dict[str, TopicFacts]:
        """The connector's topics that exist, and others that are asked for."""
        read = self.topics.matching(self.pattern) if self.pattern else self.names
        # Kafka refuses the whole question if one name cannot be a topic's.
        return self.topics.describe(sorted(name for name in {*read, *also} if _LEGAL_NAME.fullmatch(name)))

    def refuse_absent(self, moves: Moves, facts: Mapping[str, TopicFacts]) -> None:
        for topic, number in moves:
            if topic not in facts:
                raise BadOffsets(
                    f"topic '{topic}' does not exist; name one that does, such as those of 'topics'"
                )
            if not 0 <= number < facts[topic].partitions:
                raise BadOffsets(
                    f"topic '{topic}' has no partition {number}; it has 0..{facts[topic].partitions - 1}"
                )


def partitions_of(facts: Mapping[str, TopicFacts]) -> list[Partition]:
    return [Partition(name, number) for name, fact in facts.items() for number in range(fact.partitions)]


class GroupOffsetStore:
    """Of a sink that keeps its offsets in its consumer group only."""

    def __init__(
        self, kafka: ConnectorKafka, job: SinkJob, still_awaited: Callable[[], None] = lambda: None
    ) -> None:
        self._kafka = kafka
        self._job = job
        self._group = job.group
        self._still_awaited = still_awaited
        """Overdue, once whoever asked for a change has been told that it failed."""

    def read(self) -> Offsets:
        found = self._kafka.topics.group_offsets(self._group, partitions_of(self._kafka.facts()))
        return Offsets({partition: offset.next for partition, offset in found.items()})

    def positions(self, moves: Moves) -> list[PartitionPosition]:
        """Where the group is; `moves` are refused as `alter` would."""
        facts = self._kafka.facts([topic for topic, _ in moves])
        self._kafka.refuse_absent(moves, facts)
        partitions = partitions_of(facts)
        group = self._kafka.topics.group_offsets(self._group, partitions)
        beginnings, ends = self._kafka.topics.beginnings(partitions), self._kafka.topics.ends(partitions)
        fresh = ends if self._job.begins_at == "latest" else beginnings
        found = []
        for p in partitions:
            at = group[p].next if p in group else None
            resumes = fresh[p] if at is None else at
            # How far it read before somebody moved the group, nobody has written down.
            read = () if at is None or at <= beginnings[p] else ((beginnings[p], at),)
            found.append(
                PartitionPosition(p.topic, p.number, beginnings[p], ends[p], resumes, None, at, read)
            )
        return found

    def alter(self, moves: Moves) -> str:
        self._kafka.refuse_absent(moves, self._kafka.facts([topic for topic, _ in moves]))
        begins = self._kafka.topics.beginnings([p for p, target in moves.items() if target is None])
        targets = {p: begins[p] if target is None else target for p, target in moves.items()}
        with self._others_shut_out(list(targets)):
            set_group_offsets(self._kafka.reads, self._group, Offsets(targets))
        return ALTERED

    def reset(self) -> str:
        with self._others_shut_out(partitions_of(self._kafka.facts())):
            delete_group(self._kafka.reads, self._group)
        return RESET

    def close(self) -> None:
        """Nothing stays open."""

    @contextmanager
    def _others_shut_out(self, partitions: Sequence[Partition]) -> Iterator[None]:
        """A manager that still lives could undo the change with its next batch. An older change that was slow
        is shut out by a newer one."""
        self._still_awaited()
        fence = Transactions(self._kafka.writes, self._job.transactional_id, self._group)
        try:
            with taken_over(self._job.name):
                if partitions:
                    fence.prove(partitions[0])
                self._still_awaited()
                yield
        finally:
            fence.close()


@contextmanager
def taken_over(connector: str) -> Iterator[None]:
    """Tell whoever asked for a change that a newer one, or a manager, has begun since."""
    try:
        yield
    except Fenced as error:
        raise NotReadyError(
            f"another change of the offsets of connector '{connector}' has begun since, or its job runs; "
            "this one has ended half-way. Look at the offsets and ask again"
        ) from error
