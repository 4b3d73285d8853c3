"""How far a job is behind, by partition, and since about when. Used by the sink manager; pure but for what it
remembers.

Kafka does not tell the time of the first record after an offset without reading it. It is after the time of
the last record that was read of the partition, and after the last moment at which the partition had nothing
more: the later of the two is what `oldest_unread_ms` is made of. So the time is never later than the true
one, as far as the clocks of producers and worker agree, and much earlier only for a partition that nobody was
seen to be done with, as after a long time without this job. The first batch puts that right.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter

from icestream.api.history import MOST_PARTITIONS, PartitionLag
from icestream.api.offsets import NOTHING, Offsets, Partition


@dataclass(frozen=True)
class Lags:
    """Where a job is in its source, at one moment."""

    lag: int = 0
    end: int = 0
    """The sum of the ends of all partitions."""
    oldest_unread_ms: int | None = None
    partitions: tuple[PartitionLag, ...] = ()


class LagWatch:
    """Of one job."""

    def __init__(self) -> None:
        self._newest: dict[Partition, int] = {}
        """Timestamp of the newest record that was read, by partition."""
        self._done: dict[Partition, int] = {}
        """When the partition had nothing more, by our clock."""
        self._all_done = 0
        """When all of them had nothing more."""
        self._was_done = False
        """At the last look."""
        self._seen: tuple[Offsets, Offsets] = (NOTHING, NOTHING)
        self._last = Lags()

    def committed(self, newest_ms: Mapping[Partition, int]) -> None:
        """A batch has landed, whose newest records have these times."""
        self._newest.update((p, ms) for p, ms in newest_ms.items() if ms > 0)
        self._seen = (NOTHING, NOTHING)

    def at(
        self, start: Offsets, ends: Offsets, asked_at: dt.datetime, watched_seconds: float | None = None
    ) -> Lags:
        """`watched_seconds`: somebody else looks as often while the job sleeps, and wakes it."""
        asked_ms = int(asked_at.timestamp() * 1000)
        if watched_seconds is not None and self._was_done:
            # It slept until now, so nothing has come much longer ago.
            self._all_done = max(self._all_done, asked_ms - int(watched_seconds * 1000))
        if self._seen != (start, ends):
            # Who goes back, by a move of offsets or a rollback, was done with nothing.
            self._forget_if_moved_back(start)
            self._seen = (start, ends)
            self._last = self._looked(start, ends, asked_ms)
        if self._last.lag == 0:
            self._all_done = asked_ms
        self._was_done = self._last.lag == 0
        return self._last

    def _forget_if_moved_back(self, start: Offsets) -> None:
        before = self._seen[0].positions
        if any(start.positions.get(p, position) < position for p, position in before.items()):
            self._done.clear()
            self._newest.clear()
            self._all_done = 0

    def _looked(self, start: Offsets, ends: Offsets, asked_ms: int) -> Lags:
        positions, newest, done = start.positions, self._newest, self._done
        found, total, times = [], 0, []
        for partition, end in ends.positions.items():
            position = positions.get(partition)
            if position is None:
                continue
            lag = end - position
            found.append((lag, partition, position, end))
            if lag <= 0:
                done[partition] = asked_ms
            else:
                total += lag
                times.append(max(newest.get(partition, 0), done.get(partition, 0), self._all_done))
        oldest = min(times, default=0)
        if len(found) > MOST_PARTITIONS:
            found = sorted(found, reverse=True)[:MOST_PARTITIONS]
        shown = tuple(
            PartitionLag(*partition, position, end, newest.get(partition))
            for _, partition, position, end in sorted(found, key=itemgetter(1))
        )
        return Lags(total, sum(ends.positions.values()), oldest or None, shown)
