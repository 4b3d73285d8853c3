"""What a sink's manager tells of its batches, for each of their ends."""

from __future__ import annotations

import pytest

from icestream.api.errors import (
    Cancelled,
    CommitConflict,
    CommitUnknown,
    EngineUnavailable,
    FatalError,
    RecordRejected,
    RowsRefused,
    SinkUnavailable,
    SourceUnavailable,
)
from icestream.api.history import PASSED_OVER, BatchRecord, Event, Outcome, TopicCounts
from icestream.api.offsets import Partition
from icestream.api.sink import Commit, Receipt
from icestream.jobs.sinks.job import DeadLetterSettings
from tests.unit.jobs.managed_sink import FakeTable, World


def told(world: World) -> list[BatchRecord]:
    """The ends of its batches; each was told to be under way before."""
    begun = [record.id for record in world.told.batches if not record.is_over]
    over = [record for record in world.told.batches if record.is_over]
    assert {record.id for record in over} == set(begun)
    assert len(begun) == len(set(begun))
    return over


def raising(error: Exception, world: World, times: int = 1) -> None:
    """The next commits raise."""
    real = world.table.commit
    left = [error] * times

    def commit(commit: Commit) -> Receipt:
        if left:
            raise left.pop()
        return real(commit)

    world.table.commit = commit  # type: ignore[method-assign]


def test_a_batch_that_landed_adds_up() -> None:
    world = World({0: 10, 1: 5}, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
    world.runner.bad = {(0, 3), (1, 1)}
    world.runner.dropped = {"old": 2}
    world.runner.skipped = 1
    world.runner.newest_ms = {Partition("t", 0): 1_000, Partition("t", 1): 5_000}
    world.table.file_bytes = (100, 50)
    world.kafka.end[0] = 12
    world.tick()
    (record,) = told(world)
    assert record.outcome is Outcome.COMMITTED
    assert (record.planned, record.read, record.written, record.bytes) == (17, 17, 12, 100)
    assert record.rejected == {"VALUE_CONVERTER": 2}
    assert record.filtered == {"old": 2, PASSED_OVER: 1}
    assert record.topics == {"t": TopicCounts(written=12, rejected=2)}
    assert (record.lag_after, record.letters, record.newest_ms) == (0, 2, {"t": 5_000})
    assert set(record.stages) >= {"plan", "stage", "commit", "publish"}
    (commit,) = record.targets
    assert (commit.name, commit.id, commit.rows, commit.file_bytes) == ("ns.t", "1", 12, (100, 50))
    assert world.told.batches[0].outcome is Outcome.UNDER_WAY
    assert world.told.batches[0].planned == 17


def test_batches_one_after_the_other_add_up_to_the_table() -> None:
    world = World({0: 10})
    for _ in range(5):
        world.tick(2.0)
        world.kafka.end[0] += 7
    assert sum(record.written for record in told(world)) == world.table.rows == 38


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (CommitConflict("somebody else"), Outcome.CONFLICT),
        (CommitUnknown("no answer"), Outcome.UNKNOWN),
        (SinkUnavailable("the catalog is away"), Outcome.UNAVAILABLE),
        (SourceUnavailable("no broker"), Outcome.UNAVAILABLE),
        (Cancelled("given up"), Outcome.CANCELLED),
        (FatalError("it does not add up"), Outcome.FAILED),
        (ValueError(), Outcome.FAILED),
    ],
)
def test_a_batch_that_did_not_land_says_why_and_counts_nothing(error: Exception, outcome: Outcome) -> None:
    world = World({0: 10})
    raising(error, world)
    with pytest.raises(type(error)):
        world.tick()
    (record,) = told(world)
    assert (record.outcome, record.note) == (outcome, str(error) or type(error).__name__)
    assert (record.planned, record.read, record.written) == (10, 0, 0)
    assert [(one.name, one.id, one.outcome) for one in record.targets] == [("ns.t", "", outcome)]
    world.tick(2.0)
    assert told(world)[-1].written == 10


def test_a_batch_whose_tasks_fail_was_unavailable() -> None:
    world = World({0: 10})
    world.runner.gone = 1
    with pytest.raises(SourceUnavailable):
        world.tick()
    assert [record.outcome for record in told(world)] == [Outcome.UNAVAILABLE]


def test_rows_that_a_target_refuses_make_it_run_again() -> None:
    world = World({0: 10})
    raising(RowsRefused("row 3 is too long"), world)
    world.tick()
    world.tick()
    assert [record.outcome for record in told(world)] == [Outcome.RUN_AGAIN, Outcome.COMMITTED]


def test_a_commit_that_landed_after_all_is_told_again_with_its_counts() -> None:
    world = World({0: 10})
    real = world.table.commit

    def commit(commit: Commit) -> Receipt:
        real(commit)
        world.table.commit = real  # type: ignore[method-assign]
        raise CommitUnknown("no answer")

    world.table.commit = commit  # type: ignore[method-assign]
    with pytest.raises(CommitUnknown):
        world.tick()
    world.tick()
    unknown, landed = (record for record in world.told.batches if record.is_over)
    assert (unknown.outcome, unknown.written) == (Outcome.UNKNOWN, 0)
    assert (landed.outcome, landed.written, landed.id) == (Outcome.COMMITTED, 10, unknown.id)


