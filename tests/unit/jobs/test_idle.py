"""A job with nothing to do: what it asks for, what it closes, and how it finds out that it is not alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from icestream.api.errors import Fenced
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.job import Limits
from icestream.jobs.sinks.manager import SinkManager
from icestream.kafka.topics import GroupOffset
from icestream.kafka.watch import Seen
from tests.unit.jobs.managed_sink import FakeSink, World

ONLY = Partition("t", 0)


@dataclass
class FakeWatch:
    waits: dict[str, tuple[Seen, Callable[[], None]]] = field(default_factory=dict)

    def when_changed(self, waiter: str, seen: Seen, tell: Callable[[], None]) -> None:
        self.waits[waiter] = (seen, tell)

    def forget(self, waiter: str) -> None:
        self.waits.pop(waiter, None)

    def tell(self) -> None:
        self.waits.popitem()[1][1]()

    @property
    def seen(self) -> Seen:
        ((seen, _),) = self.waits.values()
        return seen


class WatchedWorld(World):
    """Counts what a job with a watch asks for and opens."""

    def __init__(self, ends: dict[int, int], **job: Any) -> None:
        self.watch = FakeWatch()
        self.opened = self.closed = self.loads = self.wakes = 0
        super().__init__(ends, **job)
        self.count()

    def count(self) -> None:
        found = self.table.found

        def counted() -> Any:
            self.loads += 1
            return found()

        self.table.found = counted  # type: ignore[method-assign]

    def new_manager(self) -> SinkManager:
        plain = super().new_manager()
        return SinkManager(
            plain._job,
            self.kafka,
            FakeSink([self.table]),
            self.runner,
            self._open,
            plain._clock,
            plain._wall,
            watch=self.watch,
            wake=self._woken,
        )

    def _open(self) -> Any:
        self.opened += 1
        world = self

        class FakePublisher:
            publish = world.kafka.publish
            abandon = world.kafka.abandon

            def close(self) -> None:
                world.closed += 1

        return FakePublisher()

    def _woken(self) -> None:
        self.wakes += 1

    def sleeps(self, seconds: float = 0.25) -> float:
        self.now += seconds
        return self.manager.tick()


def test_an_idle_job_sleeps_until_it_is_told() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    assert world.sleeps() > 1
    assert world.watch.seen.ends == Offsets({ONLY: 10})
    world.kafka.end[0] = 20
    world.watch.tell()
    assert world.wakes == 1
    world.tick(1.0)
    assert world.table.rows == 20


def test_a_job_that_waits_for_its_interval_looks_by_itself() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    world.kafka.end[0] = 20
    assert world.sleeps() == 0.25
    assert world.watch.waits == {}


def test_looks_at_the_table_become_rare_while_nothing_comes() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    began, world.loads = world.now, 0
    while world.now - began < 7200:
        world.sleeps(world.sleeps())
    assert world.loads < 30
    assert world.manager.progress.lag == 0


def test_a_rollback_is_found_without_a_record() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    world.kafka.end[0] = 20
    before = world.table.checkpoint
    world.tick(1.0)
    world.table.checkpoint, world.table.rows = before, 10
    world.sleeps(world.sleeps() + 1)
    assert world.sleeps(0) == 0.0 or world.table.rows == 20
    world.tick()
    assert world.table.rows == 20


def test_a_new_partition_is_found_when_the_watch_tells() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    world.sleeps()
    world.kafka.end[1] = 0
    world.watch.tell()
    assert world.sleeps() == 0.0
    world.sleeps()
    assert set(world.watch.seen.ends) == {ONLY, Partition("t", 1)}


def test_a_publisher_that_was_not_used_is_closed_at_once_and_one_in_use_after_a_while() -> None:
    world = WatchedWorld({0: 0})
    world.tick()
    assert (world.opened, world.closed) == (1, 1)
    world.kafka.end[0] = 5
    world.tick(1.0)
    world.tick()
    assert (world.opened, world.closed, world.table.rows) == (2, 1, 5)
    world.sleeps()
    assert world.closed == 1
    world.sleeps(31)
    assert (world.opened, world.closed) == (2, 2)


def test_a_record_after_a_long_rest_is_read_once() -> None:
    world = WatchedWorld({0: 10}, tolerates_all=True)
    world.tick()
    world.sleeps(40)
    world.kafka.end[0] = 11
    world.runner.bad = {(0, 10)}
    while world.manager.progress.rejected == 0:
        world.tick()
    assert [len(rejected) for _, rejected, _, _ in world.kafka.published] == [0, 1]
    assert world.manager.progress.rows == 10


def test_a_manager_that_rested_gives_way_to_one_that_published_since() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    world.sleeps(40)
    old = world.manager
    world.kafka.end[0] = 20
    world.manager = world.new_manager()
    world.tick()
    assert world.table.rows == 20
    world.manager, world.kafka.end[0] = old, 30
    with pytest.raises(Fenced, match="another manager of 'j' is alive"):
        world.tick()
        world.tick()
    assert world.table.rows == 20


def test_offsets_of_the_group_moved_by_hand_are_no_other_manager() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    world.sleeps(40)
    world.kafka.group[ONLY] = GroupOffset(3, "")
    world.kafka.end[0] = 20
    world.tick()
    world.tick()
    assert world.table.rows == 20
    assert world.kafka.group[ONLY].next == 20


def test_a_manager_that_ends_late_does_not_end_the_watch_of_its_successor() -> None:
    """A thread that hung when its connector was started again closes its manager whenever it wakes."""
    world = WatchedWorld({0: 10})
    world.tick()
    world.sleeps()
    old = world.manager
    world.manager = world.new_manager()
    world.sleeps(40)
    world.sleeps()
    old.close()
    world.kafka.end[0] = 20
    world.watch.tell()
    assert world.wakes == 1


def test_a_closed_manager_is_told_nothing_more() -> None:
    world = WatchedWorld({0: 10})
    world.tick()
    world.sleeps()
    world.manager.close()
    assert world.watch.waits == {}


def test_a_job_that_commits_at_once_does_not_have_kafka_asked_all_the_time() -> None:
    world = WatchedWorld({0: 10}, limits=Limits(interval=0.0, rows=1_000_000, bytes=2**30))
    world.tick()
    world.tick()
    assert world.watch.seen.every == 0.1
