"""Rounds of the coordinator of Java workers: who is asked, who is waited for, what is committed when."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from icestream.api.errors import SinkUnavailable
from icestream.api.history import BatchRecord, NobodyLooks
from icestream.api.history import Outcome as BatchOutcome
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.iceberg.coordinator import table_commits
from icestream.connectors.iceberg.coordinator.coordinator import ASK_AGAIN_SECONDS, Coordinator, Pace
from icestream.connectors.iceberg.coordinator.events import (
    CommitComplete,
    CommitToTable,
    DataComplete,
    DataWritten,
    Event,
    Payload,
    SourcePosition,
    StartCommit,
    TableReference,
    WrittenFile,
    decoded,
    encoded,
)
from icestream.connectors.iceberg.coordinator.rounds import SETTLE_SECONDS, Envelope, SourceState
from icestream.connectors.iceberg.coordinator.table_commits import (
    JavaJob,
    Outcome,
    TableCommits,
    java_moment,
)
from icestream.kafka.topic_follower import TopicRecord

NOW = dt.datetime(2026, 11, 16, 9, 0, tzinfo=dt.UTC)
P0, P1, P2 = (Partition("t", number) for number in range(3))
TABLE = TableReference("iceberg", ("db",), "t", None)


@dataclass
class Topic:
    """A control topic of one partition; what is written comes back to be read."""

    log: list[bytes] = field(default_factory=list)
    offsets: Offsets | None = None
    positions: dict[int, int] = field(default_factory=lambda: {0: 0})

    def read(self, seconds: float) -> Sequence[TopicRecord]:
        start = self.positions[0]
        self.positions[0] = len(self.log)
        return [TopicRecord(0, start + at, value) for at, value in enumerate(self.log[start:])]

    def ends(self) -> Mapping[int, int]:
        return {0: len(self.log)}

    def has_grown(self) -> bool:
        return False

    def write(self, values: Sequence[bytes], offsets: Offsets, note: str) -> None:
        self.log += values
        self.offsets = offsets or self.offsets

    def prove(self) -> None:
        return

    def close(self) -> None:
        return

    def say(self, *payloads: Payload, group: str = "connect-x") -> None:
        self.log += [encoded(Event(uuid.uuid4(), NOW, group, payload)) for payload in payloads]

    def said(self, kind: type) -> list[Any]:
        events = [decoded(value) for value in self.log]
        return [one.payload for one in events if one is not None and isinstance(one.payload, kind)]


@dataclass
class Tables:
    """Takes everything, or fails with what it is told."""

    rounds: list[tuple[table_commits.Round, list[Envelope]]] = field(default_factory=list)
    failure: SinkUnavailable | None = None

    def commit(
        self,
        round_: table_commits.Round,
        envelopes: Sequence[Envelope],
        refuse_fenced: Callable[[], None],
        reached: Callable[[str], None],
    ) -> list[Outcome]:
        self.rounds.append((round_, list(envelopes)))
        if not envelopes:
            return []
        if self.failure is not None:
            return [Outcome(TABLE, envelopes, failure=self.failure)]
        rows = sum(file.record_count for one in envelopes for file in one.written.data_files or ())
        return [Outcome(TABLE, envelopes, snapshot_id=7, files=1, rows=rows)]

    def close(self) -> None:
        return


class Told(NobodyLooks):
    def __init__(self) -> None:
        self.batches: list[BatchRecord] = []

    def batch(self, connector: str, record: BatchRecord) -> None:
        assert connector == "orders"
        self.batches.append(record)


class World:
    def __init__(self, interval: float = 60.0, timeout: float = 300.0) -> None:
        self.time = 1000.0
        self.topic = Topic()
        self.tables = Tables()
        self.source = SourceState()
        self.told = Told()
        self.coordinator = Coordinator(
            JavaJob("control", "connect-x", "x-0"),
            Pace(interval, timeout),
            lambda: self.topic,
            lambda: self.source,
            cast(TableCommits, self.tables),
            lambda: self.time,
            lambda: NOW + dt.timedelta(seconds=self.time - 1000),
            observer=self.told,
            name="orders",
        )

    def tick(self, after: float = 0.0) -> None:
        self.time += after
        self.coordinator.tick()

    def started(self) -> uuid.UUID:
        return cast(uuid.UUID, self.topic.said(StartCommit)[-1].commit_id)


def behind(*partitions: Partition, until: int = 10, idle: Sequence[Partition] = ()) -> SourceState:
    return SourceState(frozenset({*partitions, *idle}), dict.fromkeys(partitions, (0, until)))


def wrote(commit: uuid.UUID, rows: int = 5) -> DataWritten:
    return DataWritten(commit, TABLE, (WrittenFile(f"s3://b/{uuid.uuid4()}", "PARQUET", rows, 100),))


def done(commit: uuid.UUID, *answers: tuple[Partition, int | None]) -> DataComplete:
    return DataComplete(
        commit,
        tuple(
            SourcePosition(p.topic, p.number, at, None if at is None else NOW + dt.timedelta(seconds=at))
            for p, at in answers
        ),
    )


def test_a_round_is_committed_when_all_who_have_something_have_answered() -> None:
    world = World()
    world.source = behind(P0, P1, idle=[P2])
    world.tick()
    commit = world.started()
    world.topic.say(wrote(commit), done(commit, (P0, 3)))
    world.tick()
    assert world.tables.rounds == []
    world.topic.say(wrote(commit), done(commit, (P1, 4), (P2, None)))
    world.tick()
    ((round_, envelopes),) = world.tables.rounds
    assert round_.commit_id == commit and len(envelopes) == 2
    # P2 was idle when the round began, at NOW: it does not make the commit say less.
    assert round_.valid_through == NOW
    assert [one.snapshot_id for one in world.topic.said(CommitToTable)] == [7]
    assert [one.valid_through for one in world.topic.said(CommitComplete)] == [NOW]
    assert world.coordinator.progress.rows == 10


def test_valid_through_is_the_oldest_of_what_the_partitions_have() -> None:
    world = World()
    world.time -= 3600
    world.source = behind(P0, P1)
    world.tick(3600 + 1800)
    commit = world.started()
    world.topic.say(wrote(commit), done(commit, (P0, 500), (P1, 300)))
    world.tick()
    assert world.tables.rounds[0][0].valid_through == NOW + dt.timedelta(seconds=300)


def test_nobody_is_asked_while_nobody_has_anything() -> None:
    world = World()
    world.source = behind(idle=[P0, P1])
    for _ in range(5):
        world.tick(60)
    assert world.topic.log == [] and world.tables.rounds == []


def test_after_the_timeout_what_has_come_is_committed_and_the_rest_later() -> None:
    world = World()
    world.source = behind(P0, P1)
    world.tick()
    commit = world.started()
    world.topic.say(wrote(commit), done(commit, (P0, 3)))
    world.tick()
    world.tick(301)
    ((round_, envelopes),) = world.tables.rounds
    assert len(envelopes) == 1 and round_.valid_through is None
    # The late answer is of a round that is over; its files are committed with the next one.
    world.topic.say(wrote(commit), done(commit, (P1, 4)))
    world.source = behind(P0, until=20, idle=[P1])
    world.tick()
    again = world.started()
    assert again != commit
    world.topic.say(wrote(again), done(again, (P0, 20)))
    world.tick()
    assert len(world.tables.rounds[1][1]) == 2


def test_a_worker_that_never_answers_is_not_waited_for_again() -> None:
    """Behind by transaction markers alone, say: there is no record, so no worker."""
    world = World()
    world.source = behind(P0, P1)
    world.tick()
    commit = world.started()
    world.topic.say(wrote(commit), done(commit, (P0, 3)))
    world.tick()
    world.tick(301)
    world.source = SourceState(frozenset({P0, P1}), {P0: (10, 20), P1: (0, 10)})
    world.tick()
    commit = world.started()
    world.topic.say(wrote(commit), done(commit, (P0, 20)))
    world.tick()
    assert len(world.tables.rounds) == 2


def test_a_worker_that_missed_the_start_is_asked_again() -> None:
    world = World(interval=1.0)
    world.source = behind(P0)
    world.tick()
    world.tick(ASK_AGAIN_SECONDS + 1)
    first, second = world.topic.said(StartCommit)
    assert first == second


def test_without_members_of_the_group_a_round_ends_when_nobody_says_more() -> None:
    world = World(interval=10.0)
    world.tick()
    assert world.topic.log == [], "workers that start with us have not subscribed yet"
    world.tick(5)
    world.tick(6)
    commit = world.started()
    world.topic.say(wrote(commit), done(commit, (P0, 3)))
    world.tick(1)
    world.topic.say(wrote(commit), done(commit, (P1, 3)))
    world.tick(1)
    assert world.tables.rounds == []
    world.tick(SETTLE_SECONDS)
    ((round_, envelopes),) = world.tables.rounds
    assert len(envelopes) == 2 and round_.valid_through is None


def test_what_its_table_could_not_take_stays_and_holds_the_offsets() -> None:
    world = World(interval=10.0)
    world.tables.failure = SinkUnavailable("away")
    world.topic.say(StartCommit(uuid.uuid4()), wrote(uuid.uuid4()))
    world.source = behind(idle=[P0])
    world.tick()
    assert world.coordinator.progress.warnings == ("away",)
    assert world.topic.offsets == Offsets({Partition("control", 0): 1})
    world.tables.failure = None
    world.tick(11)
    assert world.coordinator.progress.warnings == () and world.coordinator.progress.rows == 5
    assert world.topic.offsets is not None and world.topic.offsets[Partition("control", 0)] > 2


def test_events_of_other_groups_are_nobodys_business() -> None:
    world = World()
    world.topic.say(wrote(uuid.uuid4()), group="connect-y")
    world.source = behind(idle=[P0])
    world.tick()
    assert world.tables.rounds == []
    assert world.topic.offsets == Offsets({Partition("control", 0): 1}), "they need not be read again"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime(2026, 8, 1, 10, 15), "2026-08-01T10:15Z"),
        (dt.datetime(2026, 8, 1, 10, 15, 30), "2026-08-01T10:15:30Z"),
        (dt.datetime(2026, 8, 1, 10, 15, 0, 120000), "2026-08-01T10:15:00.120Z"),
        (dt.datetime(2026, 8, 1, 10, 15, 30, 123456), "2026-08-01T10:15:30.123456Z"),
    ],
)
def test_moments_are_written_as_java_writes_them(moment: dt.datetime, text: str) -> None:
    assert java_moment(moment.replace(tzinfo=dt.UTC)) == text


def test_a_round_is_told_like_a_batch() -> None:
    world = World()
    world.source = behind(P0, until=7)
    world.tick()
    commit = world.started()
    (begun,) = world.told.batches
    assert (begun.id, begun.outcome, begun.planned) == (str(commit), BatchOutcome.UNDER_WAY, 7)
    world.topic.say(wrote(commit), done(commit, (P0, 3)))
    world.tick(2.0)
    over = world.told.batches[-1]
    assert (over.id, over.outcome, over.read, over.written) == (begun.id, BatchOutcome.COMMITTED, 5, 5)
    assert (over.seconds, over.stages["plan"]) == (2.0, 2.0)
    ((name, snapshot, rows),) = [(one.name, one.id, one.rows) for one in over.targets]
    assert (name, snapshot, rows) == (str(TABLE), "7", 5)


def test_a_round_whose_table_is_away_says_so_and_counts_nothing() -> None:
    world = World(interval=10.0)
    world.tables.failure = SinkUnavailable("away")
    world.topic.say(StartCommit(uuid.uuid4()), wrote(uuid.uuid4()))
    world.source = behind(idle=[P0])
    world.tick()
    over = world.told.batches[-1]
    assert (over.outcome, over.written, over.note) == (BatchOutcome.UNAVAILABLE, 0, "away")
    world.tables.failure = None
    world.tick(11)
    assert world.told.batches[-1].written == 5
    begun = {record.id for record in world.told.batches if not record.is_over}
    assert begun == {record.id for record in world.told.batches if record.is_over}
