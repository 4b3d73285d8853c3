"""The manager's turns over fakes of its borders: what it commits, publishes, refuses and looks for."""

from __future__ import annotations

import datetime as dt
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import pytest

from icestream.api.batch import Batch, BatchResult, Counts, Rejected, Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, TopicIds, checkpoint_after
from icestream.api.errors import (
    CommitConflict,
    FatalError,
    Fenced,
    RecordRejected,
    SourceRecreated,
    SourceUnavailable,
)
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit, Message, Receipt, Sink, SinkPlan, Target
from icestream.jobs.sink_job import DeadLetterSettings, Limits, SinkJob
from icestream.jobs.sink_manager import SinkManager
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
        return Receipt(commit.checkpoint, 1)

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
            counts[piece.partition] = Counts(piece.span, piece.span - lost, lost)
        written = sum(count.written for count in counts.values())
        staged = {target.name: Staged((), written, counts) for target in sink.targets}
        return BatchResult(staged, rejected, 100, {}, overflow=len(rejected) > self.most_rejected)

    def refuse_cancelled(self) -> None: ...

    def cancel(self) -> None: ...

    def allow(self) -> None: ...

    def close(self) -> None: ...


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
        )

    def tick(self, seconds: float = 0.25) -> None:
        self.now += seconds
        self.manager.tick()


def test_the_first_batch_starts_at_once_and_the_next_one_after_the_interval() -> None:
    world = World({0: 10, 1: 5})
    world.tick()
    assert (world.table.rows, world.manager.progress.lag) == (15, 0)
    world.kafka.end[0] = 20
    world.tick()
    assert world.table.rows == 15
    world.tick(1.0)
    assert world.table.rows == 25
    assert world.kafka.published[-1][3] == Offsets({Partition("t", 0): 20, Partition("t", 1): 5})


def test_only_topics_that_had_records_count_as_read() -> None:
    world = World({0: 0})
    world.tick()
    assert world.manager.progress.topics == ()
    world.kafka.end[0] = 5
    world.tick(2.0)
    assert world.manager.progress.topics == ("t",)


def test_a_bad_record_fails_the_job_at_once_also_while_other_partitions_have_traffic() -> None:
    world = World({0: 10, 1: 10})
    world.runner.bad = {(1, 0)}
    with pytest.raises(RecordRejected, match="partition 1, offset 0: it is bad"):
        world.tick()
    assert world.table.rows == 10
    assert world.table.discarded == 1


def test_a_tolerant_job_publishes_its_rejects_with_the_offsets() -> None:
    world = World({0: 10}, tolerates_all=True)
    world.runner.bad = {(0, 3)}
    world.tick()
    _, rejected, events, offsets = world.kafka.published[-1]
    assert [record.offset for record in rejected] == [3]
    assert [event.value for event in events] == [b"committed"]
    assert offsets == Offsets({Partition("t", 0): 10})
    assert (world.manager.progress.rows, world.manager.progress.rejected) == (9, 1)


def test_new_partitions_are_found_under_steady_traffic() -> None:
    world = World({0: 10})
    for turn in range(20):
        world.kafka.end[0] += 5
        if turn == 5:
            world.kafka.end[1] = 7
        world.tick(1.0)
    assert world.table.checkpoint is not None
    assert world.table.checkpoint.offsets.get(Partition("t", 1)) == 7


def test_a_partition_without_a_leader_waits_and_the_others_go_on() -> None:
    world = World({0: 10, 1: 5, 2: 3})
    world.kafka.leaderless = frozenset({1})
    world.tick()
    assert (world.table.rows, world.manager.progress.lag) == (13, 0)
    assert world.manager.progress.warnings == (
        "t-1 waits for a leader, which Kafka has to elect; all others go on",
    )
    world.kafka.end[0] = 20
    world.tick(1.5)
    assert world.table.rows == 23
    world.kafka.leaderless = frozenset()
    for _ in range(8):
        world.tick(1.5)
    assert world.table.rows == 28
    assert world.manager.progress.warnings == ()