def test_a_commit_that_kafka_was_not_told_of_has_landed() -> None:
    world = World({0: 10})
    world.kafka.silences = 1
    with pytest.raises(SourceUnavailable):
        world.tick()
    world.tick()
    (record,) = told(world)
    assert (record.outcome, record.written) == (Outcome.COMMITTED, 10)
    assert record.note == "its offsets and dead letters are published later: no answer"


def test_what_precedes_a_bad_record_is_a_batch_of_its_own() -> None:
    world = World({0: 10})
    world.runner.bad = {(0, 4)}
    with pytest.raises(RecordRejected):
        world.tick()
    cut, part = told(world)
    assert (cut.outcome, cut.read, part.outcome, part.written) == (Outcome.CUT, 0, Outcome.COMMITTED, 4)
    assert "offset 4" in cut.note
    with pytest.raises(RecordRejected):
        world.tick(2.0)
    assert told(world)[-1].outcome is Outcome.FAILED


def test_a_batch_that_is_too_large_is_cut() -> None:
    world = World({0: 100}, tolerates_all=True)
    world.runner.bad = {(0, offset) for offset in range(100)}
    world.runner.most_rejected = 60
    for _ in range(4):
        world.tick(2.0)
    records = told(world)
    assert records[0].outcome is Outcome.CUT
    assert sum(sum(record.rejected.values()) for record in records) == 100
    assert all(record.read == record.written + sum(record.rejected.values()) for record in records)


def test_targets_that_one_commit_did_not_reach_are_counted_when_they_have_it_too() -> None:
    world = World({0: 10})
    other = FakeTable("ns.other", conflicts=1)
    world.tables.append(other)
    world.manager = world.new_manager()
    with pytest.raises(CommitConflict):
        world.tick()
    world.tick()
    records = told(world)
    assert [record.outcome for record in records] == [Outcome.CONFLICT, Outcome.COMMITTED]
    assert {one.name: one.outcome for one in records[0].targets} == {
        "ns.t": Outcome.COMMITTED,
        "ns.other": Outcome.CONFLICT,
    }
    assert sum(record.written for record in records) == world.table.rows == other.rows == 10


def test_where_the_job_is_in_each_partition() -> None:
    world = World({0: 10, 1: 5})
    world.tick()
    world.kafka.end[0] = 14
    world.tick()
    progress = world.manager.progress
    assert [(one.partition, one.next_offset, one.end, one.lag) for one in progress.partitions] == [
        (0, 10, 14, 4),
        (1, 5, 5, 0),
    ]
    assert progress.source_end == 19
    assert progress.oldest_unread_ms is not None


class Raises:
    def batch(self, connector: str, record: BatchRecord) -> None:
        raise RuntimeError("the observer is broken")

    def event(self, connector: str, event: Event) -> None:
        raise RuntimeError("the observer is broken")

    def forget(self, connector: str) -> None: ...


def test_an_observer_that_raises_harms_nothing() -> None:
    world = World({0: 10})
    world.told = Raises()  # type: ignore[assignment]
    world.manager = world.new_manager()
    world.tick()
    assert world.table.rows == 10
    raising(EngineUnavailable("Spark is away"), world)
    world.kafka.end[0] = 20
    with pytest.raises(EngineUnavailable):
        world.tick(2.0)


def test_the_same_steps_with_and_without_somebody_who_looks() -> None:
    """The points of the crash tests: telling changes nothing of their order."""

    def steps(world: World) -> list[str]:
        reached: list[str] = []
        world.manager = world.new_manager(reached.append)
        world.tick()
        return reached

    watched, alone = World({0: 10}), World({0: 10})
    alone.told = None  # type: ignore[assignment]
    assert steps(watched) == steps(alone) == ["planned", "staged", "committed ns.t", "published"]


def test_a_batch_lands_though_nothing_of_it_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def refused(*args: object) -> BatchRecord:
        raise KeyError("a result that nobody foresaw")

    monkeypatch.setattr("icestream.jobs.sinks.batches.telling._counted", refused)
    world = World({0: 10})
    world.tick()
    assert world.table.rows == 10
    assert [record.outcome for record in told(world)] == [Outcome.COMMITTED]
    another = World({0: 10})
    raising(Odd(), another)
    with pytest.raises(Odd):
        another.tick()
    another.tick()
    assert another.table.rows == 10


def test_records_without_a_timestamp_are_not_of_1970() -> None:
    world = World({0: 10, 1: 10})
    world.runner.newest_ms = {Partition("t", 0): 0, Partition("u", 1): 5_000}
    world.tick()
    (record,) = told(world)
    assert record.newest_ms == {"u": 5_000}
