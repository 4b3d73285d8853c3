"""Offsets in requests: what is understood, and Kafka Connect's words for what is not."""

from typing import Any

import pytest

from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.offsets.entries import entries_from, moves_from


def entry(partition: Any, offset: Any) -> OffsetEntry:
    return OffsetEntry(partition, offset)


def test_numbers_and_their_texts_are_the_same() -> None:
    asked = [
        entry({"kafka_topic": "t", "kafka_partition": "1"}, {"kafka_offset": "20"}),
        entry({"kafka_topic": 7, "kafka_partition": 0}, {"kafka_offset": 2**63 - 1}),
        entry({"kafka_topic": "t", "kafka_partition": 2, "other": "x"}, None),
    ]
    assert moves_from(asked) == {Partition("t", 1): 20, Partition("7", 0): 2**63 - 1, Partition("t", 2): None}


def test_offsets_come_out_as_they_go_in() -> None:
    offsets = Offsets({Partition("t", 1): 5, Partition("t", 0): 7})
    assert entries_from(offsets) == [
        entry({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 7}),
        entry({"kafka_topic": "t", "kafka_partition": 1}, {"kafka_offset": 5}),
    ]
    assert moves_from(entries_from(offsets)) == offsets.positions


GOOD = {"kafka_topic": "t", "kafka_partition": 0}
KEYS = "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
NO_PARTITION = (
    "Failed to parse the following Kafka partition value in the provided offsets: '{}'. "
    "Partition values for sink connectors need to be integers."
)
NO_OFFSET = (
    "Failed to parse the following Kafka offset value in the provided offsets: '{}'. "
    "Offset values for sink connectors need to be integers."
)


@pytest.mark.parametrize(
    ("partition", "offset", "why"),
    [
        (None, None, "The partition for a sink connector offset cannot be null or missing"),
        ({"kafka_topic": "t"}, None, KEYS),
        ({"kafka_partition": 0}, None, KEYS),
        ({**GOOD, "kafka_topic": None}, None, "Kafka topic names must be valid strings and may not be null"),
        (
            {**GOOD, "kafka_partition": None},
            None,
            "Kafka partitions must be valid numbers and may not be null",
        ),
        ({**GOOD, "kafka_partition": "one"}, None, NO_PARTITION.format("one")),
        ({**GOOD, "kafka_partition": 1.5}, None, NO_PARTITION.format("1.5")),
        ({**GOOD, "kafka_partition": True}, None, NO_PARTITION.format("true")),
        ({**GOOD, "kafka_partition": 2**31}, None, NO_PARTITION.format(2**31)),
        ({**GOOD, "kafka_partition": " 1"}, None, NO_PARTITION.format(" 1")),
        (GOOD, {}, "The offset for a sink connector should either be null or contain the key 'kafka_offset'"),
        (GOOD, {"kafka_offset": None}, NO_OFFSET.format("null")),
        (GOOD, {"kafka_offset": "1_0"}, NO_OFFSET.format("1_0")),
        (GOOD, {"kafka_offset": 2**63}, NO_OFFSET.format(2**63)),
    ],
)
def test_what_cannot_be_understood_is_named_in_kafkas_words(partition: Any, offset: Any, why: str) -> None:
    with pytest.raises(BadOffsets) as refused:
        moves_from([entry(partition, offset)])
    assert str(refused.value) == why