def test_a_partition_that_loses_its_leader_waits_and_the_others_go_on() -> None:
    world = World({0: 10, 1: 5})
    world.tick()
    world.kafka.end |= {0: 12, 1: 7}
    world.kafka.leaderless = frozenset({1})
    with pytest.raises(SourceUnavailable):
        world.tick(1.5)
    world.tick(1.5)
    assert world.table.rows == 17


def test_what_was_left_beside_the_offsets_of_a_partition_without_a_leader_is_nobody_elses() -> None:
    world = World({0: 10, 1: 10})
    world.tick()
    world.kafka.leaderless = frozenset({1})
    with pytest.raises(SourceUnavailable):
        world.tick()
    for end in (20, 30):
        world.kafka.end[0] = end
        world.tick(1.5)
        world.tick()
    world.kafka.leaderless = frozenset()
    world.kafka.end |= {0: 40, 1: 40}
    for _ in range(8):
        world.tick(1.5)
    assert world.table.rows == 80


def test_a_job_that_goes_on_from_a_foreign_group_waits_for_every_leader_of_it() -> None:
    """Its first commit is the last time that it asks the group where to begin."""
    world = World({0: 10, 1: 10})
    world.kafka.group = {Partition("t", 0): GroupOffset(6, ""), Partition("t", 1): GroupOffset(6, "")}
    world.kafka.leaderless = frozenset({1})
    with pytest.raises(SourceUnavailable, match="t-1 has no leader"):
        world.tick()
    world.kafka.leaderless = frozenset()
    world.tick(2.0)
    assert world.table.rows == 8


def test_a_table_that_joins_waits_for_every_leader() -> None:
    """It begins where its siblings are, in each partition, and has to note that."""
    world = World({0: 10, 1: 10}, tolerates_all=True)
    world.runner.bad = {(1, 3)}
    world.tick()
    world.kafka.end |= {0: 12, 1: 12}
    world.kafka.leaderless = frozenset({1})
    joins = FakeTable("ns.u")
    world.manager = SinkManager(
        world.job,
        world.kafka,
        FakeSink([world.table, joins]),
        world.runner,
        lambda: world.kafka,
        lambda: world.now,
        lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    )
    with pytest.raises(SourceUnavailable, match="t-1 has no leader"):
        world.tick(2.0)
    world.kafka.leaderless = frozenset()
    for _ in range(4):
        world.tick(2.0)
    assert joins.rows == 4
    letters = [record.offset for _, rejected, _, _ in world.kafka.published for record in rejected]
    assert letters == [3]


def test_dead_letters_of_a_partition_without_a_leader_are_not_forgotten() -> None:
    world = World({0: 10, 1: 10}, tolerates_all=True)
    world.tick()
    world.runner.bad = {(1, 12)}
    world.kafka.end |= {0: 20, 1: 20}
    before = dict(world.kafka.group)
    world.tick(1.5)
    # The transaction of the last batch never came about, and then the leader went.
    world.kafka.group = before
    world.kafka.published.clear()
    world.kafka.leaderless = frozenset({1})
    world.manager = world.new_manager()
    with pytest.raises(SourceUnavailable, match="dead letters to publish of t-1, which has no leader"):
        world.tick()
    world.kafka.leaderless = frozenset()
    world.tick()
    assert [record.offset for record in world.kafka.published[0][1]] == [12]


def test_a_job_that_begins_at_the_end_waits_for_every_leader() -> None:
    world = World({0: 10, 1: 5}, begins_at="latest")
    world.kafka.leaderless = frozenset({1})
    with pytest.raises(SourceUnavailable, match="where t-1 ends is not known"):
        world.tick()


def test_a_table_is_swept_after_a_commit_and_then_every_six_hours() -> None:
    world = World({0: 10})
    world.table.conflicts = 1
    with pytest.raises(CommitConflict):
        world.tick()
    assert world.table.swept == []
    for hours in (0, 1, 5.5, 1):
        world.kafka.end[0] += 1
        world.tick(hours * 3600 + 2)
    assert len(world.table.swept) == 2
    assert world.table.checkpoint is not None
    world.kafka.end[0] += 1
    world.tick(7 * 3600)
    assert world.table.swept[-1] == world.table.checkpoint.commit


def test_a_conflict_is_shown_and_the_batch_runs_again() -> None:
    world = World({0: 10})
    world.table.conflicts = 1
    with pytest.raises(CommitConflict):
        world.tick()
    assert world.table.discarded == 1
    world.tick()
    assert world.table.rows == 10


