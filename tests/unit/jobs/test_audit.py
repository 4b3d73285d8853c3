import dataclasses
import json

from pyroaring import BitMap64

from icestream.api.batch import Batch, Counts, Slice
from icestream.api.checkpoint import (
    Checkpoint,
    TopicIds,
    checkpoint_after,
    checkpoint_moved,
    from_json,
    to_json,
)
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import RowOffsets, layered
from icestream.jobs.audits.audit import AuditFacts, Counted, DeadLetterFacts, findings, shown

P = Partition("t", 0)


def facts(counts: Counts, rows: int, letters: DeadLetterFacts | None = None) -> AuditFacts:
    batch = Batch("c", Offsets({P: 0}), Offsets({P: 10}))
    checkpoint = checkpoint_after(None, batch, {P: counts}, TopicIds("c", {"t": "i"}))
    return AuditFacts(checkpoint, Offsets({P: 10}), {}, rows, other_writers=False, letters=letters)


def test_books_that_balance() -> None:
    found = findings(facts(Counts(10, 9, 1, 0), 9, DeadLetterFacts(1, {P: BitMap64([4])})))
    assert found.holds
    assert found.line == (
        "10 in the topic, 9 in the table, 1 in the dead letter queue. None missing, none twice."
    )


def test_records_that_were_never_read_are_missing() -> None:
    found = findings(facts(Counts(8, 8), 8))
    assert found.problems == ["t-0: 2 records missing among offsets 0..9"]


def test_offsets_without_a_record_are_not_missing() -> None:
    assert findings(dataclasses.replace(facts(Counts(8, 8), 8), in_topic={Slice(P, 0, 10): Counted(8)})).holds


def test_rows_that_left_the_table_are_missing_unless_others_write_to_it() -> None:
    short = facts(Counts(10, 10), 7)
    assert "3 rows missing from the table" in findings(short).problems[0]
    assert findings(dataclasses.replace(short, other_writers=True)).holds


def test_a_dead_letter_too_many() -> None:
    found = findings(facts(Counts(10, 9, 1, 0), 9, DeadLetterFacts(2, None)))
    assert found.problems == ["2 dead letters in the queue, but 1 records were rejected"]


def test_what_retention_or_compaction_took_is_not_known_and_no_problem() -> None:
    books = dataclasses.replace(facts(Counts(8, 8), 8), in_topic={Slice(P, 0, 10): Counted(3, gone=6)})
    found = findings(books)
    assert found.holds
    assert found.line == "8 in the topic, 8 in the table. Nothing is known to be missing or too many."
    assert found.unknown[0].startswith("t-0: 6 of the offsets 0..9 have no record in the topic any more")
    deep = RowOffsets({P: layered([BitMap64([0, 1, 2, 3, 5, 6, 7, 8])])})
    assert findings(dataclasses.replace(books, deep=deep)).holds


def test_what_is_still_there_must_have_been_read_all_the_same() -> None:
    taken = {Slice(P, 0, 10): Counted(9, gone=1)}
    found = findings(dataclasses.replace(facts(Counts(8, 8), 8), in_topic=taken))
    assert found.problems == ["t-0: 1 records missing among offsets 0..9"]
    many = {Slice(P, 0, 10): Counted(3, gone=4)}
    found = findings(dataclasses.replace(facts(Counts(8, 8), 8), in_topic=many))
    assert found.problems == ["t-0: 1 records read twice among offsets 0..9"]


def test_letters_that_the_queue_no_longer_has_are_not_known() -> None:
    deep = RowOffsets({P: layered([BitMap64([*range(4), *range(6, 10)])])})
    books = facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(1, {P: BitMap64([4])}, is_cut=True))
    found = findings(dataclasses.replace(books, deep=deep))
    assert found.holds
    assert "1 of 2 dead letters are there" in found.unknown[0]
    assert "2 rejected" in found.line
    assert not findings(facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(1, {P: BitMap64([4])}))).holds


def test_letters_of_a_batch_that_is_under_way_are_not_known() -> None:
    books = facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(0, {}))
    assert not findings(books).holds
    found = findings(dataclasses.replace(books, is_settled=False))
    assert found.holds
    assert found.unknown[0].startswith("the last batch is not published yet: 0 of 2 dead letters")


def test_letters_that_do_not_say_whose_they_are_may_be_of_others() -> None:
    shared = findings(facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(5, None, unnamed=5)))
    assert shared.holds
    assert shared.unknown[0].startswith("5 letters of the queue do not say whose they are")
    named = findings(facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(5, None, unnamed=3)))
    assert (named.problems, named.unknown) == ([], [])
    assert findings(facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(5, None, unnamed=2))).problems
    assert findings(facts(Counts(10, 8, 2, 0), 8, DeadLetterFacts(1, None, unnamed=1))).problems


