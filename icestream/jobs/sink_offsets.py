"""Offsets of sink connectors, read and changed by hand. The service calls it while the job does not run.

For an Iceberg sink the tables decide, so a change is a commit to each of them, and the consumer group
follows. For other sinks the group is all there is. Every change may be repeated: it ends in the same state.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from icestream.api.batch import Batch, Taken
from icestream.api.config import Config, subset
from icestream.api.errors import (
    BadOffsets,
    CommitConflict,
    ConfigError,
    FatalError,
    NotReadyError,
    SinkUnavailable,
    SourceRecreated,
)
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.jobs import planning
from icestream.jobs.channel import Channel, KafkaChannel, prepare_topics
from icestream.jobs.deadlines import Overdue, within
from icestream.jobs.debts import pay
from icestream.jobs.job import Job, job_from
from icestream.jobs.offset_entries import Moves, entries_from, moves_from
from icestream.jobs.standing import owed, refuse_other_source, standing
from icestream.kafka.clients import client_settings
from icestream.kafka.group_offsets import delete_group, set_group_offsets
from icestream.kafka.topics import GroupOffset, TopicFacts, Topics
from icestream.kafka.transactions import Transactions
from icestream.pipeline.plan import Plan, TableTask
from icestream.pipeline.worker import SliceWork
from icestream.plugins import ICEBERG_SETTINGS, find_connector
from icestream.sinks.iceberg.catalogs import open_catalog
from icestream.sinks.iceberg.marks import Found, JobMark, Source, mark_moved
from icestream.sinks.iceberg.settings import write_props
from icestream.sinks.iceberg.table import IcebergTable

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"

_READ_SECONDS = 30.0
_CHANGE_SECONDS = 80.0
"""Kafka Connect's clients wait 90 s for an answer."""
_COMMIT_ATTEMPTS = 5
_MOST_OWED = 500_000
"""More records than this are not decoded while somebody waits for an answer."""
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ONE_READER = threading.Lock()
_READER = {"client.id": "icestream-offsets"}


class _Ledger(Protocol):
    """Where the offsets of one connector are kept."""

    def read(self) -> Offsets: ...

    def alter(self, moves: Moves) -> str: ...

    def reset(self) -> str: ...


class SinkOffsets:
    """The `OffsetAdmin` of sinks."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        offsets = _in_time(_READ_SECONDS, name, lambda: self._ledger(name, config).read())
        return entries_from(offsets)

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        moves = moves_from(entries)
        return _in_time(_CHANGE_SECONDS, name, lambda: self._ledger(name, config).alter(moves))

    def reset(self, name: str, config: Config) -> str:
        return _in_time(_CHANGE_SECONDS, name, lambda: self._ledger(name, config).reset())

    def _ledger(self, name: str, config: Config) -> _Ledger:
        kafka = ConnectorKafka.of(name, config, self._worker)
        if find_connector(config.get("connector.class", "")).settings_module != ICEBERG_SETTINGS:
            return GroupLedger(kafka, job_from(name, config))
        return iceberg_ledger(kafka, job_from(name, config), config)


def iceberg_ledger(
    kafka: ConnectorKafka, job: Job, config: Config, reached: Callable[[str], None] = lambda point: None
) -> _Ledger:
    """Of the tables that exist; without any, the consumer group's."""
    catalog = open_catalog(config)
    tables = [IcebergTable(catalog, name, job.name, write_props=write_props(config)) for name in job.tables]
    existing = [table for table in tables if _exists(table)]
    return IcebergLedger(kafka, job, existing, reached) if existing else GroupLedger(kafka, job)


def _in_time(seconds: float, name: str, call: Callable[[], _T]) -> _T:
    try:
        return within(seconds, call, f"offsets-{name}")
    except Overdue:
        raise SinkUnavailable(
            f"the offsets of connector '{name}' could not be had in {seconds:.0f} s: its catalog or Kafka "
            "does not answer; a change may still happen, so look at the offsets and ask again"
        ) from None


def _exists(table: IcebergTable) -> bool:
    try:
        table.found()
    except ConfigError:
        return False
    return True


