"""What a change of offsets would do, in numbers, before anybody does it. Pure; called by the service.

Offsets are counted: where a topic has markers of transactions, or is compacted, there are fewer records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icestream.api.offset_admin import PartitionPosition
from icestream.api.offsets import Partition
from icestream.jobs.offsets.entries import Moves


@dataclass(frozen=True)
class MovePreview:
    """What becomes of one partition."""

    position: PartitionPosition
    resumes: int
    """Where the job goes on after the change."""
    again: int
    """Read before, and once more: as many rows are in the table twice, unless it is written by upserts."""
    skipped: int
    """Never read, and never will be."""
    gone: int
    """No longer in the topic: read before, and not repeated by a reset, or never read at all."""

    @property
    def left(self) -> int:
        """What the job has to read then."""
        return max(0, self.position.end - max(self.resumes, self.position.beginning))


def preview(positions: Sequence[PartitionPosition], moves: Moves | None) -> list[MovePreview]:
    """`moves` as `alter` takes them, None of a reset. Partitions that stay where they are, are left out."""
    found = []
    for at in positions:
        partition = Partition(at.topic, at.partition)
        if moves is None or moves.get(partition, at.resumes) is None:
            found.append(_moved(at, at.beginning, is_reset=True))
        elif partition in moves:
            target = moves[partition]
            assert target is not None
            found.append(_moved(at, target, is_reset=False))
    return found


def _moved(at: PartitionPosition, target: int, *, is_reset: bool) -> MovePreview:
    read = _joined(at.read)
    again = _overlap(read, max(target, at.beginning), at.end)
    passed_over = _length(max(at.resumes, at.beginning), target)
    skipped = passed_over - _overlap(read, max(at.resumes, at.beginning), target)
    lost = _length(at.resumes, at.beginning) - _overlap(read, at.resumes, at.beginning)
    gone = lost + (_overlap(read, 0, at.beginning) if is_reset else 0)
    return MovePreview(at, max(target, at.beginning), again, skipped, gone)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets, none twice."""
    joined: list[tuple[int, int]] = []
    for first, until in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until))
        elif until > first:
            joined.append((first, until))
    return joined


def _overlap(spans: Iterable[tuple[int, int]], low: int, high: int) -> int:
    return sum(_length(max(first, low), min(until, high)) for first, until in spans)


def _length(low: int, high: int) -> int:
    return max(0, high - low)
