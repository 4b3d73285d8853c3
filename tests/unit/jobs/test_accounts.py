import dataclasses

from pyroaring import BitMap64

from icestream.api.batch import Batch, Counts
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.accounts import Deep, Evidence, Letters, judge, shown
from icestream.sinks.iceberg.marks import Source, mark_after

P = Partition("t", 0)


def evidence(counts: Counts, rows: int, letters: Letters | None = None) -> Evidence:
    batch = Batch("c", Offsets({P: 0}), Offsets({P: 10}))
    mark = mark_after(None, batch, {P: counts}, Source("c", {"t": "i"}))
    return Evidence(mark, Offsets({P: 10}), {}, rows, other_writers=False, letters=letters)


def test_books_that_balance() -> None:
    verdict = judge(evidence(Counts(10, 9, 1, 0), 9, Letters(1, {P: BitMap64([4])})))
    assert verdict.holds
    assert verdict.line == (
        "10 in the topic, 9 in the table, 1 in the dead letter queue. None missing, none twice."
    )


def test_records_that_were_never_read_are_missing() -> None:
    verdict = judge(evidence(Counts(8, 8), 8))
    assert verdict.problems == ["t-0: 2 records missing among offsets 0..9"]


def test_offsets_without_a_record_are_not_missing() -> None:
    assert judge(dataclasses.replace(evidence(Counts(8, 8), 8), in_topic={P: 8})).holds


def test_rows_that_left_the_table_are_missing_unless_others_write_to_it() -> None:
    short = evidence(Counts(10, 10), 7)
    assert "3 rows missing from the table" in judge(short).problems[0]
    assert judge(dataclasses.replace(short, other_writers=True)).holds


def test_a_dead_letter_too_many() -> None:
    verdict = judge(evidence(Counts(10, 9, 1, 0), 9, Letters(2, None)))
    assert verdict.problems == ["2 dead letters in the queue, but 1 records were rejected"]


def test_deep_names_the_offsets_that_are_twice_and_missing() -> None:
    deep = Deep({P: BitMap64([0, 1, 2, 3, 4, 5, 6, 9])}, {P: BitMap64([2])})
    verdict = judge(dataclasses.replace(evidence(Counts(10, 10), 10), deep=deep))
    assert verdict.problems == [
        "t-0: offsets twice in the table: 2",
        "t-0: offsets missing from the table: 7..8",
    ]


def test_what_is_not_read_yet_is_said_and_is_no_problem() -> None:
    verdict = judge(dataclasses.replace(evidence(Counts(10, 10), 10), ends=Offsets({P: 15})))
    assert verdict.holds
    assert verdict.line.endswith("5 not read yet.")


def test_many_offsets_are_shortened() -> None:
    assert shown(BitMap64(range(0, 40, 2))).endswith("… (20 in all)")
