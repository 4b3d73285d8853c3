from dataclasses import replace

import pytest

from icestream.api.batch import Batch, Counts
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, TopicIds, checkpoint_after
from icestream.api.errors import LostOffsets, SourceRecreated
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.resuming.resume import has_all, refuse_other_source, resume_point, unpublished_batch
from icestream.kafka.topics import GroupOffset

P = Partition("t", 0)
SOURCE = TopicIds("cluster", {"t": "id"})
FRESH = Offsets({P: 0})


def checkpoint(*ends: int) -> Checkpoint:
    """The checkpoint after batches that end at these offsets."""
    made: Checkpoint | None = None
    start = 0
    for number, end in enumerate(ends):
        batch = Batch(f"commit-{number}", Offsets({P: start}), Offsets({P: end}))
        made = checkpoint_after(made, batch, {P: Counts(end - start, end - start)}, SOURCE)
        start = end
    assert made is not None
    return made


def ours(offset: int) -> dict[Partition, GroupOffset]:
    return {P: GroupOffset(offset, "icestream:commit")}


def test_a_new_job_begins_at_the_beginning() -> None:
    assert resume_point("g", [FoundCheckpoint(None)], {}, FRESH).start == FRESH


def test_a_job_that_java_ran_before_goes_on_where_its_group_stands() -> None:
    assert resume_point("g", [FoundCheckpoint(None)], {P: GroupOffset(42, "")}, FRESH).start[P] == 42


def test_the_table_decides_over_the_group() -> None:
    assert resume_point("g", [FoundCheckpoint(checkpoint(10))], ours(3), FRESH).start[P] == 10
    assert resume_point("g", [FoundCheckpoint(checkpoint(10))], ours(30), FRESH).start[P] == 10


def test_a_group_of_ours_without_any_checkpoint_is_an_error_and_not_offset_zero() -> None:
    with pytest.raises(LostOffsets):
        resume_point("g", [FoundCheckpoint(None)], ours(10), FRESH)


def test_a_rollback_to_before_the_job_reads_from_where_the_job_began() -> None:
    resume = resume_point(
        "g", [FoundCheckpoint(None, rolled_back_from=checkpoint(10, 20))], ours(20), Offsets({P: 5})
    )
    assert resume.start[P] == 0


def test_the_table_that_is_behind_decides_where_the_batch_starts() -> None:
    resume = resume_point(
        "g", [FoundCheckpoint(checkpoint(10, 20)), FoundCheckpoint(checkpoint(10))], ours(10), FRESH
    )
    assert resume.start[P] == 10
    assert [start[P] for start in resume.starts] == [20, 10]


def test_a_table_that_missed_the_first_batch_gets_it() -> None:
    assert [
        f[P]
        for f in resume_point("g", [FoundCheckpoint(checkpoint(10)), FoundCheckpoint(None)], {}, FRESH).starts
    ] == [10, 0]


def test_a_table_that_joins_later_begins_where_the_others_are() -> None:
    resume = resume_point("g", [FoundCheckpoint(checkpoint(10, 20)), FoundCheckpoint(None)], ours(20), FRESH)
    assert [start[P] for start in resume.starts] == [20, 20]


def test_a_new_partition_begins_at_its_beginning() -> None:
    new = Partition("t", 1)
    resume = resume_point("g", [FoundCheckpoint(checkpoint(10))], ours(10), Offsets({P: 3, new: 0}))
    assert resume.start == Offsets({P: 10, new: 0})


def test_nothing_is_owed_when_group_and_table_agree() -> None:
    assert unpublished_batch([checkpoint(10, 20)], ours(20), [P]) is None


def test_the_last_batch_is_owed_when_the_group_stands_at_its_start() -> None:
    batch = unpublished_batch([checkpoint(10, 20)], ours(10), [P])
    assert batch is not None
    assert (batch.start[P], batch.end[P]) == (10, 20)


def test_the_first_batch_is_owed_also_if_it_took_two_attempts_to_land_in_all_tables() -> None:
    """The manager died after the first of two tables, and the next one before the transaction."""
    first = Batch("attempt-0", Offsets({P: 0}), Offsets({P: 6}))
    second = Batch("attempt-1", Offsets({P: 0}), Offsets({P: 8}))
    ahead = checkpoint_after(None, first, {P: Counts(6, 6)}, SOURCE)
    checkpoints = [
        checkpoint_after(ahead, second, {P: Counts(2, 2)}, SOURCE),
        checkpoint_after(None, second, {}, SOURCE),
    ]
    batch = unpublished_batch(checkpoints, {}, [P])
    assert batch is not None
    assert (batch.start[P], batch.end[P]) == (0, 8)


