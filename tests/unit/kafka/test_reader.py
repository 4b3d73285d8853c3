"""The reader's patience: by a consumer that does as it is told, and a clock that moves with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from icestream.api.batch import Slice
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition
from icestream.kafka import fetch_positions, reader

_SECONDS_A_POLL = 1.0


@dataclass
class Said:
    """A message, or the end of a partition."""

    number: int
    at: int
    ends: bool = False

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self.ends else None

    def value(self) -> bytes:
        return b"0123456789"


@dataclass
class Script:
    """What consumers are given, one item a poll; None: nothing came, for a second."""

    polls: Iterator[Said | None]
    positions: Callable[[float], int] = lambda now: 0
    """Where the fetcher of partition 0 is."""
    now: float = 0.0
    assigned: list[list[TopicPartition]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


@dataclass
class Played:
    script: Script
    settings: dict[str, Any]
    mine: list[TopicPartition] = field(default_factory=list)

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.mine = partitions
        self.script.assigned.append(partitions)

    def assignment(self) -> list[TopicPartition]:
        return self.mine

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.script.dropped += [one.partition for one in partitions]
        self.mine = [one for one in self.mine if one not in partitions]

    def unassign(self) -> None:
        self.mine = []

    def poll(self, timeout: float) -> Said | None:
        said = next(self.script.polls, None)
        if said is None:
            self.script.now += _SECONDS_A_POLL
            if "stats_cb" in self.settings:
                facts = {"next_offset": self.script.positions(self.script.now)}
                self.settings["stats_cb"](json.dumps({"topics": {"t": {"partitions": {"0": facts}}}}))
        return said

    def consume(self, most: int, timeout: float) -> Sequence[Said]:
        return []

    def close(self) -> None:
        pass


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[int, list[int]]]]:
    def run(script: Script, *slices: Slice) -> list[tuple[int, list[int]]]:
        for module in (reader, fetch_positions):
            monkeypatch.setattr(module, "Consumer", lambda settings: Played(script, settings))
        made = reader.SliceReader({}, clock=lambda: script.now)
        return [
            (part.partition.number, chunk.offsets()[part.low : part.high].tolist())
            for chunk in made.read_all(slices, 1_000)
            for part in chunk.parts
        ]

    return run


def slice_of(number: int, start: int, until: int) -> Slice:
    return Slice(Partition("t", number), start, until)


Read = Callable[..., list[tuple[int, list[int]]]]


def test_all_slices_are_assigned_at_once_and_dropped_as_they_end(read: Read) -> None:
    script = Script(iter([Said(1, 0), Said(0, 5), Said(1, 1), Said(2, 9, ends=True), Said(0, 6), Said(0, 7)]))
    found = read(script, slice_of(0, 5, 7), slice_of(1, 0, 1), slice_of(2, 8, 9))
    assert found == [(1, [0]), (0, [5, 6])]
    assert [[one.partition for one in some] for some in script.assigned] == [[0, 1, 2]]
    assert script.dropped == [1, 2]


def test_a_minute_of_aborted_records_is_no_silence(read: Read) -> None:
    script = Script(iter([Said(0, 0)]), positions=lambda now: int(now * 1_000))
    assert read(script, slice_of(0, 0, 60_000)) == [(0, [0])]
    assert script.now > 60
    first, again = script.assigned
    assert (first[0].offset, again[0].offset) == (0, 1)


def test_a_partition_that_sends_nothing_is_named(read: Read) -> None:
    """As one without a leader; the others are read meanwhile."""
    script = Script(iter([Said(1, 0), Said(2, 0)]))
    with pytest.raises(SourceUnavailable, match=r"^t-0 sent nothing for 30 s at offset 4; .* leader"):
        read(script, slice_of(0, 4, 7), slice_of(1, 0, 1), slice_of(2, 0, 1))
    assert script.dropped == [1, 2]
    assert 30 < script.now < 40


def test_traffic_behind_a_slice_that_ended_in_silence_does_not_hide_one_that_hangs(read: Read) -> None:
    """Partition 0 ends with records that are never delivered, and then new ones come without end."""

    def polls() -> Iterator[Said | None]:
        yield from [None] * 12
        while 0 not in script.dropped:
            script.now += 0.1
            assert script.now < 1_000, "it goes on for ever"
            yield Said(0, 10)

    script = Script(polls(), positions=lambda now: 10)
    with pytest.raises(SourceUnavailable, match="t-1 sent nothing for 30 s"):
        read(script, slice_of(0, 5, 10), slice_of(1, 0, 3))


def test_records_before_a_slice_are_not_of_it(read: Read) -> None:
    """What an earlier reading of this consumer has left."""
    script = Script(iter([Said(0, 3), Said(0, 4), Said(0, 5), Said(0, 6)]))
    assert read(script, slice_of(0, 5, 7)) == [(0, [5, 6])]