def test_too_many_rejects_make_smaller_batches() -> None:
    world = World({0: 100}, tolerates_all=True)
    world.runner.bad = {(0, offset) for offset in range(100)}
    world.runner.most_rejected = 30
    for _ in range(20):
        world.tick()
    assert world.manager.progress.rejected == 100
    assert sum(len(rejected) for _, rejected, _, _ in world.kafka.published) == 100


def test_what_is_owed_is_paid_in_parts_if_it_is_much() -> None:
    world = World({0: 100}, tolerates_all=True)
    world.runner.bad = {(0, offset) for offset in range(100)}
    world.tick()
    world.kafka.group.clear()
    world.kafka.published.clear()
    world.runner.most_rejected = 30
    world.manager = world.new_manager()
    world.tick()
    offsets = [record.offset for _, rejected, _, _ in world.kafka.published for record in rejected]
    assert offsets == list(range(100))
    assert world.table.checkpoint is not None
    assert world.table.checkpoint.totals.rejected == 100


def test_an_outage_ends_in_a_new_publisher() -> None:
    world = World({0: 10})
    world.tick()
    world.kafka.is_away = True
    with pytest.raises(SourceUnavailable):
        world.tick()
    assert world.kafka.abandoned == 1
    world.kafka.is_away = False
    world.kafka.end[0] = 20
    world.tick(2.0)
    assert world.table.rows == 20


def test_a_topic_created_anew_stops_the_job() -> None:
    world = World({0: 10})
    world.tick()
    world.kafka.id = "id-2"
    world.kafka.end[0] = 20
    with pytest.raises(SourceRecreated, match="created again"):
        world.tick(2.0)
    assert world.table.rows == 10


def test_a_topic_created_anew_while_a_batch_is_staged_is_not_committed() -> None:
    world = World({0: 10})
    world.tick()
    world.kafka.end[0] = 20

    def recreate(point: str) -> None:
        if point == "staged":
            world.kafka.id = "id-2"

    world.manager = world.new_manager(recreate)
    with pytest.raises(SourceUnavailable, match="while a batch was read"):
        world.tick(2.0)
    assert (world.table.rows, world.table.discarded) == (10, 1)
    with pytest.raises(SourceRecreated, match="created again"):
        world.tick()


def test_where_a_job_begins_that_has_committed_nothing_may_move() -> None:
    world = World({0: 0})
    world.tick()
    world.kafka.begin, world.kafka.end[0] = 5, 12
    world.tick(2.0)
    world.tick()
    assert world.table.rows == 7


def test_retention_stops_a_job_that_has_committed() -> None:
    world = World({0: 10})
    world.tick()
    world.kafka.begin, world.kafka.end[0] = 15, 20
    with pytest.raises(SourceRecreated, match="set j t:0=beginning`"):
        for _ in range(3):
            world.tick(2.0)
    assert world.table.rows == 10


@pytest.mark.parametrize("at", [4, 40])
def test_a_group_that_stands_where_the_topic_has_nothing_stops_a_new_job(at: int) -> None:
    world = World({0: 30})
    world.kafka.begin = 5
    world.kafka.group[Partition("t", 0)] = GroupOffset(at, "")
    with pytest.raises(SourceRecreated, match=f"but consumer group 'connect-j' goes on at {at}"):
        world.tick()
    assert world.table.checkpoint is None


@pytest.mark.parametrize("is_forbidden", [False, True])
def test_a_topic_that_is_no_longer_read_keeps_its_position_and_id(is_forbidden: bool) -> None:
    """Also if the job may no longer look at it."""
    world = World({0: 10})
    old = Partition("old", 0)
    batch = Batch("b", Offsets({old: 0}), Offsets({old: 7}))
    world.table.checkpoint = checkpoint_after(
        None, batch, {old: Counts(7, 7)}, TopicIds("cluster", {"old": "old-id"})
    )
    if is_forbidden:
        world.kafka.forbidden.add("old")
    world.tick()
    checkpoint = world.table.checkpoint
    assert (checkpoint.offsets[old], checkpoint.source.topics) == (7, {"old": "old-id", "t": "id-1"})
    assert checkpoint.gone == ({} if is_forbidden else {"old": 1})


