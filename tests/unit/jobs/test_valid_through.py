"""Up to which time a job has read: partitions that are idle, behind, without a leader, of no known time."""

from __future__ import annotations

import datetime as dt

from icestream.api.batch import Batch, BatchResult
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.batches.valid_through import AskedEnds, ReadTimes

A, B = Partition("t", 0), Partition("t", 1)
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def ms(minutes: float) -> int:
    """So many minutes after noon."""
    return int((NOON + dt.timedelta(minutes=minutes)).timestamp() * 1000)


def at(minutes: float) -> dt.datetime:
    return NOON + dt.timedelta(minutes=minutes)


def batch(start: dict[Partition, int], end: dict[Partition, int]) -> Batch:
    return Batch("b", Offsets(start), Offsets(end))


def read(**newest: int) -> BatchResult:
    return BatchResult(newest_ms={{"A": A, "B": B}[name]: time for name, time in newest.items()})


def test_the_partition_that_is_least_far_decides() -> None:
    found = ReadTimes().after(
        batch({A: 0, B: 0}, {A: 5, B: 5}), read(A=ms(1), B=ms(3)), AskedEnds(Offsets({A: 5, B: 5}), at(4))
    )
    assert found == at(1)


def test_an_idle_partition_that_was_read_to_its_end_holds_nobody_back_also_after_a_restart() -> None:
    asked = AskedEnds(Offsets({A: 5, B: 7}), at(4))
    assert ReadTimes().after(batch({A: 0, B: 7}, {A: 5, B: 7}), read(A=ms(3)), asked) == at(3)


def test_an_idle_partition_counts_no_further_than_the_moment_its_end_was_asked() -> None:
    """A producer whose clock is ahead does not make a promise for the others."""
    asked = AskedEnds(Offsets({A: 5, B: 7}), at(4))
    assert ReadTimes().after(batch({A: 0, B: 7}, {A: 5, B: 7}), read(A=ms(60)), asked) == at(4)


def test_a_partition_that_is_behind_counts_as_far_as_it_was_read_before() -> None:
    times = ReadTimes()
    first = batch({A: 0, B: 0}, {A: 5, B: 5})
    times.committed(first, read(A=ms(1), B=ms(2)), AskedEnds(Offsets({A: 9, B: 9}), at(4)))
    second = batch({A: 5, B: 5}, {A: 9, B: 5})
    assert times.after(second, read(A=ms(3)), AskedEnds(Offsets({A: 9, B: 9}), at(5))) == at(2)


def test_a_partition_that_was_idle_and_is_behind_now_counts_as_of_then() -> None:
    times = ReadTimes()
    idle = batch({A: 0, B: 5}, {A: 5, B: 5})
    times.committed(idle, read(A=ms(1)), AskedEnds(Offsets({A: 5, B: 5}), at(4)))
    later = batch({A: 5, B: 5}, {A: 9, B: 5})
    assert times.after(later, read(A=ms(8)), AskedEnds(Offsets({A: 9, B: 6}), at(9))) == at(4)


def test_nothing_is_said_of_what_is_not_known() -> None:
    cut = batch({A: 0, B: 0}, {A: 5, B: 0})
    assert ReadTimes().after(cut, read(A=ms(1)), AskedEnds(Offsets({A: 5, B: 5}), at(4))) is None
    without_time = batch({A: 0}, {A: 5})
    assert ReadTimes().after(without_time, read(A=-1), AskedEnds(Offsets({A: 5}), at(4))) is None


def test_a_partition_without_a_leader_may_have_more_than_anybody_knows() -> None:
    times = ReadTimes()
    only = batch({A: 0}, {A: 5})
    asked = AskedEnds(Offsets({A: 5}), at(4))
    assert times.after(only, read(A=ms(3)), asked, [B]) is None
    both = batch({A: 0, B: 0}, {A: 5, B: 5})
    times.committed(both, read(A=ms(1), B=ms(2)), AskedEnds(Offsets({A: 5, B: 5}), at(2)))
    assert times.after(only, read(A=ms(3)), asked, [B]) == at(2)


def test_offsets_without_records_such_as_ends_of_transactions_are_idleness() -> None:
    markers = batch({A: 0, B: 5}, {A: 5, B: 6})
    asked = AskedEnds(Offsets({A: 5, B: 6}), at(4))
    assert ReadTimes().after(markers, read(A=ms(3)), asked) == at(3)
