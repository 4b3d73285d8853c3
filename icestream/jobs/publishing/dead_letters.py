"""Dead letters as they are read again, by `verify`, `dlq show` and `dlq replay`; which of them are meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from icestream.api.batch import Slice
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.letters.kinds import kind_of
from icestream.kafka.chunk import Chunk, headers_of
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics

CONTEXT: Final = "__connect.errors."
"""What the names of the ten headers about the error begin with."""
LEFT_OUT: Final = f"{CONTEXT}icestream.left.out."
"""What the names of our own headers begin with: of a dead letter that was too large for its queue."""
_FIRST_HEADER: Final = f"{CONTEXT}topic"
_CHUNK: Final = 10_000
_DIGITS: Final = 19
"""Of an offset, at most."""


@dataclass(frozen=True)
class DeadLetter:
    """A record that was rejected, and what its queue knows about it."""

    place: Partition
    offset: int
    """Where it is in the queue."""
    context: Mapping[str, str]
    """Kafka Connect's headers about the error, without their prefix; empty if there are none."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    """Those of the record itself."""
    timestamp_ms: int

    @property
    def origin(self) -> Partition | None:
        number = self._number("partition")
        return None if number is None else Partition(self.context["topic"], number)

    @property
    def origin_offset(self) -> int | None:
        return self._number("offset")

    @property
    def time(self) -> datetime | None:
        """The record's timestamp. None also where a producer took other units for milliseconds: no calendar
        goes that far."""
        if self.timestamp_ms < 0:
            return None
        try:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.timestamp_ms)
        except OverflowError:
            return None

    def _number(self, name: str) -> int | None:
        told = self.context.get(name, "")
        return int(told) if told.isdecimal() and len(told) <= _DIGITS else None

    @property
    def is_whole(self) -> bool:
        """False: it was too large for its queue, so the record itself is only where it came from."""
        return not any(f"{CONTEXT}{name}".startswith(LEFT_OUT) for name in self.context)

    def may_be_of(self, connector: str) -> bool:
        """Queues may be shared; a dead letter that names no connector may be of any."""
        return self.context.get("connector.name", connector) == connector


@dataclass(frozen=True)
class DeadLetterFilter:
    """Which dead letters are meant: those for which all that is given holds."""

    topic: str | None = None
    partition: int | None = None
    offsets: tuple[int, ...] = ()
    """Of the records in their topic; empty: all."""
    stage: str | None = None
    reason: str | None = None
    """A part of it, in any case."""
    since: datetime | None = None
    until: datetime | None = None
    group: str | None = None
    """The id of a kind of dead letters, as `letters.kinds` tells them apart."""
    reads_values: bool = True
    """False: `reason` is looked for only where it tells no values of the record, for those who may not see
    them: whoever may ask whether a text is there can find it out letter by letter."""

    def takes(self, letter: DeadLetter) -> bool:
        """What a dead letter does not tell is not what was asked for."""
        origin, context = letter.origin, letter.context
        return (
            (self.topic is None or (origin is not None and origin.topic == self.topic))
            and (self.partition is None or (origin is not None and origin.number == self.partition))
            and (not self.offsets or letter.origin_offset in self.offsets)
            and (self.stage is None or context.get("stage") == self.stage)
            and (self.reason is None or self.reason.lower() in self._reason_of(context).lower())
            and (self.since is None or (letter.time is not None and letter.time >= self.since))
            and (self.until is None or (letter.time is not None and letter.time < self.until))
            and (self.group is None or kind_of(context).id == self.group)
        )

    def _reason_of(self, context: Mapping[str, str]) -> str:
        return context.get("exception.message", "") if self.reads_values else kind_of(context).reason


class DeadLetterReader:
    """Reads a dead letter queue from its beginning to where it ended when this was made."""

    def __init__(self, topic: str, connector: str, topics: Topics, reader: SliceReader) -> None:
        self._connector = connector
        self._reader = reader
        facts = topics.describe([topic]).get(topic)
        self.exists = facts is not None
        self.id = facts.id if facts else ""
        partitions = [Partition(topic, number) for number in range(facts.partitions if facts else 0)]
        self._beginnings: Offsets = topics.beginnings(partitions)
        self._ends: Offsets = topics.ends(partitions)

    @property
    def has_lost_some(self) -> bool:
        """Whether retention, or somebody, has removed dead letters."""
        return any(self._beginnings[partition] > 0 for partition in self._beginnings)

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Those that may be of the connector, partition by partition, the oldest first."""
        for partition in self._ends:
            yield from self._between(partition, self._beginnings[partition], self._ends[partition])

    def newest(self, before: Offsets, most: int) -> tuple[list[DeadLetter], Offsets]:
        """Those of about the `most` last offsets of all partitions together, and where to go on from there:
        partitions that have more. `before` is such a place; of partitions that it lacks, the end."""
        found: list[DeadLetter] = []
        starts: dict[Partition, int] = {}
        share = max(1, most // max(1, len(self._ends.positions)))
        for partition in self._ends:
            end = self._ends[partition]
            until = min(before[partition], end) if partition in before else end
            start = max(self._beginnings[partition], until - share)
            starts[partition] = min(start, until)
            found += self._between(partition, start, until)
        return found, Offsets(starts)

    def has_before(self, place: Offsets) -> bool:
        """Whether the queue has dead letters before a place that `newest` told."""
        return any(place[partition] > self._beginnings[partition] for partition in place)

    def place(self, numbers: Mapping[int, int]) -> Offsets:
        """Offsets of the queue by the numbers of its partitions; others are left out."""
        return Offsets({p: numbers[p.number] for p in self._ends if p.number in numbers})

    def at(self, number: int, offset: int) -> DeadLetter | None:
        """The one at a place of the queue; None if there is none, or if it is of another connector."""
        for partition in self._ends:
            in_topic = self._beginnings[partition] <= offset < self._ends[partition]
            if partition.number == number and in_topic:
                return next(iter(self._between(partition, offset, offset + 1)), None)
        return None

    def _between(self, partition: Partition, start: int, until: int) -> Iterator[DeadLetter]:
        piece = Slice(partition, start, max(start, until))
        if not piece.span:
            return
        for chunk in self._reader.read(piece, _CHUNK):
            yield from (letter for letter in _dead_letters(chunk) if letter.may_be_of(self._connector))


def _dead_letters(chunk: Chunk) -> Iterator[DeadLetter]:
    for row, (message, offset) in enumerate(zip(chunk.messages, chunk.offsets().tolist(), strict=True)):
        own, context = _without_context(headers_of(message))
        yield DeadLetter(
            place=chunk.partition_of(row),
            offset=offset,
            context=context,
            key=message.key(),
            value=message.value(),
            headers=own,
            timestamp_ms=message.timestamp()[1],
        )


def _without_context(
    headers: Sequence[tuple[str, bytes | None]],
) -> tuple[Sequence[tuple[str, bytes | None]], dict[str, str]]:
    """The record's own headers, and the context, which was put behind them.

    A record that was a dead letter before may have context headers of its own; they stay.
    """
    names = [name for name, _ in headers]
    if _FIRST_HEADER not in names:
        return headers, {}
    begins = len(names) - 1 - names[::-1].index(_FIRST_HEADER)
    told = [(name, value) for name, value in headers[begins:] if name.startswith(CONTEXT)]
    behind = [(name, value) for name, value in headers[begins:] if not name.startswith(CONTEXT)]
    context = {name.removeprefix(CONTEXT): (value or b"").decode(errors="replace") for name, value in told}
    return [*headers[:begins], *behind], context
