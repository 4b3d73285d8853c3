"""A dead letter as other tools find it: the record as it was, and Kafka Connect's headers about the error."""

from __future__ import annotations

from icestream.api.batch import Rejected
from icestream.api.offsets import Partition
from icestream.jobs.publishing.publisher import dead_letter
from icestream.jobs.sinks.job import DeadLetterSettings

_TARGET = DeadLetterSettings("dlq", 1, with_context=True)


def _rejected(reason: str) -> Rejected:
    return Rejected(
        partition=Partition("orders", 3),
        offset=17,
        stage="TRANSFORMATION",
        reason=reason,
        key=b"k\xff",
        value=b"\x00v",
        headers=[("trace", None), ("__connect.errors.stage", b"of an earlier queue")],
        timestamp_ms=1_700_000_000_000,
        class_name="org.apache.kafka.connect.transforms.Cast$Value",
        exception="java.lang.NumberFormatException",
        task=2,
    )


def test_the_ten_headers_follow_those_of_the_record_in_the_order_of_kafka_connect() -> None:
    letter = dead_letter(_rejected("For input string: x"), _TARGET, "sink")
    assert (letter.topic, letter.key, letter.value) == ("dlq", b"k\xff", b"\x00v")
    assert letter.timestamp_ms == 1_700_000_000_000
    assert list(letter.headers) == [
        ("trace", None),
        ("__connect.errors.stage", b"of an earlier queue"),
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"17"),
        ("__connect.errors.connector.name", b"sink"),
        ("__connect.errors.task.id", b"2"),
        ("__connect.errors.stage", b"TRANSFORMATION"),
        ("__connect.errors.class.name", b"org.apache.kafka.connect.transforms.Cast$Value"),
        ("__connect.errors.exception.class.name", b"java.lang.NumberFormatException"),
        ("__connect.errors.exception.message", b"For input string: x"),
        ("__connect.errors.exception.stacktrace", b"java.lang.NumberFormatException: For input string: x\n"),
    ]


def test_without_context_only_the_headers_of_the_record_are_there() -> None:
    letter = dead_letter(_rejected("it is bad"), DeadLetterSettings("dlq", 1, with_context=False), "sink")
    assert [name for name, _ in letter.headers] == ["trace", "__connect.errors.stage"]


def test_a_reason_that_no_utf_8_can_hold_is_told_with_question_checkpoints() -> None:
    headers = dict(dead_letter(_rejected("bad \ud800"), _TARGET, "sink").headers)
    assert headers["__connect.errors.exception.message"] == b"bad ?"
