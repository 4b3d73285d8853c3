"""The manager when Kafka is not as it was: leaders that are gone, outages, rivals, topics that are made anew,
and offsets that others have moved.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import TopicIds, checkpoint_after
from icestream.api.errors import (
    Fenced,
    SourceRecreated,
    SourceUnavailable,
)
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Unfinished
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.jobs.sinks.manager import SinkManager
from icestream.kafka.topics import GroupOffset
from tests.unit.jobs.managed_sink import FakeSink, FakeTable, World


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


def test_what_a_target_has_lost_is_not_written_again_from_another_topic_of_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World({0: 10})
    world.tick()
    finished: list[Staged] = []
    first = Partition("t", 0)
    lost = Unfinished(Batch("lost", Offsets({first: 0}), Offsets({first: 10})), None, "an upload is lost")
    monkeypatch.setattr(world.table, "unfinished", lambda: None if finished else lost, raising=False)
    monkeypatch.setattr(world.table, "finish", finished.append, raising=False)
    world.kafka.id = "id-2"
    world.manager = world.new_manager()
    with pytest.raises(SourceRecreated, match="created again"):
        world.tick(2.0)
    assert finished == []
    world.kafka.id = "id-1"
    world.tick(2.0)
    assert len(finished) == 1


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
