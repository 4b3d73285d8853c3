"""java.util.GregorianCalendar in UTC: the Julian calendar until October 1582, the Gregorian one after it.

From milliseconds to fields on columns, and from fields, however far out of range, to milliseconds. Used by
`java_dates`. Weeks are those of Java's English locale: they begin on Sunday, the first has one day or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from icestream.records.rows import Flags, Indexes

DAY: Final = 86_400_000
CUTOVER: Final = -141_427
"""The fifteenth of October 1582, the first day of the Gregorian calendar, in days since 1970."""
_CUTOVER_YEAR: Final = 1582
_SATURDAY_TO_SUNDAY: Final = 4
"""The first of January 1970 was a Thursday."""


@dataclass(frozen=True)
class Fields:
    """What the calendar says of some moments."""

    days: Indexes
    """Since 1970."""
    time: Indexes
    """Milliseconds since midnight."""
    year: Indexes
    """0 is the year before the first one, 1 BC."""
    month: Indexes
    """From 1."""
    day: Indexes

    @classmethod
    def of(cls, moments: Indexes) -> Fields:
        days = moments // DAY
        return cls(days, moments - days * DAY, *civil(days))

    @property
    def weekday(self) -> Indexes:
        """Sunday is 0."""
        found: Indexes = (self.days + _SATURDAY_TO_SUNDAY) % 7
        return found

    @property
    def day_of_year(self) -> Indexes:
        found: Indexes = self.days - first_days(self.year) + 1
        return found

    @property
    def week_of_month(self) -> Indexes:
        found: Indexes = (self.day - 1 + (self.weekday - self.day + 1) % 7) // 7 + 1
        return found

    @property
    def week_date(self) -> tuple[Indexes, Indexes]:
        """The year to which the week belongs, and its number in it."""
        sunday = self.days - self.weekday
        next_year = first_days(self.year + 1)
        late = sunday + 7 > next_year
        first = first_days(self.year)
        week = (sunday - (first - (first + _SATURDAY_TO_SUNDAY) % 7)) // 7 + 1
        return np.where(late, self.year + 1, self.year), np.where(late, 1, week)


def first_days(year: Indexes) -> Indexes:
    """The first of January of each year, in days since 1970."""
    january = np.ones_like(year)
    return np.where(year > _CUTOVER_YEAR, _days(year, january, False), _days(year, january, True))


def civil(days: Indexes) -> tuple[Indexes, Indexes, Indexes]:
    """Year, month and day of days since 1970."""
    julian: Flags = days < CUTOVER
    found = _gregorian(days)
    if julian.any():
        old = _julian(days)
        return (
            np.where(julian, old[0], found[0]),
            np.where(julian, old[1], found[1]),
            np.where(julian, old[2], found[2]),
        )
    return found


def _gregorian(days: Indexes) -> tuple[Indexes, Indexes, Indexes]:
    """Counted from the first of March of the year 0, so that a leap day is the last of its year."""
    since = days + 719_468
    era = since // 146_097
    of_era = since - era * 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    return _from_march(year + era * 400, of_era - (365 * year + year // 4 - year // 100))


def _julian(days: Indexes) -> tuple[Indexes, Indexes, Indexes]:
    since = days + 719_470
    cycle = since // 1_461
    of_cycle = since - cycle * 1_461
    year = (of_cycle - of_cycle // 1_460) // 365
    return _from_march(year + cycle * 4, of_cycle - 365 * year)


def _from_march(year: Indexes, day_of_year: Indexes) -> tuple[Indexes, Indexes, Indexes]:
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = np.where(shifted < 10, shifted + 3, shifted - 9)
    return year + (month <= 2), month, day


def _days(year: Indexes, month: Indexes, julian: bool) -> Indexes:
    """The first of each month, in days since 1970; months may be out of range."""
    year = year + (month - 1) // 12
    month = (month - 1) % 12 + 1
    year = year - (month <= 2)
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5
    if julian:
        found: Indexes = 365 * year + year // 4 + of_year - 719_470
    else:
        found = 365 * year + year // 4 - year // 100 + year // 400 + of_year - 719_468
    return found


def moments(year: Indexes, month: Indexes, day: Indexes, time: Indexes) -> Indexes:
    """The inverse, leniently: whatever is out of range counts on."""
    old, new = _days(year, month, True) + day - 1, _days(year, month, False) + day - 1
    whole, rest = time // DAY, time % DAY
    return _chosen(year, old + whole, new + whole) * DAY + rest


def _chosen(year: Indexes, old: Indexes, new: Indexes) -> Indexes:
    """Which calendar's day it is: that of its year, unless the day is before the Gregorian calendar."""
    gregorian: Flags = (year >= _CUTOVER_YEAR) & (new >= CUTOVER)
    return np.where(gregorian, new, old)
