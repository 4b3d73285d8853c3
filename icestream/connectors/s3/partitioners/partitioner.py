"""What a partitioner is: asked by `objects` for every group of alike records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from icestream.api.batch import Failure
from icestream.records.records import Records
from icestream.records.rows import Indexes


@dataclass(frozen=True, eq=False)
class Encoded:
    """The encoded partition of each record of a group: the part of the path after the topic."""

    paths: Sequence[str]
    """Those that occur."""
    codes: Indexes
    """Which of them each record has; any for those that failed."""
    times: Indexes | None = None
    """Milliseconds, of partitioners by time."""
    failed: Mapping[int, Failure] = field(default_factory=dict)
    """By position in the group."""


class Partitioner(Protocol):
    """Plain data: it crosses process boundaries."""

    @property
    def by_time(self) -> bool:
        """Whether folders are by time, so that `rotate.interval.ms` has a meaning."""

    def encoded(self, records: Records, partition: int, now_ms: int) -> Encoded:
        """Records of one partition of Kafka; `now_ms` is the one moment of Wallclock."""


@dataclass(frozen=True)
class DefaultPartitioner:
    @property
    def by_time(self) -> bool:
        return False

    def encoded(self, records: Records, partition: int, now_ms: int) -> Encoded:
        return Encoded([f"partition={partition}"], np.zeros(len(records), np.int64))
