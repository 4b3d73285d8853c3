"""When a batch starts and where it ends. Pure: no I/O, no clock of its own. Called by the sink manager."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from icestream.api.batch import Batch, BatchResult, Rejected
from icestream.api.errors import SourceRecreated
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.sinks.job import Limits

_FIRST_ROWS = 500_000
"""Size of the first batch of a job that is behind: its speed is not known yet."""
_LEAST_ROWS = 50_000
_SHOWN = 20
_MANY = 32
_LEAST_SLICE = 5_000
"""Kafka sends about as many records of a partition at once: what a slice leaves of them is sent again."""


@dataclass(frozen=True)
class Pace:
    """What recent batches tell about the next one."""

    last_start: float | None = None
    """When the last batch started; None: none has, so the first one starts at once."""
    behind: bool = False
    """The last batch left records that were waiting when it was planned."""
    rows_a_second: float | None = None
    bytes_a_row: float | None = None
    rows_limit: int | None = None
    """Set while batches have to be smaller than the limits say."""


def waiting(start: Offsets, ends: Offsets) -> int:
    return sum(max(0, ends[partition] - start[partition]) for partition in ends if partition in start)


def is_due(now: float, rows: int, pace: Pace, limits: Limits) -> bool:
    if rows == 0:
        return False
    if pace.last_start is None or pace.behind:
        return True
    if now - pace.last_start >= limits.interval or rows >= limits.rows:
        return True
    return pace.bytes_a_row is not None and rows * pace.bytes_a_row >= limits.bytes


def until_due(now: float, pace: Pace, limits: Limits) -> float:
    """Seconds to the end of the interval."""
    return 0.0 if pace.last_start is None else max(0.0, pace.last_start + limits.interval - now)


def rows_allowed(pace: Pace, limits: Limits) -> int:
    """A job that is behind takes batches that last about one interval, so that its rows become visible as
    often."""
    if pace.rows_a_second is None:
        paced = _FIRST_ROWS
    else:
        paced = max(_LEAST_ROWS, int(pace.rows_a_second * limits.interval))
    allowed = min(limits.rows, paced)
    if pace.bytes_a_row:
        allowed = min(allowed, max(1, int(limits.bytes / pace.bytes_a_row)))
    return max(1, min(allowed, pace.rows_limit or allowed))


def shrunk(pace: Pace, span: int, result: BatchResult) -> Pace:
    """After a batch of so many rows that was too large: what was read of it tells how large records are."""
    size = result.bytes_read / result.records_read if result.records_read else pace.bytes_a_row
    return replace(pace, rows_limit=max(1, span // 2), bytes_a_row=size, behind=True)


def eased(pace: Pace, limits: Limits) -> int | None:
    """The limit after a batch that fitted: a little more, until it limits nothing. Forgetting it at once
    would have every other batch of a bad stretch run in vain."""
    if pace.rows_limit is None:
        return None
    more = pace.rows_limit * 5 // 4 + 1
    return None if more >= limits.rows else more


def cut(start: Offsets, ends: Offsets, allowed: int, after: Partition | None = None) -> Offsets:
    """The ends of a batch of at most `allowed` rows, in proportion to what waits in each partition.

    Of many partitions only some are read, but these in slices that are worth it: those that follow `after`,
    the last one of the batch before, so that each has its turn.
    """
    total = waiting(start, ends)
    if total <= allowed:
        return ends
    waits = [partition for partition in ends if ends[partition] > start[partition]]
    if len(waits) > max(_MANY, allowed // _LEAST_SLICE):
        return _cut_of_many(start, ends, allowed, total, _from_next(waits, after))
    lags = {partition: max(0, ends[partition] - start[partition]) for partition in ends}
    shares = {partition: lag * allowed // total for partition, lag in lags.items()}
    # What rounding leaves goes to those that would get nothing, and never more than that: a batch that must
    # be smaller has to become smaller.
    left = allowed - sum(shares.values())
    for partition in sorted(lags, key=lambda one: (shares[one] > 0, one)):
        if left and shares[partition] < lags[partition]:
            shares[partition] += 1
            left -= 1
    return Offsets({partition: start[partition] + share for partition, share in shares.items()})


def _cut_of_many(
    start: Offsets, ends: Offsets, allowed: int, total: int, waits: Sequence[Partition]
) -> Offsets:
    """From the first of these partitions on, as many as it takes."""
    positions = {partition: start[partition] for partition in ends}
    left = allowed
    for partition in waits:
        lag = ends[partition] - start[partition]
        taken = min(lag, left, max(_LEAST_SLICE, lag * allowed // total))
        positions[partition] += taken
        left -= taken
    return Offsets(positions)


def _from_next(partitions: Sequence[Partition], after: Partition | None) -> list[Partition]:
    """Those that follow `after` first."""
    first = bisect_right(partitions, after) if after is not None else 0
    return [*partitions[first:], *partitions[:first]]


def last_of(batch: Batch, after: Partition | None) -> Partition | None:
    """Where the turns of a batch ended, which began after `after`."""
    return next(reversed(_from_next([piece.partition for piece in batch.slices()], after)), after)


def before_rejected(end: Offsets, rejected: Iterable[Rejected]) -> Offsets:
    """The ends of the part of a batch that precedes every rejected record."""
    first: dict[Partition, int] = {}
    for record in rejected:
        first[record.partition] = min(record.offset, first.get(record.partition, record.offset))
    return Offsets({partition: first.get(partition, end[partition]) for partition in end})


def has_gaps(start: Offsets, beginnings: Offsets, ends: Offsets) -> bool:
    return any(True for _ in _gaps(start, beginnings, ends))


def refuse_gaps(
    job: str,
    start: Offsets,
    beginnings: Offsets,
    ends: Offsets,
    given_by: Mapping[Partition, str] | None = None,
) -> None:
    """Stop rather than skip: the next offset must still be in the topic, whoever gave it."""
    gaps = list(_gaps(start, beginnings, ends))
    if not gaps:
        return
    partition, position = gaps[0], start[gaps[0]]
    giver = (given_by or {}).get(partition, "the table")
    if ends[partition] < position:
        what = f"ends at offset {ends[partition]}, but {giver} goes on at {position}"
        why = "the topic was created anew or cut"
    else:
        what = f"begins at offset {beginnings[partition]}, but {giver} goes on at {position}"
        why = "retention removed records that were never read"
    more = f" So it is with {len(gaps) - 1} more." if len(gaps) > 1 else ""
    moves = " ".join(f"{gap.topic}:{gap.number}=beginning" for gap in gaps[:_SHOWN])
    rest = " …" if len(gaps) > _SHOWN else ""
    raise SourceRecreated(
        f"topic '{partition.topic}', partition {partition.number} {what}: {why}.{more} To read all that is "
        f"there now, and nothing else again, stop the connector and run `icestream connector offsets set "
        f"{job} {moves}{rest}`; to go on as before, restore the topic."
    )


def readable(batch: Batch, beginnings: Offsets, ends: Offsets) -> Batch:
    """What the topic still has of a batch; of a partition that was cut below its end, nothing."""
    start = {
        p: min(max(batch.start[p], beginnings[p]), batch.end[p]) if batch.end[p] <= ends[p] else batch.end[p]
        for p in batch.end
    }
    return replace(batch, start=Offsets(start))


def refuse_lost_dead_letters(job: str, batch: Batch, beginnings: Offsets) -> None:
    """Stop, if records of a batch whose dead letters are not published are gone: nobody knows how many were
    bad."""
    gone = [piece for piece in batch.slices() if piece.start < beginnings[piece.partition]]
    if not gone:
        return
    first = gone[0]
    until = min(first.until, beginnings[first.partition])
    sets = " ".join(
        f"{p.topic}:{p.number}={batch.end[p]}" for p in (piece.partition for piece in gone[:_SHOWN])
    )
    rest = " …" if len(gone) > _SHOWN else ""
    raise SourceRecreated(
        f"the last batch is in the table and its dead letters are not in their queue, and retention removed "
        f"records of it: topic '{first.partition.topic}', partition {first.partition.number}, offsets "
        f"{first.start} to {until} cannot be looked at again. To go on without these letters, stop the "
        f"connector and run `icestream connector offsets set {job} {sets}{rest}`, which moves nothing else."
    )


def _gaps(start: Offsets, beginnings: Offsets, ends: Offsets) -> Iterator[Partition]:
    for partition in ends:
        position = start.get(partition)
        if position is not None and not beginnings[partition] <= position <= ends[partition]:
            yield partition
