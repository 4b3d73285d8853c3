"""Points of six series of one connector: every 10 seconds for an hour, every 5 minutes for a day. Used by
`cluster/history/history.py`, which guards it.

4-byte floats in arrays; a point that nobody filled is a gap (NaN inside, None outside). A rate is what was
counted in the point's time, so the youngest point still grows; lag and freshness are the highest of the
point's time; batch seconds their mean.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.history import BatchRecord

SERIES: Final = ("lag", "in", "out", "rejected", "freshness", "batch_seconds")
"""Records; records a second that came into the source; that were dealt with; that were rejected; seconds;
seconds."""
_LAG, _IN, _OUT, _REJECTED, _FRESHNESS, _BATCH = range(len(SERIES))
FINE_SECONDS: Final = 10
_FINE_POINTS: Final = 360
_COARSE_SECONDS: Final = 300
_COARSE_POINTS: Final = 288
_RATE_POINTS: Final = 6


@dataclass(frozen=True)
class SeriesView:
    """Points of the same step; all series are equally long."""

    start_ms: int
    """Of the first point; each stands for the time from here to the next."""
    step_ms: int
    since_ms: int
    """When the history of the connector begins on this worker: what is before it is a gap."""
    values: Mapping[str, Sequence[float | None]]


class Ring:
    """Both rings of a connector."""

    def __init__(self) -> None:
        self._fine = _Points(FINE_SECONDS, _FINE_POINTS)
        self._coarse = _Points(_COARSE_SECONDS, _COARSE_POINTS)
        self._ends: int | None = None
        self._said: tuple[object, ...] = ()
        """By the last sample."""

    def batch(self, now_ms: int, record: BatchRecord) -> None:
        """A batch has ended."""
        for points in (self._fine, self._coarse):
            points.go_to(now_ms)
            if record.landed:
                points.count(_OUT, record.read)
                points.count(_REJECTED, sum(record.rejected.values()))
                if record.lag_after is not None:
                    points.highest(_LAG, record.lag_after)
            points.mean(_BATCH, record.seconds)

    def sample(self, now_ms: int, lag: float | None, freshness: float | None, ends: int | None) -> bool:
        """Whether it says anything else than the one before: of a thousand idle jobs nobody has to hear."""
        said = (lag, freshness, self.rates(now_ms))
        is_news = said != self._said
        self._said = said
        came = None if ends is None or self._ends is None else ends - self._ends
        self._ends = ends
        for points in (self._fine, self._coarse):
            points.go_to(now_ms)
            points.count(_OUT, 0)
            points.count(_REJECTED, 0)
            # Fewer than before: topics were created anew, or the job has other ones.
            if came is not None and came >= 0:
                points.count(_IN, came)
            if lag is not None:
                points.highest(_LAG, lag)
            if freshness is not None:
                points.highest(_FRESHNESS, freshness)
        return is_news

    def view(self, now_ms: int, seconds: float, since_ms: int) -> SeriesView:
        points = self._fine if seconds <= FINE_SECONDS * _FINE_POINTS else self._coarse
        return points.view(now_ms, seconds, since_ms)

    def lags(self, now_ms: int, seconds: int) -> tuple[tuple[int, float], ...]:
        return self._fine.known(_LAG, now_ms, seconds // FINE_SECONDS)

    def rates(self, now_ms: int) -> tuple[float, float] | None:
        """Mean of in and out over the last whole points."""
        came, went = (
            [value for _, value in self._fine.known(one, now_ms, _RATE_POINTS)] for one in (_IN, _OUT)
        )
        if not went:
            return None
        return (sum(came) / len(came) if came else 0.0), sum(went) / len(went)


class _Points:
    """A ring of points of all series, one series after the other."""

    def __init__(self, seconds: int, size: int) -> None:
        self._step_ms = seconds * 1000
        self._size = size
        self._values = array("f", [math.nan]) * (size * len(SERIES))
        self._newest = -1
        """The number of the newest point since the epoch; -1: there is none."""
        self._place = 0
        """Where it is in each series."""
        self._batches = 0

    def go_to(self, now_ms: int) -> None:
        """To the point of this time; those that were passed over are gaps."""
        number = now_ms // self._step_ms
        if number <= self._newest:
            # The clock went back: what happens now belongs to the newest point.
            return
        for passed in range(max(self._newest + 1, number - self._size + 1), number + 1):
            for first in range(0, len(self._values), self._size):
                self._values[first + passed % self._size] = math.nan
        self._newest, self._place = number, number % self._size
        self._batches = 0

    def count(self, series: int, records: float) -> None:
        self._set(series, self._now(series, 0.0) + records * 1000 / self._step_ms)

    def highest(self, series: int, value: float) -> None:
        self._set(series, max(self._now(series, value), value))

    def mean(self, series: int, value: float) -> None:
        before = self._now(series, 0.0)
        self._batches += 1
        self._set(series, before + (value - before) / self._batches)

    def view(self, now_ms: int, seconds: float, since_ms: int) -> SeriesView:
        last = max(now_ms // self._step_ms, self._newest)
        points = max(1, min(self._size, math.ceil(seconds * 1000 / self._step_ms)))
        first = last - points + 1
        values = {
            name: [None if value != value else value for value in self._between(series, first, last)]
            for series, name in enumerate(SERIES)
        }
        return SeriesView(first * self._step_ms, self._step_ms, since_ms, values)

    def known(self, series: int, now_ms: int, points: int) -> tuple[tuple[int, float], ...]:
        """The points that are over and no gaps, of the last so many, with the time of their ends."""
        last = now_ms // self._step_ms - 1
        first, step = last - points + 1, self._step_ms
        found = enumerate(self._between(series, first, last), first + 1)
        # What is not equal to itself is no number.
        return tuple((number * step, value) for number, value in found if value == value)

    def _between(self, series: int, first: int, last: int) -> array[float]:
        """The points of these numbers, at most as many as the ring has; gaps where it has none."""
        from_here, to_here = max(first, self._newest - self._size + 1), min(last, self._newest)
        if self._newest < 0 or from_here > to_here:
            return _GAP * (last - first + 1)
        begin, number = from_here % self._size, to_here - from_here + 1
        base = series * self._size
        kept = self._values[base + begin : base + min(self._size, begin + number)]
        if begin + number > self._size:
            kept += self._values[base : base + begin + number - self._size]
        return _GAP * (from_here - first) + kept + _GAP * (last - to_here)

    def _now(self, series: int, otherwise: float) -> float:
        value = self._values[series * self._size + self._place]
        return otherwise if math.isnan(value) else value

    def _set(self, series: int, value: float) -> None:
        self._values[series * self._size + self._place] = value


_GAP: Final = array("f", [math.nan])
