"""When a batch is worth it, and where it ends, for a sink whose files have a size: `api.sink.Filling`.

What fills no file waits, until its time is over. Records themselves may end a file earlier or later than
their number tells (some are rejected, some change the schema), so the writer of a batch may leave the end of
a partition; what it left is remembered here, so that it is not read again before it can fill a file. Called
by the sink manager; pure but for that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from icestream.api.batch import Batch, Left
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Filling
from icestream.jobs.sinks.batches import planning

_SHORTEST_PAUSE = 0.01
_TOGETHER = dt.timedelta(seconds=1)
"""Partitions whose time is over within so long of each other are written in one batch."""


@dataclass(frozen=True)
class NextBatch:
    """The ends of a batch, and whether its writer may leave what fills no file."""

    ends: Offsets
    may_leave: bool


@dataclass(frozen=True)
class _Wait:
    """Of one partition: from which offset on, since when."""

    start: int
    since: dt.datetime


@dataclass(frozen=True)
class _Tail:
    """What a writer left: from this offset on, and where the file may be full."""

    start: int
    full_at: int
    seen: int
    """How far it was read."""
    is_stuck: bool = False
    """A look at as much as a batch may have found no end of a file: it is written as it is."""


class FillSchedule:
    def __init__(self, rule: Filling) -> None:
        self._rule = rule
        self._waits: dict[Partition, _Wait] = {}
        self._tails: dict[Partition, _Tail] = {}
        self._looked_at: dt.datetime | None = None
        self._cut: frozenset[Partition] = frozenset()
        """Partitions of which the last look had not all."""
        self._ran_since: dt.datetime | None = None
        """When the ends of the batch were asked for that ran since the last turn."""

    def next(
        self, start: Offsets, ends: Offsets, allowed: int, now: dt.datetime, *, is_limited: bool
    ) -> NextBatch | None:
        """The next batch, if there is one by now. `is_limited`: it has to be smaller than a file."""
        self._note_waits(start, ends, now)
        self._cut = frozenset()
        if self._overdue(now):
            together = self._overdue(now + _TOGETHER)
            return NextBatch(_only(together, start, ends, allowed), may_leave=False)
        full = {p: end for p in self._waits if (end := self._full_end(p, start[p], ends[p])) > start[p]}
        if full:
            if is_limited:
                return NextBatch(_only(full, start, ends, allowed), may_leave=False)
            return NextBatch(self._in_blocks(start, ends, full, allowed), may_leave=True)
        return self._look(start, ends, allowed, now)

    def began(self, fill: NextBatch, now: dt.datetime) -> None:
        """The batch runs; its ends were asked for at this moment."""
        self._ran_since = now
        if fill.may_leave:
            self._looked_at = now

    def left(self, batch: Batch, left: Mapping[Partition, Left]) -> None:
        """What the writer of a batch has left of it."""
        for partition, tail in left.items():
            end = batch.end[partition]
            is_stuck = partition in self._cut and tail.until == batch.start[partition]
            full_at = end + max(1, self._rule.rows - tail.rows)
            self._tails[partition] = _Tail(tail.until, full_at, end, is_stuck)

    def seconds(self, now: dt.datetime) -> float | None:
        """How long until something is to be done although no record comes; None: nothing."""
        moments = [at for p in self._waits if (at := self._flush_at(p)) is not None]
        if self._waits and self._rule.look_seconds is not None and self._looked_at is not None:
            moments.append(self._looked_at + dt.timedelta(seconds=self._rule.look_seconds))
        if not moments:
            return None
        return max(_SHORTEST_PAUSE, (min(moments) - now).total_seconds())

    def told(self, start: Offsets, ends: Offsets) -> str:
        """Why nothing happens, for the status; empty if nothing waits."""
        if not self._waits:
            return ""
        most = max(self._waits, key=lambda p: ends[p] - start[p])
        more = f", and {len(self._waits) - 1} more partitions" if len(self._waits) > 1 else ""
        return (
            f"waiting for {self._rule.key}: topic '{most.topic}', partition {most.number} has "
            f"{ends[most] - start[most]} of {self._rule.rows} records{more}"
        )

    def _note_waits(self, start: Offsets, ends: Offsets, now: dt.datetime) -> None:
        lagging = [p for p in ends if p in start and ends[p] > start[p]]
        known = self._waits
        # What came while a batch ran may have come at its beginning: it shall not wait the longer for that.
        since, self._ran_since = self._ran_since or now, None
        self._waits = {
            p: known[p] if p in known and known[p].start == start[p] else _Wait(start[p], since)
            for p in lagging
        }
        self._tails = {p: tail for p, tail in self._tails.items() if start.get(p) == tail.start}

    def _overdue(self, now: dt.datetime) -> list[Partition]:
        return [
            p
            for p in self._waits
            if self._is_stuck(p) or ((at := self._flush_at(p)) is not None and at <= now)
        ]

    def _is_stuck(self, partition: Partition) -> bool:
        return partition in self._tails and self._tails[partition].is_stuck

    def _flush_at(self, partition: Partition) -> dt.datetime | None:
        return self._rule.flush_at(self._waits[partition].since) if self._rule.flush_at else None

    def _full_end(self, partition: Partition, start: int, end: int) -> int:
        """The last offset at which a file of the partition may be full; its start if there is none."""
        tail = self._tails.get(partition)
        first = tail.full_at if tail is not None else start + self._rule.rows
        return first + (end - first) // self._rule.rows * self._rule.rows if end >= first else start

    def _in_blocks(
        self, start: Offsets, ends: Offsets, full: Mapping[Partition, int], allowed: int
    ) -> Offsets:
        """At most so many rows, in whole files; one file at least."""
        cut = planning.cut(start, _filled(start, ends, full), allowed)
        found = {p: self._full_end(p, start[p], cut[p]) for p in full}
        if not any(end > start[p] for p, end in found.items()):
            most = max(full, key=lambda p: full[p] - start[p])
            tail = self._tails.get(most)
            found[most] = tail.full_at if tail is not None else start[most] + self._rule.rows
        return _filled(start, ends, found)

    def _look(self, start: Offsets, ends: Offsets, allowed: int, now: dt.datetime) -> NextBatch | None:
        """Records may end a file by what they are: now and then they are looked at for that."""
        seconds = self._rule.look_seconds
        if seconds is None:
            return None
        if self._looked_at is not None and (now - self._looked_at).total_seconds() < seconds:
            return None
        new = [p for p in self._waits if p not in self._tails or ends[p] > self._tails[p].seen]
        if not new:
            return None
        looked = _only(new, start, ends, allowed)
        self._cut = frozenset(p for p in new if looked[p] < ends[p])
        return NextBatch(looked, may_leave=True)


def _filled(start: Offsets, ends: Offsets, some: Mapping[Partition, int]) -> Offsets:
    return Offsets({p: some.get(p, start[p]) for p in ends if p in start})


def _only(
    some: Mapping[Partition, int] | list[Partition], start: Offsets, ends: Offsets, allowed: int
) -> Offsets:
    return planning.cut(start, _filled(start, ends, {p: ends[p] for p in some}), allowed)
