"""Offsets of sinks in the shapes of Kafka Connect's REST API: read strictly, with its words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Offsets, Partition

TOPIC: Final = "kafka_topic"
PARTITION: Final = "kafka_partition"
OFFSET: Final = "kafka_offset"

Moves = Mapping[Partition, int | None]
"""Where partitions go; None: to their beginning."""


def entries_from(offsets: Offsets) -> list[OffsetEntry]:
    return [
        OffsetEntry({PARTITION: partition.number, TOPIC: partition.topic}, {OFFSET: offsets[partition]})
        for partition in offsets
    ]


def moves_from(entries: Sequence[OffsetEntry]) -> dict[Partition, int | None]:
    """What a request asks for; BadOffsets names what cannot be understood."""
    return {_partition(entry.partition): _offset(entry.offset) for entry in entries}


def _partition(given: Mapping[str, Any] | None) -> Partition:
    if given is None:
        raise BadOffsets("The partition for a sink connector offset cannot be null or missing")
    if TOPIC not in given or PARTITION not in given:
        raise BadOffsets(
            f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'"
        )
    if given[TOPIC] is None:
        raise BadOffsets("Kafka topic names must be valid strings and may not be null")
    if given[PARTITION] is None:
        raise BadOffsets("Kafka partitions must be valid numbers and may not be null")
    number = _integer(given[PARTITION], bits=32)
    if number is None:
        raise BadOffsets(
            "Failed to parse the following Kafka partition value in the provided offsets: "
            f"'{_shown(given[PARTITION])}'. Partition values for sink connectors need to be integers."
        )
    return Partition(_shown(given[TOPIC]), number)


def _offset(given: Mapping[str, Any] | None) -> int | None:
    if given is None:
        return None
    if OFFSET not in given:
        raise BadOffsets(
            f"The offset for a sink connector should either be null or contain the key '{OFFSET}'"
        )
    number = _integer(given[OFFSET], bits=64)
    if number is None:
        raise BadOffsets(
            "Failed to parse the following Kafka offset value in the provided offsets: "
            f"'{_shown(given[OFFSET])}'. Offset values for sink connectors need to be integers."
        )
    if number < 0:
        raise BadOffsets(f"the offset {number} is below 0; write null for the beginning of the partition")
    return number


def _integer(value: Any, *, bits: int) -> int | None:
    """As Java reads a number from JSON's 10 and "10" alike: no fraction, no blanks, within its range."""
    text = _shown(value)
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
