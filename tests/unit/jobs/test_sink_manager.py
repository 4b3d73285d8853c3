"""The manager's batches over fakes of its borders: what it reads, commits, publishes and refuses."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from icestream.api.errors import (
    CommitConflict,
    FatalError,
    RecordRejected,
)
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit, Receipt
from icestream.jobs.sinks.job import DeadLetterSettings
from tests.unit.jobs.managed_sink import FakeTable, World


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


def test_a_stretch_of_bad_records_is_taken_in_small_batches_most_of_which_do_not_run_in_vain() -> None:
    world = World({0: 4_000}, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
    world.runner.bad = {(0, offset) for offset in range(4_000)}
    world.runner.most_rejected = 100
    while world.manager.progress.lag != 0:
        world.tick()
    published = [record.offset for _, rejected, _, _ in world.kafka.published for record in rejected]
    assert published == list(range(4_000))
    assert len(world.runner.runs) < 2 * len([batch for batch in world.runner.runs if batch.span <= 100])


def steps_of_a_batch(partitions: int) -> int:
    """How many functions a batch after the first one calls."""
    world = World(dict.fromkeys(range(partitions), 10))
    world.tick()
    world.kafka.end = dict.fromkeys(range(partitions), 20)
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    # The collector would call the finalizers of what other tests have left.
    gc.disable()
    sys.setprofile(count)
    try:
        world.tick(1.0)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert len(world.runner.runs) == 2
    return steps


def test_what_a_batch_does_grows_in_step_with_the_partitions() -> None:
    assert steps_of_a_batch(1_000) < 12 * steps_of_a_batch(100)


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
