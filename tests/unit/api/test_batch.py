import itertools

from icestream.api.batch import Batch, Counts, Slice, TaskTimes, add_counts, split
from icestream.api.offsets import Offsets, Partition

A, B, C = (Partition("t", number) for number in range(3))


def test_a_batch_has_slices_only_where_something_is() -> None:
    batch = Batch("b", Offsets({A: 0, B: 5}), Offsets({A: 10, B: 5}))
    assert batch.slices() == [Slice(A, 0, 10)]
    assert batch.span == 10


def test_dealt_slices_are_of_equal_span_and_cover_everything_once() -> None:
    slices = [Slice(A, 0, 100), Slice(B, 50, 53), Slice(C, 7, 207)]
    for hands in (1, 2, 3, 7):
        dealt = split(slices, hands)
        spans = [sum(piece.span for piece in hand) for hand in dealt]
        assert max(spans) - min(spans) <= 1
        offsets = sorted(
            (piece.partition, offset)
            for piece in itertools.chain(*dealt)
            for offset in range(piece.start, piece.until)
        )
        assert offsets == sorted((s.partition, o) for s in slices for o in range(s.start, s.until))


def test_there_are_never_more_hands_than_records() -> None:
    assert split([Slice(A, 3, 5)], 8) == [[Slice(A, 3, 4)], [Slice(A, 4, 5)]]


def test_counts_add_up_per_partition() -> None:
    total = add_counts([{A: Counts(2, 1, 1)}, {A: Counts(1, 0, 0, 1), B: Counts(1, 1)}])
    assert total == {A: Counts(3, 1, 1, 1), B: Counts(1, 1)}
    assert all(counts.reconcile for counts in total.values())


def test_offsets_survive_json() -> None:
    offsets = Offsets({A: 1, B: 2, Partition("u-1", 0): 3})
    assert Offsets.from_json(offsets.to_json()) == offsets


def test_times_of_tasks_are_summed_and_the_engine_took_the_rest() -> None:
    first = TaskTimes({"read": 1.0, "stage": 0.5}, 2.0, 1)
    second = TaskTimes({"read": 0.5, "convert": 0.25}, 1.0, 1)
    beside = TaskTimes.beside([first, second], seconds=2.5)
    assert beside == TaskTimes({"read": 1.5, "stage": 0.5, "convert": 0.25, "queue": 0.5}, 2.0, 2)
    assert TaskTimes.beside([], 0.0) == TaskTimes({"queue": 0.0}, 0.0, 0)
    again = beside + TaskTimes.beside([second], seconds=1.0)
    assert (again.stages["read"], again.longest, again.tasks) == (2.0, 3.0, 2)
