"""Where a job that routes goes on: the rules one by one. `test_routed_interleavings` has them all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icestream.api.batch import Batch, BatchResult, Counts, Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, TopicIds, routed_checkpoint_after
from icestream.api.errors import ConfigError, FatalError, LostOffsets, Problem
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Routing, Sink, Target
from icestream.jobs.sinks.batches.staging import StagedBatch
from icestream.jobs.sinks.resuming.resume import resume_point, unpublished_batch
from icestream.jobs.sinks.routing.commits import checkpoint_of
from icestream.jobs.sinks.routing.resume import floor_of, routed_resume_point, waits_for_leader
from icestream.jobs.sinks.routing.targets import RoutedTargets
from icestream.kafka.topics import GroupOffset
from icestream.tables.last_used import LastUsed

P = Partition("t", 0)
IDS = TopicIds("cluster", {"t": "id"})


def at(offset: int) -> Offsets:
    return Offsets({P: offset})


def checkpoint(
    start: int, until: int, published: int | None = None, commit: str = "c", *, getting: str = "a"
) -> Checkpoint:
    return routed_checkpoint_after(
        FoundCheckpoint(None),
        Batch(commit, at(start), at(until)),
        {P: Counts(1, 1)},
        IDS,
        dict.fromkeys(getting, "id"),
        frozenset(getting),
        at(start),
        at(start if published is None else published),
    )


def found(one: Checkpoint | None, target: str = "a", **more: Any) -> FoundCheckpoint:
    return FoundCheckpoint(one, target=target, target_id="id", **more)


def group(offset: int | None) -> dict[Partition, GroupOffset]:
    return {} if offset is None else {P: GroupOffset(offset, "icestream:c")}


def test_a_table_takes_rows_from_the_later_of_its_checkpoint_and_the_group_on() -> None:
    for next_, published, floor in ((10, 30, 30), (40, 30, 40), (30, 30, 30)):
        assert floor_of("j", found(checkpoint(0, next_)), at(published)) == at(floor)
    assert floor_of("j", found(None), at(30)) == at(30)


def test_a_table_that_was_rolled_back_begins_at_its_checkpoint_until_it_has_what_it_lost() -> None:
    lost = checkpoint(20, 50)
    rolled_back = found(checkpoint(0, 10), lost=lost)
    assert floor_of("j", rolled_back, at(80)) == at(10)
    after = routed_checkpoint_after(
        rolled_back, Batch("d", at(10), at(30)), {}, IDS, {}, frozenset(), at(10), at(80)
    )
    assert (after.behind, after.offsets) == ({P: 50}, at(30))
    assert floor_of("j", found(after), at(80)) == at(30)
    # A manager that takes an old position of the group for the last one forgets nothing.
    assert floor_of("j", found(after), at(25)) == at(30)
    last = routed_checkpoint_after(
        found(after), Batch("e", at(30), at(60)), {}, IDS, {}, frozenset(), at(30), at(80)
    )
    assert not last.is_behind
    assert floor_of("j", found(last), at(80)) == at(80)


def test_a_table_that_was_rolled_back_to_before_the_job_begins_where_it_began() -> None:
    assert floor_of("j", found(None, rolled_back_from=checkpoint(7, 50)), at(80)) == at(7)
    unknown = replace(checkpoint(7, 50), base=Counts())
    with pytest.raises(LostOffsets, match="rolled back to before"):
        floor_of("j", found(None, rolled_back_from=unknown), at(80))


def test_a_table_rolled_back_over_a_partition_without_a_leader_waits() -> None:
    assert waits_for_leader([found(checkpoint(0, 5), lost=checkpoint(0, 9))], [P]) == [P]
    assert waits_for_leader([found(checkpoint(0, 5))], [P]) == []


def test_a_group_that_is_there_decides_and_one_that_is_lost_is_told_by_the_tables() -> None:
    first, second = checkpoint(0, 10, 0, "1"), checkpoint(10, 20, 10, "2", getting="ab")
    tables = [found(second), found(second, "b"), found(first, "old")]
    assert routed_resume_point("j", tables, group(33), at(0)).published == at(33)
    # Both tables of the last batch have it.
    assert routed_resume_point("j", tables, group(None), at(0)).published == at(20)
    # One of them does not: its batch began where the group was.
    missed = [found(second), found(first, "b")]
    assert routed_resume_point("j", missed, group(None), at(0)).published == at(10)
    # Of the first batch nobody knows whether its dead letters were published.
    assert routed_resume_point("j", [found(first)], group(None), at(0)).published == at(0)
    assert routed_resume_point("j", [], group(None), at(5)).published == at(5)


def test_a_table_that_the_others_knew_by_another_id_stops_the_job() -> None:
    others = checkpoint(0, 10, getting="ab")
    anew = FoundCheckpoint(None, target="b", target_id="another")
    with pytest.raises(LostOffsets, match="was dropped and created again"):
        routed_resume_point("j", [found(others), anew], group(10), at(0))
    never_had_rows = FoundCheckpoint(None, target="c", target_id="another")
    assert routed_resume_point("j", [found(others), never_had_rows], group(10), at(0)).starts[1] == at(10)


class Table(Target):
    def __init__(self, name: str) -> None:
        self.name = name

    def found(self) -> FoundCheckpoint:
        if "absent" in self.name:
            raise ConfigError([Problem("", "it is not there")])
        return FoundCheckpoint(None, target=self.name)

    def plan(self, new_fields: Any) -> None:
        return None


class NamingSink(Sink):
    writer: Any = None
    routing = Routing(None, grows=True, most_targets=1_000, most_targets_key="the.key")

    def targets(self) -> list[Target]:
        return []

    def target(self, name: str) -> Target:
        return Table(name)


def test_tables_that_no_record_names_are_let_go() -> None:
    targets = RoutedTargets(NamingSink())
    names = [f"t{number}" for number in range(700)]
    assert len(targets.opened(names, 0, now=0.0)) == 700
    for number in range(0, 700, 10):
        targets.had_rows(names[number : number + 10])
    assert targets.too_many(700)
    kept = [name for name in names if targets.is_kept(name)]
    assert kept == names[-250:]
    assert not targets.too_many(len(kept))


def test_a_table_that_is_not_there_is_asked_for_again_later() -> None:
    targets = RoutedTargets(NamingSink())
    assert targets.opened(["absent", "there"], 0, now=0.0)[0][0].name == "there"
    assert targets.absent(now=5.0) == {"absent": "it is not there"}
    assert targets.absent(now=50.0) == {}


def test_records_that_name_too_many_tables_stop_the_job() -> None:
    targets = RoutedTargets(NamingSink())
    with pytest.raises(FatalError, match=r"name more than 1000 tables.*the\.key"):
        targets.opened([f"t{number}" for number in range(1_001)], 0, now=0.0)
    for _ in range(2):
        # Whoever tries again creates no more.
        targets.creates([Table(f"t{number}") for number in range(1_000)])
    with pytest.raises(FatalError, match="name more than 1000 tables"):
        targets.creates([Table("one more")])


def test_things_in_use_stay_within_a_bound() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name

    held = LastUsed(make, 3)
    for name in "abcacd":
        held.get(name)
    assert (made, len(held)) == (list("abcd"), 3)
    held.get("b")
    assert made[-1] == "b"


def test_a_batch_without_a_partition_does_not_tell_that_all_tables_have_its_last_one() -> None:
    other = Partition("t", 1)
    began = checkpoint(0, 10, commit="first")
    # Table a got this batch, b did not: its manager died. Then the partition had no leader.
    ahead = routed_checkpoint_after(
        found(began), Batch("c", at(10), at(20)), {}, IDS, {}, frozenset("ab"), at(10), at(10)
    )
    begins, ends = Offsets({other: 0}), Offsets({other: 5})
    without = routed_checkpoint_after(
        found(ahead), Batch("d", begins, ends), {}, IDS, {}, frozenset("a"), begins, begins, [P]
    )
    resume = routed_resume_point("j", [found(without), found(began, "b")], {}, Offsets({P: 0, other: 0}))
    assert resume.published is not None and resume.published[P] == 10


def test_a_job_that_routes_no_more_goes_on_where_the_group_is() -> None:
    """Not where a table got its last row: what came since was for others, and its letters are published."""
    often, rare = checkpoint(80, 100, commit="d"), checkpoint(0, 10)
    resume = resume_point("g", [found(often), found(rare, "b"), found(None, "new")], group(90), at(0))
    assert [start[P] for start in resume.starts] == [100, 90, 90]
    assert unpublished_batch(resume.checkpoints, group(90), [P]) is None
    # A group that somebody else has moved says nothing.
    moved = resume_point("g", [found(often), found(rare, "b")], {P: GroupOffset(500, "")}, at(0))
    assert [start[P] for start in moved.starts] == [100, 10]


def test_a_table_that_is_rolled_back_after_its_job_has_ceased_to_route_gets_all_its_rows_again() -> None:
    before = found(checkpoint(0, 10), lost=checkpoint(40, 50, commit="lost"))
    resume = resume_point("g", [before], group(90), at(0))
    assert resume.start == at(10)
    batch = Batch("d", at(10), at(30))
    staged = StagedBatch(batch, BatchResult({"a": Staged([], 20, {P: Counts(20, 20)})}), [], {})
    after = checkpoint_of(before, resume.start, staged, resume, IDS, None)
    assert resume_point("g", [found(after)], group(90), at(0)).start == at(30)


def test_targets_without_a_field_to_create_them_from_are_waited_for_once() -> None:
    targets, missing = RoutedTargets(NamingSink()), [Table("a")]
    assert targets.has_nothing_for(missing, 0.0)
    assert targets.absent(5.0) == {"a": ""}
    assert not targets.has_nothing_for(missing, 5.0), "what has a value and no field is waited for"
    assert targets.absent(16.0) == {}