def test_the_first_batch_is_owed_when_there_is_no_group_yet() -> None:
    batch = unpublished_batch([checkpoint(10)], {}, [P])
    assert batch is not None
    assert (batch.start[P], batch.end[P]) == (0, 10)


def test_nothing_is_repeated_when_somebody_moved_the_group_back() -> None:
    assert unpublished_batch([checkpoint(10, 20)], ours(5), [P]) is None
    assert unpublished_batch([checkpoint(10, 20)], {}, [P]) is None


def test_another_cluster_or_topic_id_stops_the_job() -> None:
    refuse_other_source("j", [checkpoint(10)], SOURCE, ["t"])
    with pytest.raises(SourceRecreated, match="cluster"):
        refuse_other_source("j", [checkpoint(10)], TopicIds("other", {"t": "id"}), ["t"])
    with pytest.raises(SourceRecreated, match="created again"):
        refuse_other_source("j", [checkpoint(10)], TopicIds("cluster", {"t": "new"}), ["t"])


def test_a_checkpoint_never_goes_back() -> None:
    ahead = checkpoint(10, 20)
    batch = Batch("c", Offsets({P: 5}), Offsets({P: 15}))
    assert checkpoint_after(ahead, batch, {}, SOURCE).offsets[P] == 20


def named(name: str, checkpoint: Checkpoint | None, table_id: str | None = None) -> FoundCheckpoint:
    return FoundCheckpoint(checkpoint, target=name, target_id=table_id or f"id-{name}")


def with_tables(checkpoint: Checkpoint, *names: str, joining: str = "") -> Checkpoint:
    return replace(checkpoint, targets={n: f"id-{n}" for n in names}, joining=frozenset(joining.split()))


def test_a_table_that_joins_after_the_first_batch_begins_where_the_others_are_and_what_is_owed_is_paid() -> (
    None
):
    found = [named("a", with_tables(checkpoint(10), "a", joining="a")), named("b", None)]
    assert [start[P] for start in resume_point("g", found, {}, FRESH).starts] == [10, 10]
    assert has_all(found)


def test_a_table_that_misses_its_first_batch_gets_it_with_its_dead_letters() -> None:
    found = [named("a", with_tables(checkpoint(10, 20), "a", "b", joining="b")), named("b", None)]
    assert [start[P] for start in resume_point("g", found, ours(10), FRESH).starts] == [20, 10]
    assert not has_all(found)


def test_a_table_that_its_siblings_know_by_another_id_stops_the_job() -> None:
    found = [named("a", with_tables(checkpoint(10, 20), "a", "b")), named("b", None, "other-id")]
    with pytest.raises(LostOffsets, match="its id was id-b and is other-id"):
        resume_point("g", found, ours(20), FRESH)


def test_a_table_that_has_lost_its_checkpoint_stops_the_job() -> None:
    found = [named("a", with_tables(checkpoint(10, 20), "a", "b")), named("b", None)]
    with pytest.raises(LostOffsets, match="has lost what it knew"):
        resume_point("g", found, ours(20), FRESH)


def test_a_position_without_a_topic_id_is_refused_when_the_topic_is_read_again() -> None:
    nameless = replace(checkpoint(10), source=TopicIds("cluster", {}))
    with pytest.raises(SourceRecreated, match="cannot be told"):
        refuse_other_source("j", [nameless], SOURCE, ["t"])
    refuse_other_source("j", [nameless], SOURCE, ["other"])


def test_a_rollback_to_before_a_job_of_which_nobody_knows_where_it_began_stops_it() -> None:
    counted_anew = replace(checkpoint(10, 20), base=Counts(5, 5))
    with pytest.raises(LostOffsets, match="where the job began"):
        resume_point("g", [FoundCheckpoint(None, rolled_back_from=counted_anew)], ours(20), FRESH)


def test_a_topic_that_is_no_longer_read_owes_nothing() -> None:
    assert unpublished_batch([checkpoint(10, 20)], ours(10), []) is None