def test_a_stretch_of_bad_records_is_taken_in_small_batches_most_of_which_do_not_run_in_vain() -> None:
    world = World({0: 4_000}, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
    world.runner.bad = {(0, offset) for offset in range(4_000)}
    world.runner.most_rejected = 100
    while world.manager.progress.lag != 0:
        world.tick()
    published = [record.offset for _, rejected, _, _ in world.kafka.published for record in rejected]
    assert published == list(range(4_000))
    assert len(world.runner.runs) < 2 * len([batch for batch in world.runner.runs if batch.span <= 100])


def after_an_outage() -> World:
    world = World({0: 10})
    world.tick()
    world.kafka.is_away = True
    with pytest.raises(SourceUnavailable):
        world.tick(1.0)
    world.kafka.is_away = False
    world.kafka.end[0] = 20
    return world


def test_a_lone_manager_that_kafka_shut_out_after_an_outage_goes_on() -> None:
    world = after_an_outage()
    world.kafka.fences = 1
    with pytest.raises(SourceUnavailable, match="nobody else committed"):
        world.tick(1.0)
    world.tick(1.0)
    assert world.table.rows == 20, "what was committed before the fence is not repeated"
    assert world.kafka.group[Partition("t", 0)].next == 20
    assert world.kafka.abandoned == 2


def test_a_manager_that_is_shut_out_without_an_outage_ends() -> None:
    world = World({0: 10})
    world.tick()
    world.kafka.end[0] = 20
    world.kafka.fences = 1
    with pytest.raises(Fenced):
        world.tick(2.0)


def test_a_manager_that_is_shut_out_long_after_an_outage_ends() -> None:
    world = after_an_outage()
    world.tick(1.0)
    world.kafka.end[0] = 30
    world.kafka.fences = 1
    with pytest.raises(Fenced):
        world.tick(1000.0)


def test_a_manager_that_another_one_shut_out_after_an_outage_ends() -> None:
    world = after_an_outage()
    world.kafka.fences = 1
    world.kafka.rival = "of-another"
    with pytest.raises(Fenced):
        world.tick(1.0)


def test_managers_that_shut_each_other_out_do_not_go_on_for_ever() -> None:
    world = after_an_outage()
    world.kafka.fences = 100
    for _ in range(3):
        with pytest.raises(SourceUnavailable):
            world.tick(1.0)
    with pytest.raises(Fenced):
        world.tick(1.0)


def steps_of_a_batch(partitions: int) -> int:
    """How many functions a batch after the first one calls."""
    world = World(dict.fromkeys(range(partitions), 10))
    world.tick()
    world.kafka.end = dict.fromkeys(range(partitions), 20)
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        world.tick(1.0)
    finally:
        sys.setprofile(None)
    assert len(world.runner.runs) == 2
    return steps


def test_what_a_batch_does_grows_in_step_with_the_partitions() -> None:
    assert steps_of_a_batch(1_000) < 12 * steps_of_a_batch(100)


def test_a_publisher_without_an_answer_after_a_lost_race_is_given_up() -> None:
    world = World({0: 10})
    world.tick()
    world.kafka.end[0] = 20
    world.table.conflicts = 1
    world.kafka.silences = 1
    with pytest.raises(SourceUnavailable, match="no answer"):
        world.tick(2.0)
    assert world.kafka.abandoned == 1
    world.tick(2.0)
    assert world.table.rows == 20


def test_a_lone_manager_that_lost_a_race_and_was_shut_out_after_an_outage_goes_on() -> None:
    """The race was lost to a commit of its own, of which nobody knew whether it would land."""
    world = after_an_outage()
    world.table.conflicts = world.kafka.fences = 1
    with pytest.raises(SourceUnavailable, match="nobody else committed"):
        world.tick(1.0)
    world.tick(1.0)
    assert world.table.rows == 20


def owes_the_letters_of_records_that_are_gone(**job: Any) -> World:
    world = World({0: 20}, tolerates_all=True, **job)
    world.runner.bad = {(0, 3)}
    world.tick()
    world.kafka.end[0] = 40
    before = dict(world.kafka.group)
    world.tick(2.0)
    world.kafka.group, world.kafka.begin, world.runner.gone = before, 30, 30
    world.kafka.published.clear()
    world.manager = world.new_manager()
    return world


def test_letters_that_are_owed_of_records_that_are_gone_stop_the_job_with_a_way_out() -> None:
    """Reading them again would fail for ever."""
    world = owes_the_letters_of_records_that_are_gone(dead_letters=DeadLetterSettings("dlq", 1, True))
    with pytest.raises(
        SourceRecreated, match=r"offsets 20 to 30 .*`icestream connector offsets set j t:0=40`"
    ):
        world.tick(2.0)
    assert (world.kafka.published, world.table.rows) == ([], 39)


def test_a_job_without_a_dead_letter_queue_owes_no_letters_of_records_that_are_gone() -> None:
    world = owes_the_letters_of_records_that_are_gone()
    world.kafka.end[0] = 50
    for _ in range(3):
        world.tick(2.0)
    assert world.table.rows == 49
    assert world.kafka.group[Partition("t", 0)].next == 50


def test_a_batch_asks_kafka_and_the_table_no_more_than_it_must() -> None:
    world = World({0: 10, 1: 5})
    world.tick()
    asked: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any, **named: Any) -> Any:
            asked.append(name)
            return call(*arguments, **named)

        return ask

    for border in (world.kafka, world.table):
        for name in dir(border):
            if not name.startswith("_") and callable(call := getattr(border, name)):
                setattr(border, name, noted(name, call))
    world.kafka.end[0] = 20
    world.tick(1.0)
    before = ["ends", "describe", "cluster_id", "beginnings", "plan"]
    assert asked == [*before, "describe", "commit", "publish"]


