"""Dead letters read again: whose they are, where they were, and the record as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from icestream.api.batch import Rejected
from icestream.api.offsets import Partition
from icestream.jobs.letters.replay import Replayed
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter, _without_context
from icestream.jobs.publishing.publisher import dead_letter
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.kafka.log import LogRecord


def _letter(offset: int, context: dict[str, str], number: int = 0, timestamp_ms: int = 0) -> DeadLetter:
    return DeadLetter(Partition("dlq", number), offset, context, b"k", b"v", [], timestamp_ms)


_CONTEXT = {"topic": "t", "partition": "2", "offset": "5", "stage": "TASK_PUT", "exception.message": "No id"}
_ONE_SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (DeadLetterFilter(), True),
        (DeadLetterFilter("t", 2, (4, 5), "TASK_PUT", "no ID", _ONE_SECOND), True),
        (DeadLetterFilter(topic="T"), False),
        (DeadLetterFilter(partition=1), False),
        (DeadLetterFilter(offsets=(4,)), False),
        (DeadLetterFilter(stage="TRANSFORMATION"), False),
        (DeadLetterFilter(reason="amount"), False),
        (DeadLetterFilter(since=_ONE_SECOND + timedelta(milliseconds=1)), False),
        (DeadLetterFilter(until=_ONE_SECOND), False),
    ],
)
def test_a_filter_takes_what_all_of_it_holds_for(wanted: DeadLetterFilter, takes: bool) -> None:
    assert wanted.takes(_letter(0, _CONTEXT, timestamp_ms=1_000)) == takes
    # One that tells nothing is not what was asked for.
    assert wanted.takes(_letter(0, {}, timestamp_ms=-1)) == (wanted == DeadLetterFilter())


def test_the_context_is_taken_off_and_the_record_has_its_own_headers_again() -> None:
    own = [("trace", b"1"), ("__connect.errors.topic", b"of an older letter"), ("__connect.errors.x", None)]
    record = Rejected(Partition("t", 2), 5, "TASK_PUT", "no id", headers=own)
    letter = dead_letter(record, DeadLetterSettings("dlq", 1, with_context=True), "sink")
    headers, context = _without_context(letter.headers)
    assert list(headers) == own
    assert (context["topic"], context["partition"], context["offset"]) == ("t", "2", "5")
    assert (context["stage"], context["exception.message"]) == ("TASK_PUT", "no id")


def test_a_letter_without_context_is_of_any_connector_and_from_nowhere() -> None:
    assert _without_context([("trace", b"1")]) == ([("trace", b"1")], {})
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
    sent = Replayed("queue-id")
    records = sent.add(letters)
    assert len(records) == 6
    other, anew = Replayed("queue-id"), Replayed("id-of-a-queue-created-anew")
    for number, record in enumerate(records):
        for reader in (other, anew):
            reader.take(LogRecord(number, record.key or b"", record.value))
    assert all(letter in other for letter in letters)
    assert not any(letter in anew for letter in letters)
    assert _letter(4, {}) not in other
    assert _letter(3, {}, 2) not in other


def test_a_later_replay_keeps_the_marks_of_an_earlier_one() -> None:
    sent = Replayed("q")
    sent.add([_letter(1, {})])
    (record,) = sent.add([_letter(2, {})])
    other = Replayed("q")
    other.take(LogRecord(0, record.key or b"", record.value))
    assert _letter(1, {}) in other
    assert _letter(2, {}) in other
