"""Some records of one topic, as they came from Kafka; made by the reader, taken by whoever turns them into
rows."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from confluent_kafka import Message

from icestream.api.batch import Failure, Rejected
from icestream.api.offsets import Partition

_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_REASON_CHARS = 4_000


class Part(NamedTuple):
    """Rows `low` (in) to `high` (out) of a chunk are of this partition."""

    partition: Partition
    low: int
    high: int


class Run(NamedTuple):
    """Messages of one partition, in order, and their values."""

    partition: Partition
    messages: list[Message]
    values: list[bytes | None]


@dataclass(frozen=True)
class Chunk:
    """Records of one topic, those of each partition together and in order.

    Keys and headers are fetched only where they are asked for.
    """

    parts: Sequence[Part]
    """None is empty; at least one."""
    messages: Sequence[Message]
    taken: tuple[list[bytes | None], int] | None = None
    """The values and their size, where they were taken out of the messages already."""

    @classmethod
    def of(cls, partition: Partition, messages: Sequence[Message]) -> Chunk:
        return cls((Part(partition, 0, len(messages)),), messages)

    @classmethod
    def gathered(cls, runs: Sequence[Run], size: int) -> Chunk:
        """Of several partitions of one topic; `size`: bytes of all values."""
        if len(runs) == 1:
            partition, messages, values = runs[0]
            return cls((Part(partition, 0, len(messages)),), messages, (values, size))
        parts: list[Part] = []
        messages, values = [], []
        for run in runs:
            parts.append(Part(run.partition, len(messages), len(messages) + len(run.messages)))
            messages.extend(run.messages)
            values.extend(run.values)
        return cls(parts, messages, (values, size))

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def topic(self) -> str:
        return self.parts[0].partition.topic

    @functools.cached_property
    def sources(self) -> _Numbers:
        """For each row the number of its part."""
        return np.repeat(np.arange(len(self.parts)), [part.high - part.low for part in self.parts])

    def partitions(self) -> _Numbers:
        """The partition number of each row."""
        return np.array([part.partition.number for part in self.parts], np.int64)[self.sources]

    def values(self) -> list[bytes | None]:
        return [message.value() for message in self.messages] if self.taken is None else self.taken[0]

    def keys(self) -> list[bytes | None]:
        return [message.key() for message in self.messages]

    def headers(self) -> list[tuple[tuple[str, bytes | None], ...]]:
        return [headers_of(message) for message in self.messages]

    def timestamps(self) -> _Numbers:
        moments = (message.timestamp()[1] for message in self.messages)
        return np.fromiter(moments, np.int64, len(self.messages))

    def offsets(self) -> _Numbers:
        return np.concatenate([self._offsets(part) for part in self.parts])

    def _offsets(self, part: Part) -> _Numbers:
        first, last = offset_of(self.messages[part.low]), offset_of(self.messages[part.high - 1])
        if last - first == part.high - part.low - 1:
            return np.arange(first, last + 1)
        mine = self.messages[part.low : part.high]
        return np.fromiter(map(offset_of, mine), np.int64, len(mine))

    def total_bytes(self) -> int:
        """Of all values."""
        return sum(map(len, self.messages)) if self.taken is None else self.taken[1]

    def newest_ms(self) -> dict[Partition, int]:
        """The timestamp of the last record of each partition."""
        return {part.partition: int(self.messages[part.high - 1].timestamp()[1]) for part in self.parts}

    def partition_of(self, row: int) -> Partition:
        return self.parts[bisect_right(self.parts, row, key=lambda part: part.low) - 1].partition

    def rejected(self, at: int, why: Failure, task: int = 0) -> Rejected:
        message = self.messages[at]
        return Rejected(
            partition=self.partition_of(at),
            offset=offset_of(message),
            stage=why.stage,
            reason=_shortened(why.reason),
            key=message.key(),
            value=message.value(),
            headers=headers_of(message),
            timestamp_ms=message.timestamp()[1],
            class_name=why.class_name,
            exception=why.exception,
            task=task,
            breaks_schema=why.breaks_schema,
        )


def _shortened(reason: str) -> str:
    """Java's messages may quote the value, and a dead letter says its reason twice: it must stay sendable."""
    return reason if len(reason) <= _REASON_CHARS else f"{reason[:_REASON_CHARS]}…"


def offset_of(message: Message) -> int:
    return cast(int, message.offset())


def headers_of(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(cast("list[tuple[str, bytes | None]]", message.headers() or []))
