"""Batches of sinks whose files have a size."""

from __future__ import annotations

import datetime as dt

import pytest

from icestream.api.batch import Batch, Left
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Filling
from icestream.jobs.sinks.batches.filling import FillSchedule, NextBatch

A, B = Partition("t", 0), Partition("t", 1)
NOW = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
MANY = 1_000_000


def at(a: int, b: int) -> Offsets:
    return Offsets({A: a, B: b})


def after_a_minute(since: dt.datetime) -> dt.datetime:
    return since + 60 * SECOND


def next_of(
    fills: FillSchedule, start: Offsets, ends: Offsets, now: dt.datetime = NOW, allowed: int = MANY
) -> NextBatch | None:
    return fills.next(start, ends, allowed, now, is_limited=False)


def test_what_fills_no_file_waits_for_ever() -> None:
    fills = FillSchedule(Filling(10, "flush.size"))
    assert next_of(fills, at(0, 0), at(9, 9)) is None
    assert fills.seconds(NOW) is None
    assert next_of(fills, at(0, 0), at(9, 9), NOW + 3600 * SECOND) is None
    assert fills.told(at(0, 0), at(9, 8)) == (
        "waiting for flush.size: topic 't', partition 0 has 9 of 10 records, and 1 more partitions"
    )


def test_a_batch_has_whole_files() -> None:
    fills = FillSchedule(Filling(10, "flush.size"))
    assert next_of(fills, at(5, 0), at(38, 9)) == NextBatch(at(35, 0), may_leave=True)


def test_a_batch_is_as_small_as_it_must_be_but_one_file() -> None:
    fills = FillSchedule(Filling(10, "flush.size"))
    assert next_of(fills, at(0, 0), at(100, 100), allowed=50) == NextBatch(at(20, 20), may_leave=True)
    assert next_of(fills, at(0, 0), at(90, 100), allowed=3) == NextBatch(at(0, 10), may_leave=True)


def test_what_waited_long_enough_is_written_whole_and_nothing_else() -> None:
    fills = FillSchedule(Filling(10, "flush.size", after_a_minute))
    assert next_of(fills, at(0, 0), at(3, 0)) is None
    assert next_of(fills, at(0, 0), at(4, 4), NOW + 30 * SECOND) is None
    assert fills.seconds(NOW + 30 * SECOND) == 30
    assert next_of(fills, at(0, 0), at(5, 5), NOW + 60 * SECOND) == NextBatch(at(5, 0), may_leave=False)
    assert next_of(fills, at(5, 0), at(6, 6), NOW + 61 * SECOND) is None


def test_what_came_while_a_batch_ran_waits_since_its_beginning() -> None:
    fills = FillSchedule(Filling(10, "flush.size", after_a_minute))
    batch = next_of(fills, at(0, 0), at(13, 0))
    assert batch == NextBatch(at(10, 0), may_leave=True)
    fills.began(batch, NOW)
    assert next_of(fills, at(10, 0), at(14, 2), NOW + 7 * SECOND) is None
    assert fills.seconds(NOW + 7 * SECOND) == 53
    # Nothing ran meanwhile: what comes now came now.
    assert next_of(fills, at(14, 2), at(15, 2), NOW + 300 * SECOND) is None
    assert fills.seconds(NOW + 300 * SECOND) == 60


def test_partitions_whose_time_is_over_at_about_the_same_time_are_written_together() -> None:
    fills = FillSchedule(Filling(10, "flush.size", after_a_minute))
    assert next_of(fills, at(0, 0), at(3, 0)) is None
    assert next_of(fills, at(0, 0), at(3, 4), NOW + SECOND) is None
    assert next_of(fills, at(0, 0), at(3, 4), NOW + 60 * SECOND) == NextBatch(at(3, 4), may_leave=False)


def test_full_files_of_one_partition_do_not_keep_another_waiting() -> None:
    fills = FillSchedule(Filling(10, "flush.size", after_a_minute))
    assert next_of(fills, at(0, 0), at(10, 1)) == NextBatch(at(10, 0), may_leave=True)
    assert next_of(fills, at(10, 0), at(20, 1), NOW + 40 * SECOND) == NextBatch(at(20, 0), may_leave=True)
    assert next_of(fills, at(20, 0), at(30, 1), NOW + 60 * SECOND) == NextBatch(at(20, 1), may_leave=False)


def test_what_a_writer_left_is_not_read_again_before_it_can_be_full() -> None:
    fills = FillSchedule(Filling(10, "flush.size"))
    # Of 20 records 4 were bad: one file is full, and 6 are left.
    fills.left(Batch("b", at(0, 0), at(20, 0)), {A: Left(12, 6)})
    assert next_of(fills, at(12, 0), at(23, 0)) is None
    assert next_of(fills, at(12, 0), at(24, 0)) == NextBatch(at(24, 0), may_leave=True)
    assert next_of(fills, at(12, 0), at(37, 0)) == NextBatch(at(34, 0), may_leave=True)
    # Somebody moved the job: what was left means nothing.
    assert next_of(fills, at(0, 0), at(10, 0)) == NextBatch(at(10, 0), may_leave=True)


def test_records_that_may_end_a_file_by_what_they_are_are_looked_at_now_and_then() -> None:
    fills = FillSchedule(Filling(10, "flush.size", look_seconds=5))
    first = next_of(fills, at(0, 0), at(3, 0))
    assert first == NextBatch(at(3, 0), may_leave=True)
    fills.began(first, NOW)
    fills.left(Batch("b", at(0, 0), at(3, 0)), {A: Left(0, 3)})
    assert next_of(fills, at(0, 0), at(4, 0), NOW + SECOND) is None
    assert fills.seconds(NOW + SECOND) == 4
    assert next_of(fills, at(0, 0), at(3, 0), NOW + 5 * SECOND) is None
    assert next_of(fills, at(0, 0), at(4, 0), NOW + 5 * SECOND) == NextBatch(at(4, 0), may_leave=True)


def test_a_look_that_finds_no_end_in_as_much_as_a_batch_may_have_is_written_as_it_is() -> None:
    fills = FillSchedule(Filling(1_000_000, "flush.size", look_seconds=5))
    first = next_of(fills, at(0, 0), at(100, 0), allowed=30)
    assert first == NextBatch(at(30, 0), may_leave=True)
    fills.began(first, NOW)
    fills.left(Batch("b", at(0, 0), at(30, 0)), {A: Left(0, 30)})
    assert next_of(fills, at(0, 0), at(100, 0), allowed=30) == NextBatch(at(30, 0), may_leave=False)
    assert next_of(fills, at(30, 0), at(100, 0), allowed=30) is None


def test_a_batch_that_must_be_smaller_than_a_file_is_taken_whole() -> None:
    fills = FillSchedule(Filling(10, "flush.size"))
    found = fills.next(at(0, 0), at(20, 0), 3, NOW, is_limited=True)
    assert found == NextBatch(at(3, 0), may_leave=False)


@pytest.mark.parametrize("ends", [at(0, 0), Offsets({})])
def test_nothing_waits_where_nothing_is(ends: Offsets) -> None:
    fills = FillSchedule(Filling(10, "flush.size", after_a_minute, 1))
    assert next_of(fills, at(0, 0), ends) is None
    assert (fills.seconds(NOW), fills.told(at(0, 0), ends)) == (None, "")
