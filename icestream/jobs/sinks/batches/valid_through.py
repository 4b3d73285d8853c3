"""Up to which time a job has read its topics, which its commits tell their readers. Used by the sink manager.

It is the least of its partitions. One whose records are in the batch has been read up to the time of the last
of them. One that had nothing more when its end was asked has been read up to that moment: an idle partition
holds nobody back. Of one that has more than the batch takes, what an earlier batch found still holds.

The times of records are the brokers' or the producers', as the topic says (`message.timestamp.type`). A
producer that sends late, commits its transaction late, or whose clock is wrong, may still bring an older
record: nobody can know.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.batch import Batch, BatchResult
from icestream.api.offsets import NOTHING, Offsets, Partition

_LONG_AGO: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class AskedEnds:
    """Where partitions ended, and the moment before they were asked."""

    ends: Offsets = NOTHING
    at: dt.datetime = _LONG_AGO


class ReadTimes:
    """The time up to which each partition has been read, in milliseconds, by batches that were committed."""

    def __init__(self) -> None:
        self._known: Mapping[Partition, int] = {}
        self.valid_through: dt.datetime | None = None
        """What `after` said of the last batch that was committed."""

    def after(
        self, batch: Batch, result: BatchResult, asked: AskedEnds, unread: Iterable[Partition] = ()
    ) -> dt.datetime | None:
        """The time up to which all have been read with this batch; `unread` have no leader now. None: of some
        partition it is not known."""
        return self._earliest(self._times(batch, result, asked, unread))

    def committed(
        self, batch: Batch, result: BatchResult, asked: AskedEnds, unread: Iterable[Partition] = ()
    ) -> None:
        times = self._times(batch, result, asked, unread)
        self._known = {partition: time for partition, time in times.items() if time is not None}
        self.valid_through = self._earliest(times)

    @staticmethod
    def _earliest(times: Mapping[Partition, int | None]) -> dt.datetime | None:
        known = [time for time in times.values() if time is not None]
        if not times or len(known) < len(times):
            return None
        return _LONG_AGO + dt.timedelta(milliseconds=min(known))

    def _times(
        self, batch: Batch, result: BatchResult, asked: AskedEnds, unread: Iterable[Partition]
    ) -> dict[Partition, int | None]:
        asked_ms = int(asked.at.timestamp() * 1000)
        times: dict[Partition, int | None] = {partition: self._known.get(partition) for partition in unread}
        for partition in batch.end:
            if partition in result.newest_ms:
                # Records of very old producers have no time at all.
                times[partition] = result.newest_ms[partition] if result.newest_ms[partition] > 0 else None
            elif partition in asked.ends and batch.end[partition] >= asked.ends[partition]:
                times[partition] = asked_ms
            else:
                times[partition] = self._known.get(partition)
        return times
