"""Moments, days and times as a database without time zones has them: on the clock of `db.timezone`.

Java's drivers write them by a calendar of that zone, days and times included. Used by `rows`.
"""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.connectors.jdbc.sink.plans import Zones

_DAY_MICROS = 86_400_000_000


def on_the_clock(values: pa.Array, zones: Zones) -> pa.Array:
    """Timestamps lose their zone, and show the clock of the database's; days and times move with it."""
    kind = values.type
    if pt.is_timestamp(kind) and kind.tz is not None:
        moments = values.cast(pa.timestamp(kind.unit, zones.database))
        return pc.local_timestamp(moments)
    if pt.is_date32(kind) and zones.dates != "UTC":
        midnights = values.cast(pa.timestamp("s")).cast(pa.timestamp("s", "UTC"))
        local = pc.local_timestamp(midnights.cast(pa.timestamp("s", zones.dates)))
        return pc.floor_temporal(local, unit="day").cast(pa.date32())
    if pt.is_time(kind) and zones.database != "UTC":
        # A time is one of the first day of 1970.
        offset = ZoneInfo(zones.database).utcoffset(dt.datetime(1970, 1, 1)) or dt.timedelta()
        micros = values.cast(pa.time64("us")).cast(pa.int64())
        shift = int(offset.total_seconds()) * 1_000_000
        moved = pc.add(micros, shift)
        wrapped = pc.subtract(
            moved,
            pc.multiply(
                pc.floor(pc.divide(moved.cast(pa.float64()), _DAY_MICROS)).cast(pa.int64()), _DAY_MICROS
            ),
        )
        return wrapped.cast(pa.time64("us"))
    return values