@dataclass(frozen=True)
class ConnectorKafka:
    """A connector's topics, and the settings of its clients."""

    names: Sequence[str]
    pattern: str | None
    topics: Topics
    reads: dict[str, str]
    writes: dict[str, str]

    @classmethod
    def of(cls, name: str, config: Config, worker: Mapping[str, str]) -> ConnectorKafka:
        producer = {**subset(config, "iceberg.kafka."), **subset(config, "producer.override.")}
        return cls(
            [topic.strip() for topic in config.get("topics", "").split(",") if topic.strip()],
            config.get("topics.regex") or None,
            Topics(client_settings(worker, "admin", subset(config, "admin.override."))),
            client_settings(worker, "consumer", subset(config, "consumer.override.")),
            client_settings(worker, "producer", producer),
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


def _partitions(facts: Mapping[str, TopicFacts]) -> list[Partition]:
    return [Partition(name, number) for name, fact in facts.items() for number in range(fact.partitions)]


class GroupLedger:
    """Of a sink that keeps its offsets in its consumer group only."""

    def __init__(self, kafka: ConnectorKafka, job: Job) -> None:
        self._kafka = kafka
        self._job = job
        self._group = job.group

    def read(self) -> Offsets:
        found = self._kafka.topics.group_offsets(self._group, _partitions(self._kafka.facts()))
        return Offsets({partition: offset.next for partition, offset in found.items()})

    def alter(self, moves: Moves) -> str:
        self._kafka.refuse_absent(moves, self._kafka.facts([topic for topic, _ in moves]))
        begins = self._kafka.topics.beginnings([p for p, target in moves.items() if target is None])
        targets = {p: begins[p] if target is None else target for p, target in moves.items()}
        self._shut_out_managers()
        set_group_offsets(self._kafka.reads, self._group, Offsets(targets))
        return ALTERED

    def reset(self) -> str:
        self._shut_out_managers()
        delete_group(self._kafka.reads, self._group)
        return RESET

    def _shut_out_managers(self) -> None:
        """One that still lives could undo the change with its next batch."""
        Transactions(self._kafka.writes, self._job.transactional_id, self._group).close()


@dataclass(frozen=True)
class _Now:
    """What tables, group and topics say before a change."""

    found: Sequence[Found]
    group: Mapping[Partition, GroupOffset]
    source: Source
    partitions: Sequence[Partition]
    beginnings: Offsets
    ends: Offsets

    @property
    def marks(self) -> list[JobMark]:
        return [item.mark for item in self.found if item.mark]


class IcebergLedger:
    """Of an Iceberg sink: its tables' marks, which the consumer group follows."""

    def __init__(
        self,
        kafka: ConnectorKafka,
        job: Job,
        tables: Sequence[IcebergTable],
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._kafka = kafka
        self._job = job
        self._tables = tables
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""

    def read(self) -> Offsets:
        """The lowest offset over the tables; a partition that was reset in any of them has none."""
        floors = [_told(found) for found in (table.found() for table in self._tables)]
        known = [floor for floor in floors if floor is not None]
        if not known:
            return GroupLedger(self._kafka, self._job).read()
        shared = set(known[0]).intersection(*known[1:])
        return Offsets({partition: min(floor[partition] for floor in known) for partition in shared})

    def alter(self, moves: Moves) -> str:
        now = self._now([partition.topic for partition in moves])
        self._refuse_impossible(moves, now)
        self._change(lambda: self._alter(moves))
        return ALTERED

    def reset(self) -> str:
        self._change(self._reset)
        return RESET

    # -- how --

    def _change(self, act: Callable[[], tuple[str, Offsets] | None]) -> None:
        """Shut out any manager that may still live, change the tables, then let the group follow."""
        channel = KafkaChannel(self._job, self._kafka.writes, lambda: dt.datetime.now(dt.UTC))
        try:
            self._settle(channel)
            if (changed := act()) is not None:
                commit, group = changed
                channel.publish(commit, [], [], group)
                self._reached("published")
        finally:
            channel.close()

    def _alter(self, moves: Moves) -> tuple[str, Offsets]:
        now = self._now([partition.topic for partition in moves])
        floors = self._floors(now)
        commit = str(uuid.uuid4())
        for table, floor in zip(self._tables, floors, strict=True):
            self._move(table, commit, lambda found: moves, now.source, floor)
        return commit, Offsets(
            {p: now.beginnings[p] if target is None else target for p, target in moves.items()}
        )

    def _reset(self) -> tuple[str, Offsets] | None:
        now = self._now()
        if not now.group and not any(item.mark or item.rolled_back_from for item in now.found):
            return None
        commit = str(uuid.uuid4())
        for table in self._tables:
            self._move(table, commit, _all_to_the_beginning, now.source, NOTHING)
        return commit, Offsets({p: now.beginnings[p] for p in now.partitions})

    def _now(self, also: Sequence[str] = ()) -> _Now:
        found = [table.found() for table in self._tables]
        known = {topic for item in found if item.mark for topic in item.mark.source.topics}
        facts = self._kafka.facts([*also, *known])
        partitions = _partitions(facts)
        return _Now(
            found,
            self._kafka.topics.group_offsets(self._job.group, partitions),
            Source(self._kafka.topics.cluster_id(), {name: fact.id for name, fact in facts.items()}),
            partitions,
            self._kafka.topics.beginnings(partitions),
            self._kafka.topics.ends(partitions),
        )

    def _refuse_impossible(self, moves: Moves, now: _Now) -> None:
        self._kafka.refuse_absent(moves, self._kafka.facts([topic for topic, _ in moves]))
        self._floors(now)
        try:
            refuse_other_source(now.marks, now.source)
        except SourceRecreated as error:
            raise BadOffsets(str(error)) from error
        for partition, target in moves.items():
            low, high = now.beginnings[partition], now.ends[partition]
            if target is not None and not low <= target <= high:
                raise BadOffsets(
                    f"offset {target} of topic '{partition.topic}', partition {partition.number} is not in "
                    f"the topic, which has {low}..{high}; choose one of these"
                )

    def _floors(self, now: _Now) -> Sequence[Offsets]:
        """Where each table would go on: a table that gets its first mark must not forget that."""
        begins_late = self._job.begins_at == "latest" and not now.marks
        fresh = now.ends if begins_late else now.beginnings
        try:
            return standing(self._job.group, now.found, now.group, fresh).floors
        except FatalError as error:
            raise BadOffsets(str(error)) from error

    def _move(
        self,
        table: IcebergTable,
        commit: str,
        moves_of: Callable[[Found], Moves],
        source: Source,
        floor: Offsets,
    ) -> None:
        """One commit without rows. Another writer may come first; then the table is read again."""
        for _ in range(_COMMIT_ATTEMPTS):
            found = table.found()
            moves = moves_of(found)
            if _is_done(found, moves, source):
                return
            mark = mark_moved(found.mark, commit, moves, source, floor)
            try:
                table.commit(
                    [],
                    mark,
                    expect=found.offsets,
                    new_fields={},
                    written_with=table.plan({}),
                    summary={"kafka.connect.commit-id": commit},
                )
            except CommitConflict as conflict:
                _log.info("trying again: %s", conflict, extra={"connector": self._job.name})
                continue
            self._reached(f"moved {table.name}")
            return
        raise NotReadyError(f"table {table.name} keeps changing; ask again when fewer others write to it")

    def _settle(self, channel: Channel) -> None:
        """Publish the dead letters of a last batch whose transaction is missing: later nobody could tell."""
        now = self._now()
        if self._job.dead_letters is None or len(now.marks) != len(self._tables):
            return
        batch = owed(now.marks, now.group, now.partitions)
        if batch is None:
            return
        try:
            refuse_other_source(now.marks, now.source)
            planning.refuse_gaps(self._job.name, batch.start, now.beginnings, now.ends)
        except SourceRecreated as error:
            _log.warning("dead letters are lost: %s", error, extra={"connector": self._job.name})
            return
        if batch.span > _MOST_OWED:
            raise NotReadyError(
                f"the last batch of connector '{self._job.name}' still owes Kafka the dead letters of "
                f"{batch.span} records; resume the connector, stop it when it has caught up, and ask again"
            )
        prepare_topics(self._job, self._kafka.topics)
        with _ONE_READER:
            pay(batch, self._tables, InProcessRunner(self._kafka.reads), channel, self._job.name)


def _told(found: Found) -> Offsets | None:
    """Where a table goes on by its own word; None if it has never heard of the job."""
    if found.rolled_back_from:
        return Offsets({p: at.first for p, at in found.rolled_back_from.standings.items()})
    return found.mark.offsets if found.mark else None


def _all_to_the_beginning(found: Found) -> Moves:
    return dict.fromkeys(found.offsets)


def _is_done(found: Found, moves: Moves, source: Source) -> bool:
    if found.mark is None or found.mark.source.cluster != source.cluster:
        return False
    known = found.mark.source.topics
    if any(source.topics.get(topic, known[topic]) != known[topic] for topic in known):
        return False
    return all(found.offsets.get(partition) == target for partition, target in moves.items())


class InProcessRunner:
    """Runs a batch here, without Spark: for the few records of a batch that is decoded once more."""

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._kafka = {**kafka, **_READER}

    def run(self, batch: Batch, tables: Sequence[TableTask], *, evolves: bool, stages: bool = True) -> Taken:
        plan = Plan(self._kafka, tables, [batch.slices()], evolves, stages)
        return SliceWork(plan).run(batch.slices())