def test_deep_names_the_offsets_that_are_twice_and_missing() -> None:
    deep = RowOffsets({P: layered([BitMap64([0, 1, 2, 3, 4, 5, 6, 9]), BitMap64([2])])})
    found = findings(dataclasses.replace(facts(Counts(10, 10), 10), deep=deep))
    assert found.problems == [
        "t-0: offsets twice in the table: 2",
        "t-0: offsets missing from the table: 7..8",
    ]


def test_what_is_not_read_yet_is_said_and_is_no_problem() -> None:
    found = findings(dataclasses.replace(facts(Counts(10, 10), 10), ends=Offsets({P: 15})))
    assert found.holds
    assert found.line.endswith("5 not read yet.")


def test_many_offsets_are_shortened() -> None:
    assert shown(BitMap64(range(0, 40, 2))).endswith("… (20 in all)")


def moved_books(*steps: tuple[int | None, int]) -> Checkpoint:
    """A job that read 0..10, and was then moved and read on, as often as told: (to, until)."""
    source = TopicIds("c", {"t": "i"})
    checkpoint = checkpoint_after(
        None, Batch("c", Offsets({P: 0}), Offsets({P: 10})), {P: Counts(10, 10)}, source
    )
    for to, until in steps:
        checkpoint = checkpoint_moved(checkpoint, "m", {P: to}, source, Offsets({P: 0}))
        start = to or 0
        batch = Batch("b", Offsets({P: start}), Offsets({P: until}))
        checkpoint = checkpoint_after(checkpoint, batch, {P: Counts(until - start, until - start)}, source)
    return checkpoint


def books(checkpoint: Checkpoint, rows: int, *files: range) -> AuditFacts:
    deep = RowOffsets({P: layered(BitMap64(file) for file in files)})
    return AuditFacts(checkpoint, Offsets({P: 20}), {}, rows, other_writers=False, letters=None, deep=deep)


def test_what_was_read_again_after_a_reset_is_expected_twice() -> None:
    checkpoint = moved_books((None, 10))
    found = findings(books(checkpoint, 20, range(10), range(10)))
    assert found.holds, found.problems
    assert found.line == (
        "20 read, 10 of them again by hand, 20 in the table. None missing, none too many. 10 not read yet."
    )
    assert findings(books(checkpoint, 10, range(10))).problems == [
        "10 rows missing from the table: 20 were written",
        "t-0: offsets missing from the table: 0..9",
    ]
    assert findings(books(checkpoint, 23, range(10), range(10), range(3))).problems == [
        "3 rows too many in the table: 20 were written",
        "t-0: offsets too often in the table: 0..2",
    ]


def test_what_was_skipped_by_hand_is_not_missing() -> None:
    found = findings(books(moved_books((15, 20)), 15, range(10), range(15, 20)))
    assert found.holds, found.problems
    assert found.line == ("15 read, 5 skipped by hand, 15 in the table. None missing, none too many.")


def test_a_reset_takes_the_skip_back() -> None:
    checkpoint = moved_books((15, 20), (None, 12))
    found = findings(books(checkpoint, 27, range(10), range(15, 20), range(12)))
    assert found.holds, found.problems
    assert found.line.startswith("27 read, 10 of them again by hand, 27 in the table.")
    assert found.line.endswith("8 not read yet.")


def test_after_a_reset_everything_is_still_to_be_read() -> None:
    checkpoint = checkpoint_moved(moved_books(), "m", {P: None}, TopicIds("c", {"t": "i"}), Offsets({P: 3}))
    facts = dataclasses.replace(books(checkpoint, 10, range(10)), beginnings=Offsets({P: 3}))
    found = findings(facts)
    assert found.holds, found.problems
    assert found.line == "10 read, 10 in the table. None missing, none too many. 17 not read yet."


def test_a_job_that_was_moved_before_it_read_anything_tells_what_it_skips() -> None:
    source = TopicIds("c", {"t": "i"})
    checkpoint = checkpoint_moved(None, "m", {P: 5}, source, Offsets({P: 2}))
    checkpoint = checkpoint_after(
        checkpoint, Batch("b", Offsets({P: 5}), Offsets({P: 20})), {P: Counts(15, 15)}, source
    )
    found = findings(books(checkpoint, 15, range(5, 20)))
    assert found.holds, found.problems
    assert found.line.startswith("15 read, 3 skipped by hand, 15 in the table.")


def test_rows_of_a_topic_that_was_created_anew_are_kept_and_not_counted_as_read_again() -> None:
    checkpoint = checkpoint_moved(moved_books(), "m", {P: None}, TopicIds("c", {"t": "new"}), Offsets({P: 0}))
    checkpoint = checkpoint_after(
        checkpoint, Batch("b", Offsets({P: 0}), Offsets({P: 6})), {P: Counts(6, 6)}, checkpoint.source
    )
    assert from_json(json.loads(json.dumps(to_json(checkpoint)))) == checkpoint
    found = findings(books(checkpoint, 16, range(10), range(6)))
    assert found.holds, found.problems
    assert found.line.startswith("16 read, 16 in the table.")
