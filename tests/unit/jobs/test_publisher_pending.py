"""Dead letters in several transactions: where the group is after each, and what becomes of large ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from icestream.api.batch import Rejected
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import SinkOptions
from icestream.jobs.publishing.dead_letters import LEFT_OUT
from icestream.jobs.publishing.publisher import PendingDeadLetters
from icestream.jobs.sinks.job import SinkJob, sink_job
from icestream.kafka.transactions import Outgoing, Purged, TooLarge

ONE, TWO, THREE = (Partition("t", number) for number in range(3))
END = Offsets({ONE: 10, TWO: 20, THREE: 30})
CONFIG = {
    "connector.class": "IcebergSinkConnector",
    "topics": "t",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dlq",
}
JOB: SinkJob = sink_job("sink", CONFIG, SinkOptions())
EVENT = Outgoing("control", None, b"complete")


@dataclass
class Kafka:
    """Takes so many messages a transaction, none larger than `largest`, and refuses those sent with it."""

    most: int = 2
    largest: int = 10_000_000
    written: list[tuple[list[Outgoing], Offsets]] = field(default_factory=list)
    refusals: int = 0
    purges: int = 0
    """How often its client throws away what it was given."""

    def write_some(
        self,
        messages: Iterator[Outgoing],
        last: Sequence[Outgoing],
        offsets_after: Callable[[int], Offsets],
        note: str,
        *,
        singly: bool = False,
    ) -> int:
        taken: list[Outgoing] = []
        for message in messages:
            if len(taken) == self.most:
                break
            taken.append(message)
        else:
            taken += last
        count = len([message for message in taken if message not in last])
        if large := [at for at, message in enumerate(taken) if message.size > self.largest]:
            self.refusals += 1
            raise TooLarge("too large", frozenset(large if singly else range(len(taken))))
        if self.purges:
            self.purges -= 1
            raise Purged("purged in queue")
        self.written.append((taken, offsets_after(count)))
        return count

    def values(self) -> list[list[bytes | None]]:
        return [[message.value for message in messages] for messages, _ in self.written]


def bad(partition: Partition, offset: int, size: int = 1, **more: Any) -> Rejected:
    return Rejected(partition, offset, "VALUE_CONVERTER", "it is bad", value=b"%d" % offset * size, **more)


def publish(kafka: Any, *rejected: Rejected, job: SinkJob = JOB) -> None:
    queue = PendingDeadLetters(job, rejected, END)
    while True:
        queue.write_some(kafka, [EVENT], "note")
        if not queue.left:
            return


def test_the_group_follows_the_letters_and_the_event_comes_with_the_last() -> None:
    kafka = Kafka()
    publish(kafka, bad(TWO, 7), bad(ONE, 9), bad(ONE, 3), bad(THREE, 29), bad(TWO, 4))
    assert kafka.values() == [[b"3", b"9"], [b"4", b"7"], [b"29", b"complete"]]
    assert [offsets for _, offsets in kafka.written] == [
        Offsets({ONE: 10}),
        Offsets({ONE: 10, TWO: 8}),
        END,
    ]


def test_letters_that_kafkas_client_throws_away_are_sent_again() -> None:
    kafka = Kafka(purges=2)
    publish(kafka, bad(ONE, 3))
    assert kafka.values() == [[b"3", b"complete"]]
    with pytest.raises(SourceUnavailable):
        publish(Kafka(purges=1000), bad(ONE, 3))


def test_a_batch_without_letters_is_one_transaction() -> None:
    kafka = Kafka()
    publish(kafka)
    assert kafka.written == [([EVENT], END)]


def test_without_a_queue_rejected_records_are_only_counted() -> None:
    kafka = Kafka()
    job = sink_job("sink", {**CONFIG, "errors.deadletterqueue.topic.name": ""}, SinkOptions())
    publish(kafka, bad(ONE, 1), job=job)
    assert kafka.written == [([EVENT], END)]


def test_a_letter_that_is_too_large_goes_without_its_value_and_says_so() -> None:
    kafka = Kafka(most=10, largest=2_000)
    headers = [("trace", b"1")]
    publish(kafka, bad(ONE, 1), bad(ONE, 5, size=3_000, key=b"k", headers=headers), bad(TWO, 2))
    assert kafka.values() == [[b"1", None, b"2", b"complete"]]
    letter = kafka.written[0][0][1]
    assert letter.key == b"k"
    told = dict(letter.headers)
    assert (told["trace"], told[f"{LEFT_OUT}value.bytes"]) == (b"1", b"3000")
    assert told["__connect.errors.topic"] == b"t"
    assert told["__connect.errors.offset"] == b"5"
    assert told["__connect.errors.exception.message"] == b"it is bad"


def test_once_refused_letters_of_that_size_are_not_tried_again() -> None:
    kafka = Kafka(most=3, largest=2_000)
    publish(kafka, *(bad(ONE, offset, size=3_000) for offset in range(1, 9)))
    assert [value for values in kafka.values() for value in values] == [None] * 8 + [b"complete"]
    assert kafka.refusals == 2


def test_a_large_key_and_large_headers_are_left_out_too() -> None:
    kafka = Kafka(largest=2_000)
    publish(kafka, bad(ONE, 5, key=b"k" * 9_000, headers=[("h", b"x" * 9_000)]))
    letter = kafka.written[0][0][0]
    told = dict(letter.headers)
    assert letter.key is None and "h" not in told
    assert (told[f"{LEFT_OUT}key.bytes"], told[f"{LEFT_OUT}headers.bytes"]) == (b"9000", b"9001")


def test_a_queue_that_takes_not_even_that_is_an_error() -> None:
    kafka = Kafka(largest=100)
    with pytest.raises(TooLarge):
        publish(kafka, bad(ONE, 5, size=3_000))
    assert kafka.written == []
