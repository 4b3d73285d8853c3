"""Partitions of Kafka topics, and the next offset to read of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_NAMED_AT_MOST = 5


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class Offsets:
    """The next position to read, per partition."""

    positions: Mapping[Partition, int]

    def __getitem__(self, partition: Partition) -> int:
        return self.positions[partition]

    def __iter__(self) -> Iterator[Partition]:
        return iter(sorted(self.positions))

    def __contains__(self, partition: object) -> bool:
        return partition in self.positions

    def __bool__(self) -> bool:
        return bool(self.positions)

    def get(self, partition: Partition) -> int | None:
        return self.positions.get(partition)

    def to_json(self) -> dict[str, dict[str, int]]:
        """`{topic: {partition: offset}}`, the form that is stored in tables."""
        by_topic: dict[str, dict[str, int]] = {}
        for partition in self:
            by_topic.setdefault(partition.topic, {})[str(partition.number)] = self[partition]
        return by_topic

    @classmethod
    def from_json(cls, by_topic: Mapping[str, Mapping[str, int]]) -> Offsets:
        return cls(
            {
                Partition(topic, int(number)): offset
                for topic, partitions in by_topic.items()
                for number, offset in partitions.items()
            }
        )


NOTHING = Offsets({})


def named(partitions: Iterable[Partition]) -> str:
    """The first few for a message, and how many more there are."""
    listed = list(partitions)
    first = ", ".join(map(str, listed[:_NAMED_AT_MOST]))
    more = len(listed) - _NAMED_AT_MOST
    return f"{first} and {more} more" if more > 0 else first
