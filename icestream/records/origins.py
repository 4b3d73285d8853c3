"""Which source offsets the rows of a chunk are from. Made by the tasks, read by the sinks' writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from icestream.api.offsets import Offsets, Partition
from icestream.records.rows import Flags, Indexes


@dataclass(frozen=True, eq=False)
class RowOrigins:
    """Where each of some rows is from: `codes` tell which of the partitions, `offsets` where in it."""

    partitions: Sequence[Partition]
    codes: Indexes
    offsets: Indexes

    @classmethod
    def of_one(cls, partition: Partition, offsets: Indexes) -> RowOrigins:
        """Rows of one partition."""
        return cls([partition], np.zeros(len(offsets), np.int64), offsets)

    def take(self, rows: Indexes | slice) -> RowOrigins:
        return RowOrigins(self.partitions, self.codes[rows], self.offsets[rows])

    def at_or_after(self, start: Offsets) -> Flags:
        """Which rows are at or after these offsets: a target that starts there does not have them yet."""
        starts = np.array([start.get(partition) or 0 for partition in self.partitions], np.int64)
        return self.offsets >= starts[self.codes]

    def counted(self, rows: Indexes) -> list[int]:
        """How many of these rows each partition has."""
        found: list[int] = np.bincount(self.codes[rows], minlength=len(self.partitions)).tolist()
        return found

    def by_partition(self) -> Iterator[tuple[Partition, Indexes]]:
        order = np.argsort(self.codes, kind="stable")
        found, first = np.unique(self.codes[order], return_index=True)
        parts = np.split(self.offsets[order], first[1:])
        for code, offsets in zip(found.tolist(), parts, strict=True):
            yield self.partitions[code], offsets
