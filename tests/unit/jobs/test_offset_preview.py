"""What a change of offsets would do, in numbers."""

from __future__ import annotations

from icestream.api.offset_admin import PartitionPosition
from icestream.api.offsets import Partition
from icestream.jobs.offsets.preview import preview

P = Partition("t", 0)


def position(**more: object) -> PartitionPosition:
    facts = {"beginning": 0, "end": 100, "resumes": 60, "in_targets": 60, "in_group": 60, "read": ((0, 60),)}
    return PartitionPosition("t", 0, **{**facts, **more})  # type: ignore[arg-type]


def numbers(at: PartitionPosition, target: int | None) -> tuple[int, int, int, int]:
    (found,) = preview([at], {P: target})
    return found.again, found.skipped, found.gone, found.left


def test_back_is_read_again() -> None:
    assert numbers(position(), 40) == (20, 0, 0, 60)


def test_ahead_is_skipped_for_ever() -> None:
    assert numbers(position(), 90) == (0, 30, 0, 10)


def test_where_it_is_does_nothing() -> None:
    assert numbers(position(), 60) == (0, 0, 0, 40)


def test_the_beginning_is_the_first_offset_that_the_topic_has() -> None:
    assert numbers(position(beginning=25), None) == (35, 0, 25, 75)


def test_what_retention_took_before_it_was_read_is_gone() -> None:
    assert numbers(position(beginning=70), 80) == (0, 10, 10, 20)


def test_what_was_skipped_before_is_not_read_again_but_for_the_first_time() -> None:
    hopped = position(resumes=80, read=((0, 20), (50, 80)))
    assert numbers(hopped, 10) == (40, 0, 0, 90)


def test_what_was_read_twice_counts_once() -> None:
    assert numbers(position(read=((0, 60), (10, 60))), 20) == (40, 0, 0, 80)


def test_ahead_of_a_job_that_was_moved_back_is_not_skipped_where_it_was_read_before() -> None:
    assert numbers(position(resumes=10, read=((0, 60),)), 70) == (0, 10, 0, 30)


def test_a_reset_moves_every_partition_and_a_change_only_those_it_names() -> None:
    others = [position(), PartitionPosition("t", 1, 0, 50, 50, 50, 50, ((0, 50),))]
    assert [one.again for one in preview(others, None)] == [60, 50]
    assert [one.position.partition for one in preview(others, {Partition("t", 1): 0})] == [1]