def test_a_target_that_follows_the_group_goes_where_others_have_moved_it() -> None:
    world = World({0: 10})
    world.table.follows_group = True
    zero = Partition("t", 0)
    world.kafka.group[zero] = GroupOffset(4, "")
    world.tick()
    assert world.table.rows == 6
    # Kafka Connect, or Kafka's own tools, go back meanwhile; the checkpoint says 10.
    world.kafka.group[zero] = GroupOffset(7, "")
    world.manager = world.new_manager()
    world.tick()
    assert world.table.rows == 9
    assert world.table.checkpoint is not None
    assert (world.table.checkpoint.offsets[zero], world.table.checkpoint.totals.read) == (10, 9)


def test_a_target_that_follows_the_group_does_not_repeat_what_kafka_has_missed() -> None:
    def dies(point: str) -> None:
        if point.startswith("committed"):
            raise KeyboardInterrupt

    world = World({0: 10})
    world.table.follows_group = True
    zero = Partition("t", 0)
    world.kafka.group[zero] = GroupOffset(4, "")
    with pytest.raises(KeyboardInterrupt):
        world.new_manager(dies).tick()
    assert (world.table.rows, world.kafka.group[zero].next) == (6, 4)
    world.manager = world.new_manager()
    world.tick()
    assert (world.table.rows, world.kafka.group[zero].next) == (6, 10)


def test_a_target_that_keeps_no_checkpoint_goes_on_where_the_group_is() -> None:
    world = World({0: 10})
    world.table.follows_group = True
    world.kafka.group[Partition("t", 0)] = GroupOffset(8, "icestream:an-earlier-process")
    world.tick()
    assert world.table.rows == 2


