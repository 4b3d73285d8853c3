"""How far a job is behind, and since about when."""

from __future__ import annotations

import datetime as dt

from icestream.api.history import MOST_PARTITIONS
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.batches.lags import LagWatch

_FIRST, _SECOND = Partition("t", 0), Partition("t", 1)


def at(second: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(second, dt.UTC)


def offsets(first: int, second: int) -> Offsets:
    return Offsets({_FIRST: first, _SECOND: second})


def test_nothing_unread_has_no_time() -> None:
    found = LagWatch().at(offsets(5, 5), offsets(5, 5), at(100))
    assert (found.lag, found.end, found.oldest_unread_ms) == (0, 10, None)


def test_nobody_knows_how_old_what_a_new_job_finds_is() -> None:
    found = LagWatch().at(offsets(0, 0), offsets(5, 5), at(100))
    assert (found.lag, found.oldest_unread_ms) == (10, None)


def test_it_came_after_the_partition_had_nothing_more() -> None:
    watch = LagWatch()
    watch.at(offsets(5, 5), offsets(5, 5), at(100))
    watch.at(offsets(5, 5), offsets(5, 5), at(160))
    assert watch.at(offsets(5, 5), offsets(9, 5), at(161)).oldest_unread_ms == 160_000
    # The longer it waits, the older it is.
    assert watch.at(offsets(5, 5), offsets(9, 8), at(170)).oldest_unread_ms == 160_000


def test_it_came_after_the_newest_record_that_was_read() -> None:
    watch = LagWatch()
    watch.at(offsets(0, 0), offsets(9, 9), at(100))
    watch.committed({_FIRST: 40_000, _SECOND: 70_000})
    found = watch.at(offsets(5, 5), offsets(9, 9), at(100))
    assert found.oldest_unread_ms == 40_000
    assert [one.newest_ms for one in found.partitions] == [40_000, 70_000]
    assert watch.at(offsets(9, 5), offsets(9, 9), at(110)).oldest_unread_ms == 70_000


def test_a_job_that_slept_was_woken_soon_after_something_came() -> None:
    watch = LagWatch()
    watch.at(offsets(5, 5), offsets(5, 5), at(100), watched_seconds=0.5)
    assert watch.at(offsets(5, 5), offsets(6, 5), at(700), watched_seconds=0.5).oldest_unread_ms == 699_500
    # It does not sleep any more: what waits gets older.
    assert watch.at(offsets(5, 5), offsets(7, 5), at(800), watched_seconds=0.5).oldest_unread_ms == 699_500


def test_a_job_that_goes_back_was_done_with_nothing() -> None:
    watch = LagWatch()
    watch.at(offsets(5, 5), offsets(5, 5), at(100))
    assert watch.at(offsets(2, 5), offsets(5, 5), at(110)).oldest_unread_ms is None


def test_of_many_partitions_those_furthest_behind_are_told() -> None:
    many = {Partition("t", number): number for number in range(MOST_PARTITIONS + 50)}
    start = Offsets(dict.fromkeys(many, 0))
    found = LagWatch().at(start, Offsets(many), at(100))
    assert len(found.partitions) == MOST_PARTITIONS
    assert min(one.lag for one in found.partitions) == 50
    assert found.lag == sum(many.values())
