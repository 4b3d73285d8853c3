"""How often a value was within which bounds, as Prometheus counts it, with an exemplar for each bucket."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

_Key = TypeVar("_Key")
COMMIT_ID: Final = "commit_id"
_LONGEST: Final = 100
"""Characters: OpenMetrics allows 128 for all names and values of an exemplar's labels."""


@dataclass(frozen=True)
class Exemplar:
    """One value that was counted, and the batch that it came from."""

    commit_id: str
    value: float
    at: float
    """Epoch seconds."""

    @property
    def labels(self) -> dict[str, str]:
        return {COMMIT_ID: self.commit_id[:_LONGEST]}


@dataclass
class Histogram:
    """Changed by its owner only; others have a `copy`."""

    bounds: tuple[float, ...]
    """Without infinity, which is always there."""
    counts: list[int] = field(default_factory=list)
    """By bucket, each value in one."""
    sum: float = 0.0
    exemplars: dict[int, Exemplar] = field(default_factory=dict)
    """The last one of each bucket, by its place."""

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float, exemplar: Exemplar | None = None) -> None:
        place = bisect.bisect_left(self.bounds, value)
        self.counts[place] += 1
        self.sum += value
        if exemplar is not None:
            self.exemplars[place] = exemplar

    def copy(self) -> Histogram:
        return Histogram(self.bounds, list(self.counts), self.sum, dict(self.exemplars))

    @property
    def count(self) -> int:
        return sum(self.counts)


def copies(histograms: Mapping[_Key, Histogram]) -> dict[_Key, Histogram]:
    return {name: histogram.copy() for name, histogram in histograms.items()}
