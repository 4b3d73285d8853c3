"""A sink manager over fakes of its borders: one topic, tables in memory, and a runner without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from icestream.api.batch import Batch, BatchResult, Counts, Rejected, Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.errors import (
    CommitConflict,
    Fenced,
    SourceUnavailable,
)
from icestream.api.history import BatchRecord, Event
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit, Message, Receipt, Sink, SinkPlan, Target
from icestream.jobs.sinks.job import Limits, SinkJob
from icestream.jobs.sinks.manager import SinkManager
from icestream.kafka.topics import GroupOffset, TopicFacts

JOB = SinkJob(
    name="j",
    topics=("t",),
    topics_pattern=None,
    limits=Limits(interval=1.0, rows=1_000_000, bytes=2**30),
    tasks_max=1,
    tolerates_all=False,
    logs_rejects=False,
    logs_messages=False,
    dead_letters=None,
    group="connect-j",
    transactional_id="connect-j-coordinator",
    begins_at="earliest",
)


@dataclass
class FakeKafka:
    """A topic `t`, and what a job has published."""

    end: dict[int, int]
    id: str = "id-1"
    group: dict[Partition, GroupOffset] = field(default_factory=dict)
    abandoned: int = 0
    is_away: bool = False
    begin: int = 0
    forbidden: set[str] = field(default_factory=set)
    fences: int = 0
    """How many publishers Kafka shuts out."""
    silences: int = 0
    """How many times nobody answers who publishes."""
    rival: str = ""
    """The commit of another manager, which is why."""
    leaderless: frozenset[int] = frozenset()
    published: list[tuple[str, list[Rejected], list[Message], Offsets]] = field(default_factory=list)

    def cluster_id(self) -> str:
        return "cluster"

    def matching(self, pattern: str) -> list[str]:
        return ["t"]

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        if self.forbidden.intersection(wanted := set(names)):
            raise SourceUnavailable("not authorized")
        return {"t": TopicFacts(self.id, len(self.end), self.leaderless)} if "t" in wanted else {}

    def ends(self, partitions: Iterable[Partition]) -> Offsets:
        if self.is_away:
            raise SourceUnavailable("no broker")
        partitions = list(partitions)
        if any(partition.number in self.leaderless for partition in partitions):
            raise SourceUnavailable("no leader")
        return Offsets({partition: self.end[partition.number] for partition in partitions})

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets:
        return Offsets(dict.fromkeys(partitions, self.begin))

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]:
        return {partition: self.group[partition] for partition in partitions if partition in self.group}

    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Message], offsets: Offsets
    ) -> None:
        if self.silences:
            self.silences -= 1
            raise SourceUnavailable("no answer")
        if self.fences:
            self.fences -= 1
            if self.rival:
                self.group[Partition("t", 0)] = GroupOffset(20, f"icestream:{self.rival}")
            raise Fenced("another manager of this job is alive")
        self.published.append((commit, list(rejected), list(events), offsets))
        for partition in offsets:
            self.group[partition] = GroupOffset(offsets[partition], f"icestream:{commit}")

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        self.abandoned += 1


@dataclass
class FakeTable(Target):
    name: str = "ns.t"
    follows_group: bool = False
    checkpoint: Checkpoint | None = None
    rows: int = 0
    conflicts: int = 0
    discarded: int = 0
    file_bytes: tuple[int, ...] = ()
    swept: list[str] = field(default_factory=list)

    def found(self) -> FoundCheckpoint:
        return FoundCheckpoint(
            self.checkpoint, target=self.name, target_id=self.name, follows_group=self.follows_group
        )

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> None:
        return None

    def commit(self, commit: Commit) -> Receipt:
        if self.conflicts:
            self.conflicts -= 1
            raise CommitConflict("somebody else")
        assert commit.expect == self.checkpoint
        self.checkpoint = commit.checkpoint
        self.rows += commit.staged.rows
        return Receipt(commit.checkpoint, 1, self.file_bytes)

    def discard(self, staged: Staged) -> None:
        self.discarded += 1

    def sweep(self, landed: str, now: dt.datetime) -> int:
        self.swept.append(landed)
        return 0


@dataclass
class FakeRunner:
    """Every record is good but those at `bad`; rejects over `most_rejected` overflow."""

    bad: set[tuple[int, int]] = field(default_factory=set)
    most_rejected: int = 1000
    gone: int = 0
    """Records before this have been removed."""
    runs: list[Batch] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    """By transforms, of the first partition."""
    skipped: int = 0
    """By the sink, of the first partition."""
    newest_ms: dict[Partition, int] = field(default_factory=dict)

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult:
        self.runs.append(batch)
        if any(piece.start < self.gone for piece in batch.slices()):
            raise SourceUnavailable("removed by retention")
        rejected = [
            Rejected(piece.partition, offset, "VALUE_CONVERTER", "it is bad")
            for piece in batch.slices()
            for offset in range(piece.start, piece.until)
            if (piece.partition.number, offset) in self.bad
        ]
        counts = {}
        for piece in batch.slices():
            lost = sum(record.partition == piece.partition for record in rejected)
            passed = 0 if counts else sum(self.dropped.values()) + self.skipped
            counts[piece.partition] = Counts(piece.span, piece.span - lost - passed, lost, passed)
        written = sum(count.written for count in counts.values())
        staged = {target.name: Staged((), written, counts) for target in sink.targets}
        return BatchResult(
            staged,
            rejected,
            100,
            self.newest_ms,
            dropped=self.dropped,
            overflow=len(rejected) > self.most_rejected,
        )

    def refuse_cancelled(self) -> None: ...

    def cancel(self) -> None: ...

    def allow(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class Told:
    """An observer that keeps all it hears."""

    batches: list[BatchRecord] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def batch(self, connector: str, record: BatchRecord) -> None:
        self.batches.append(record)

    def event(self, connector: str, event: Event) -> None:
        self.events.append(event)

    def forget(self, connector: str) -> None: ...


class FakeSink(Sink):
    """Targets as they are, and an event for each batch."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = targets
        self.writer: Any = None

    def targets(self) -> Sequence[Target]:
        return self._targets

    def events(
        self, commit: str, receipts: Mapping[str, Receipt] | None, valid_through: dt.datetime | None
    ) -> Sequence[Message]:
        return [Message("control", b"", b"late" if receipts is None else b"committed")]


class World:
    def __init__(self, ends: dict[int, int], **job: Any) -> None:
        self.kafka, self.table, self.runner = FakeKafka(ends), FakeTable(), FakeRunner()
        self.tables = [self.table]
        self.now = 0.0
        self.told = Told()
        self.job = replace(JOB, **job)
        self.manager = self.new_manager()

    def new_manager(self, reached: Callable[[str], None] = lambda point: None) -> SinkManager:
        return SinkManager(
            self.job,
            self.kafka,
            FakeSink(self.tables),
            self.runner,
            lambda: self.kafka,
            lambda: self.now,
            lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            reached,
            aside=lambda work: work(),
            observer=self.told,
        )

    def tick(self, seconds: float = 0.25) -> None:
        self.now += seconds
        self.manager.tick()