@pytest.mark.parametrize("to", [18, 20])
@pytest.mark.parametrize("is_first", [False, True])
def test_moved_offsets_of_one_partition_cost_no_dead_letters_of_another(to: int, is_first: bool) -> None:
    def dies(point: str) -> None:
        if point.startswith("committed"):
            raise KeyboardInterrupt

    zero, one = Partition("t", 0), Partition("t", 1)
    world = World({0: 10, 1: 10}, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
    world.table.follows_group = True
    if not is_first:
        world.tick()
    world.kafka.end = {0: 20, 1: 20}
    world.runner.bad = {(1, 15)}
    world.now = 10.0
    with pytest.raises(KeyboardInterrupt):
        (dying := world.new_manager(dies)).tick()
        dying.tick()
    # Kafka's own tools set one partition before the job starts again.
    world.kafka.group[zero] = GroupOffset(to, "")
    world.manager = world.new_manager()
    world.tick(10.0)
    assert [record.offset for _, letters, _, _ in world.kafka.published for record in letters] == [15]
    assert world.table.checkpoint is not None
    assert world.table.checkpoint.offsets == Offsets({zero: 20, one: 20})
    # Twenty of each partition, and of one some again.
    assert world.table.checkpoint.totals.read == 40 + 20 - to


def test_a_group_that_is_moved_while_the_job_rests_is_followed() -> None:
    world = World({0: 10})
    world.table.follows_group = True
    world.tick()
    world.kafka.group[Partition("t", 0)] = GroupOffset(4, "")
    for _ in range(8):
        world.tick(2.0)
    assert world.table.rows == 16


def test_a_manager_that_followed_the_group_is_no_rival_of_its_own() -> None:
    def shuts_out(point: str) -> None:
        world.kafka.fences = int(point.startswith("committed"))

    world = World({0: 10})
    world.manager = world.new_manager(shuts_out)
    world.table.follows_group = True
    world.kafka.is_away = True
    with pytest.raises(SourceUnavailable):
        world.tick()
    world.kafka.is_away = False
    world.kafka.group[Partition("t", 0)] = GroupOffset(4, "")
    with pytest.raises(SourceUnavailable, match="nobody else committed"):
        world.tick(1.0)
    world.tick(1.0)
    assert (world.table.rows, world.kafka.group[Partition("t", 0)].next) == (6, 10)


@pytest.mark.parametrize("most", [1, 3])
def test_so_many_failed_commits_in_a_row_fail_the_job(most: int) -> None:
    world = World({0: 10}, most_failed_commits=most)
    for round_ in range(2):
        # One less is planned again, and a commit that lands begins the count anew.
        world.table.conflicts = most - 1
        for _ in range(most - 1):
            with pytest.raises(CommitConflict):
                world.tick(2.0)
        world.tick(2.0)
        assert world.table.rows == 10 * (round_ + 1)
        world.kafka.end[0] += 10
    world.table.conflicts = most
    for _ in range(most - 1):
        with pytest.raises(CommitConflict):
            world.tick(2.0)
    with pytest.raises(FatalError, match=f"{most} commits in a row failed, .* allows: somebody else"):
        world.tick(2.0)


def test_conflicts_of_a_job_without_that_limit_are_planned_again() -> None:
    world = World({0: 10})
    world.table.conflicts = 30
    for _ in range(30):
        with pytest.raises(CommitConflict):
            world.tick(2.0)
    world.tick(2.0)
    assert world.table.rows == 10


@dataclass
class MeetingTable(FakeTable):
    """Its commit ends when as many others are under way."""

    meeting: threading.Barrier | None = None

    def commit(self, commit: Commit) -> Receipt:
        if self.meeting:
            self.meeting.wait(60)
        return super().commit(commit)


def test_tables_of_a_batch_are_committed_at_the_same_time() -> None:
    world = World({0: 10}, commit_threads=3)
    meeting = threading.Barrier(3)
    world.tables[:] = [MeetingTable(name=f"ns.{number}", meeting=meeting) for number in range(6)]
    world.manager = world.new_manager()
    world.tick()
    assert [table.rows for table in world.tables] == [10] * 6
    assert len(world.kafka.published) == 1


def test_the_commits_under_way_are_finished_when_one_fails() -> None:
    world = World({0: 10}, commit_threads=2)
    meeting = threading.Barrier(2)
    bad, good = MeetingTable(name="a", meeting=meeting, conflicts=1), MeetingTable(name="b", meeting=meeting)
    late = FakeTable(name="c")
    world.tables[:] = [bad, good, late]
    reached: list[str] = []
    world.manager = world.new_manager(reached.append)
    with pytest.raises(CommitConflict):
        world.tick()
    assert (bad.rows, good.rows, bad.discarded) == (0, 10, 1)
    assert not any(commit for commit, *_ in world.kafka.published)
    bad.meeting = good.meeting = None
    world.tick(2.0)
    assert [table.rows for table in world.tables] == [10, 10, 10]
    assert reached.count("committed b") == 1
