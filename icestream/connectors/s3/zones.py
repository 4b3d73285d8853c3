"""Time zones as Joda names them, and how far their clocks are from UTC. Used by the partitioner by time, and
by the schedule."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.api.errors import ConfigError, Problem
from icestream.records.rows import Indexes

_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2})(?:[.,]?([0-9]{1,3}))?)?)?"
)
_SAME_AS_UTC: Final = frozenset(("UTC", "UT", "Z"))
_NOT_IN_JODA: Final = frozenset(("Factory", "posixrules", "localtime"))
_MINUTE_MS: Final = 60_000
_QUARTER_MS: Final = 15 * _MINUTE_MS
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_BEGIN_OF_TABLES: Final = -5_364_662_400_000
"""1800-01-01."""
_END_OF_TABLES: Final = 2_114_380_800_000
"""2037-01-01."""
_CYCLE: Final = 146_097 * 86_400_000
"""400 years."""


@dataclass(frozen=True)
class Zone:
    """One with a name, or one with an offset that is always the same."""

    id: str
    """As Joda prints it."""
    offset_ms: int | None = None

    @property
    def tzinfo(self) -> dt.tzinfo:
        """The same for Python's datetimes."""
        if self.offset_ms is None:
            return zoneinfo.ZoneInfo(self.id)
        return dt.timezone(self.offset_ms * _MILLISECOND) if self.offset_ms else dt.UTC

    def offsets(self, moments: Indexes) -> Indexes:
        """How many milliseconds its clocks are ahead of UTC at these moments."""
        if self.offset_ms is not None:
            return np.full(len(moments), self.offset_ms, np.int64)
        # Nobody put clocks forward before then; and Arrow knows 30,000 years each way.
        known = np.clip(moments, _BEGIN_OF_TABLES, _END_OF_TABLES)
        zoned = pa.array(known).cast(pa.timestamp("ms", self.id))
        local = pc.local_timestamp(zoned).cast(pa.int64()).to_numpy(zero_copy_only=False)
        found: Indexes = local - known
        late = np.flatnonzero(moments >= _END_OF_TABLES)
        if len(late):
            found[late] = self._late_offsets(moments[late])
        return found

    def _late_offsets(self, moments: Indexes) -> Indexes:
        """After 2037 Arrow knows no changes of clocks; the calendar repeats itself every 400 years."""
        within = (moments - _END_OF_TABLES) % _CYCLE + _END_OF_TABLES
        # Rules of the future change clocks at full quarters of an hour.
        quarters, codes = np.unique(within // _QUARTER_MS, return_inverse=True)
        zone = zoneinfo.ZoneInfo(self.id)
        offsets = [
            dt.datetime.fromtimestamp(quarter * _QUARTER_MS // 1000, zone).utcoffset()
            for quarter in quarters.tolist()
        ]
        found = np.array([0 if one is None else one // _MILLISECOND for one in offsets], np.int64)
        return found[codes]

    def moments(self, local: Indexes) -> Indexes:
        """The moments at which its clocks show these times. Of two the later, and where clocks were put
        forward the one that Joda takes."""
        near = self.offsets(local)
        offsets = self.offsets(local - near)
        # East of Greenwich the second guess is right; west of it only where no change lies between the two.
        doubtful = np.flatnonzero((near != offsets) & (near < 0))
        if len(doubtful):
            again = self.offsets(local[doubtful] - offsets[doubtful])
            in_gap = again != offsets[doubtful]
            offsets[doubtful[in_gap]] = near[doubtful[in_gap]]
        found: Indexes = local - offsets
        return found


def zone_setting(name: str) -> Zone:
    """What `timezone` names. ConfigError if Joda knows no such zone."""
    try:
        return zone_of(name)
    except ValueError as error:
        raise ConfigError([Problem("timezone", f"'timezone={name}' cannot be used: {error}")]) from None


def zone_of(name: str) -> Zone:
    """ValueError if Joda knows no such zone."""
    if name in _SAME_AS_UTC:
        return Zone("UTC", 0)
    if fixed := _OFFSET.fullmatch(name):
        sign = -1 if fixed[1] == "-" else 1
        hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:4])
        if hours > 23 or minutes > 59 or seconds > 59:
            raise ValueError(f"'{name}' is no offset from UTC")
        total = ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((fixed[5] or "").ljust(3, "0"))
        return Zone(_fixed_id(sign * total) if total else "UTC", sign * total)
    # Names of files: nothing but what a list of zones has is looked for.
    if name not in zoneinfo.available_timezones() or name in _NOT_IN_JODA:
        raise ValueError(f"'{name}' is no time zone, such as Europe/Berlin or +01:00")
    return Zone(name)


def shown_offset(offset_ms: int, *, colons: bool) -> str:
    """Hours and minutes; Joda's patterns print no more."""
    minutes = abs(offset_ms) // _MINUTE_MS
    return f"{'-' if offset_ms < 0 else '+'}{minutes // 60:02}{':' if colons else ''}{minutes % 60:02}"


def _fixed_id(offset_ms: int) -> str:
    seconds, rest = divmod(abs(offset_ms) % _MINUTE_MS, 1000)
    shown = shown_offset(offset_ms, colons=True)
    if seconds or rest:
        shown += f":{seconds:02}"
    return f"{shown}.{rest:03}" if rest else shown
