"""Dead letters read again: whose they are, where they were, and the record as it was."""

from __future__ import annotations

from icestream.api.batch import Rejected
from icestream.api.offsets import Partition
from icestream.jobs.job import DeadLetters
from icestream.jobs.letters import Letter, _parted
from icestream.jobs.outbox import dead_letter
from icestream.jobs.replay_marks import Sent
from icestream.kafka.log import LogRecord


def _letter(offset: int, context: dict[str, str], number: int = 0) -> Letter:
    return Letter(Partition("dlq", number), offset, context, b"k", b"v", [], 0)


def test_the_context_is_taken_off_and_the_record_has_its_own_headers_again() -> None:
    own = [("trace", b"1"), ("__connect.errors.topic", b"of an older letter"), ("__connect.errors.x", None)]
    record = Rejected(Partition("t", 2), 5, "TASK_PUT", "no id", headers=own)
    letter = dead_letter(record, DeadLetters("dlq", 1, with_context=True), "sink")
    headers, context = _parted(letter.headers)
    assert list(headers) == own
    assert (context["topic"], context["partition"], context["offset"]) == ("t", "2", "5")
    assert (context["stage"], context["exception.message"]) == ("TASK_PUT", "no id")


def test_a_letter_without_context_is_of_any_connector_and_from_nowhere() -> None:
    assert _parted([("trace", b"1")]) == ([("trace", b"1")], {})
    letter = _letter(0, {})
    assert letter.may_be_of("sink")
    assert (letter.origin, letter.origin_offset) == (None, None)


def test_a_letter_of_another_connector_is_not_ours() -> None:
    assert not _letter(0, {"connector.name": "other"}).may_be_of("sink")


def test_context_that_somebody_else_made_up_is_from_nowhere() -> None:
    for partition, offset in (("-1", "many"), ("9" * 5000, "9" * 5000)):
        letter = _letter(0, {"topic": "t", "partition": partition, "offset": offset})
        assert (letter.origin, letter.origin_offset) == (None, None)


def test_what_was_sent_is_remembered_by_its_records_alone() -> None:
    letters = [_letter(at, {}, number) for number in (0, 1) for at in (3, 70_000, 2**40)]
    sent = Sent("queue-id")
    records = sent.note(letters)
    assert len(records) == 6
    other, anew = Sent("queue-id"), Sent("id-of-a-queue-created-anew")
    for number, record in enumerate(records):
        for reader in (other, anew):
            reader.take(LogRecord(number, record.key or b"", record.value))
    assert all(letter in other for letter in letters)
    assert not any(letter in anew for letter in letters)
    assert _letter(4, {}) not in other
    assert _letter(3, {}, 2) not in other


def test_a_later_replay_keeps_the_marks_of_an_earlier_one() -> None:
    sent = Sent("q")
    sent.note([_letter(1, {})])
    (record,) = sent.note([_letter(2, {})])
    other = Sent("q")
    other.take(LogRecord(0, record.key or b"", record.value))
    assert _letter(1, {}) in other
    assert _letter(2, {}) in other
