import pytest

from icestream.api.batch import Batch, BatchResult, Rejected, Slice
from icestream.api.errors import SourceRecreated
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.batches import planning
from icestream.jobs.sinks.batches.planning import Pace
from icestream.jobs.sinks.job import Limits

A, B = Partition("t", 0), Partition("t", 1)
LIMITS = Limits(interval=10.0, rows=1_000_000, bytes=1_000_000)


def test_nothing_waiting_is_never_due() -> None:
    assert not planning.is_due(100.0, 0, Pace(), LIMITS)


def test_the_first_batch_starts_at_once() -> None:
    assert planning.is_due(0.0, 1, Pace(), LIMITS)


def test_a_batch_waits_for_the_interval() -> None:
    pace = Pace(last_start=100.0)
    assert not planning.is_due(109.9, 1, pace, LIMITS)
    assert planning.is_due(110.0, 1, pace, LIMITS)


def test_rows_and_bytes_start_a_batch_early() -> None:
    assert planning.is_due(101.0, 1_000_000, Pace(last_start=100.0), LIMITS)
    assert planning.is_due(101.0, 1_000, Pace(last_start=100.0, bytes_a_row=1_000.0), LIMITS)
    assert not planning.is_due(101.0, 999, Pace(last_start=100.0, bytes_a_row=1_000.0), LIMITS)


def test_a_job_that_is_behind_does_not_wait() -> None:
    assert planning.is_due(100.1, 1, Pace(last_start=100.0, behind=True), LIMITS)


def test_batches_of_a_job_that_is_behind_last_about_an_interval() -> None:
    assert planning.rows_allowed(Pace(rows_a_second=80_000.0), LIMITS) == 800_000
    assert planning.rows_allowed(Pace(rows_a_second=1.0), LIMITS) == 50_000
    assert planning.rows_allowed(Pace(rows_a_second=80_000.0, bytes_a_row=100.0), LIMITS) == 10_000
    assert planning.rows_allowed(Pace(rows_a_second=80_000.0, rows_limit=7), LIMITS) == 7


def test_a_limit_is_eased_until_it_limits_nothing() -> None:
    assert planning.eased(Pace(), LIMITS) is None
    assert planning.eased(Pace(rows_limit=1), LIMITS) == 2
    assert planning.eased(Pace(rows_limit=100_000), LIMITS) == 125_001
    assert planning.eased(Pace(rows_limit=800_000), LIMITS) is None


def test_a_cut_takes_from_every_partition_in_proportion_and_never_more_than_there_is() -> None:
    start, ends = Offsets({A: 10, B: 0}), Offsets({A: 310, B: 100})
    assert planning.cut(start, ends, 1_000) == ends
    assert planning.cut(start, ends, 200) == Offsets({A: 160, B: 50})


def test_a_cut_is_smaller_however_many_partitions_have_a_record() -> None:
    partitions = [Partition("t", number) for number in range(5)]
    start, ends = Offsets(dict.fromkeys(partitions, 7)), Offsets(dict.fromkeys(partitions, 8))
    cut = planning.cut(start, ends, 2)
    assert [cut[partition] for partition in partitions] == [8, 8, 7, 7, 7]


def test_a_cut_always_moves_every_partition_that_waits() -> None:
    start, ends = Offsets({A: 0, B: 0}), Offsets({A: 1_000_000, B: 1})
    assert planning.cut(start, ends, 10)[B] == 1


def test_of_many_partitions_some_are_cut_in_slices_that_are_worth_it_and_each_in_its_turn() -> None:
    many = [Partition("t", number) for number in range(1_000)]
    start, ends = Offsets(dict.fromkeys(many, 0)), Offsets(dict.fromkeys(many, 8_000))
    read: set[Partition] = set()
    after: Partition | None = None
    for _ in range(10):
        batch = planning.cut(start, ends, 500_000, after)
        after = planning.last_of(Batch("b", start, batch), after)
        taken = {partition: batch[partition] for partition in many if batch[partition]}
        assert set(taken.values()) == {5_000}
        assert len(taken) == 100
        read |= set(taken)
    assert read == set(many)


def test_a_hot_partition_among_many_starves_none_of_the_others() -> None:
    many = [Partition("t", number) for number in range(64)]
    start, ends = dict.fromkeys(many, 0), {**dict.fromkeys(many, 5_000), many[0]: 200_000_000}
    after: Partition | None = None
    for _ in range(50):
        batch = Batch("b", Offsets(dict(start)), planning.cut(Offsets(start), Offsets(ends), 160_000, after))
        after = planning.last_of(batch, after)
        start = dict(batch.end.positions)
        ends = {partition: end + 3_000 for partition, end in ends.items()}
    assert min(start.values()) > 50_000


def test_a_hot_partition_among_many_gets_its_share_and_a_limit_is_kept() -> None:
    many = [Partition("t", number) for number in range(100)]
    start = Offsets(dict.fromkeys(many, 0))
    ends = Offsets({**dict.fromkeys(many, 10), many[0]: 1_000_000})
    batch = planning.cut(start, ends, 100_000)
    assert 99_000 < batch[many[0]] <= 100_000
    assert sum(batch.positions.values()) <= 100_000
    assert sum(planning.cut(start, ends, 7).positions.values()) == 7


def test_a_batch_that_was_too_large_tells_how_large_records_are() -> None:
    megabytes = planning.shrunk(
        Pace(), 500_000, BatchResult(bytes_read=2**31, records_read=2**11, overflow=True)
    )
    assert megabytes.behind
    assert planning.rows_allowed(megabytes, Limits(interval=10.0, rows=10**6, bytes=2**30)) == 1_024
    # By rejects, whose size says nothing of the others.
    assert planning.rows_allowed(planning.shrunk(Pace(), 7, BatchResult()), LIMITS) == 3


def test_what_precedes_the_first_bad_record_of_each_partition() -> None:
    end = Offsets({A: 100, B: 50})
    bad = [Rejected(A, 70, "s", "r"), Rejected(A, 30, "s", "r")]
    assert planning.before_rejected(end, bad) == Offsets({A: 30, B: 50})


def test_a_topic_that_ends_before_the_table_stops_the_job() -> None:
    with pytest.raises(SourceRecreated, match="ends at offset 5, but the table goes on at 10"):
        planning.refuse_gaps("j", Offsets({A: 10}), Offsets({A: 0}), Offsets({A: 5}))


def test_records_lost_to_retention_stop_the_job() -> None:
    with pytest.raises(SourceRecreated, match="retention removed records that were never read"):
        planning.refuse_gaps("j", Offsets({A: 10}), Offsets({A: 20}), Offsets({A: 50}))


def test_what_a_topic_still_has_of_a_batch_is_readable() -> None:
    whole, cut, gone, short = (Partition("t", number) for number in range(4))
    places = [whole, cut, gone, short]
    batch = Batch("b", Offsets(dict.fromkeys(places, 10)), Offsets(dict.fromkeys(places, 20)))
    beginnings = Offsets({whole: 0, cut: 15, gone: 30, short: 0})
    left = planning.readable(batch, beginnings, Offsets({whole: 20, cut: 25, gone: 30, short: 19}))
    assert left.slices() == [Slice(whole, 10, 20), Slice(cut, 15, 20)]
    assert left.end == batch.end
