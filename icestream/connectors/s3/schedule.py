"""When objects that are not full are written: `rotate.schedule.interval.ms`, and our own interval. For
`plugin`, which tells the sink manager."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final

from icestream.api.sink import Filling
from icestream.connectors.s3.keys import COMMIT_INTERVAL, PARTITIONERS
from icestream.connectors.s3.zones import zone_setting

_Moment = Callable[[dt.datetime], dt.datetime]
_BY_TIME: Final = PARTITIONERS[2:]
_LOOK_SECONDS: Final = (1.0, 300.0)
"""The least and the most between two looks at records whose times may complete objects."""
_PACE_SECONDS: Final = (1.0, 10.0)
"""How long a batch of a job that is behind may take."""
_DAY_MS: Final = 86_400_000
"""A schedule begins anew at midnight."""
_LONGEST_MS: Final = 3_650 * _DAY_MS
"""Python's times end before those that a config can name."""


def filling_of(values: Mapping[str, Any]) -> Filling:
    return Filling(values["flush.size"], "flush.size", _flush_at(values), _look_seconds(values))


def pace_of(values: Mapping[str, Any]) -> float:
    """Seconds that a batch of a job that is behind should take."""
    waits = [values[key] / 1000 for key in _CLOCK_KEYS if values[key] > 0]
    least, most = _PACE_SECONDS
    return min(most, max(least, min(waits, default=most)))


_CLOCK_KEYS: Final = ("rotate.schedule.interval.ms", COMMIT_INTERVAL)


def _flush_at(values: Mapping[str, Any]) -> _Moment | None:
    moments: list[_Moment] = []
    schedule, interval = (values[key] for key in _CLOCK_KEYS)
    if schedule > 0:
        zone, schedule = zone_setting(values["timezone"]).tzinfo, min(schedule, _DAY_MS)
        moments.append(lambda since: next_rotation(since, schedule, zone))
    if interval > 0:
        longest = dt.timedelta(milliseconds=min(interval, _LONGEST_MS))
        moments.append(lambda since: since + longest)
    if not moments:
        return None
    return lambda since: min(moment(since) for moment in moments)


def next_rotation(since: dt.datetime, interval_ms: int, zone: dt.tzinfo) -> dt.datetime:
    """The first multiple of the interval since midnight that is after a moment; the next midnight at the
    latest."""
    local = since.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    # In UTC: the day in which clocks change is longer or shorter.
    start = midnight.astimezone(dt.UTC)
    passed = (since - start) // dt.timedelta(milliseconds=interval_ms)
    tomorrow = (midnight + dt.timedelta(days=1)).astimezone(dt.UTC)
    if tomorrow <= since:
        tomorrow = (midnight + dt.timedelta(days=2)).astimezone(dt.UTC)
    return min(tomorrow, start + (passed + 1) * dt.timedelta(milliseconds=interval_ms))


def _look_seconds(values: Mapping[str, Any]) -> float | None:
    """Only folders by time have objects that the records' times complete."""
    if values["rotate.interval.ms"] <= 0 or values["partitioner.class"] not in _BY_TIME:
        return None
    least, most = _LOOK_SECONDS
    seconds: float = values["rotate.interval.ms"] / 1000
    return min(most, max(least, seconds))
