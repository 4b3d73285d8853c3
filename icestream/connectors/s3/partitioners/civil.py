"""Days and weeks of the calendar for any moment, also of years that Python's own dates do not have.

The proleptic Gregorian calendar, as Joda's ISO chronology has it. Used by `joda`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 86_400_000
_MONTH_STARTS: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def first_day(year: int) -> int:
    """The day, counted from 1970-01-01, on which a year begins."""
    before = year - 1
    return 365 * year + before // 4 - before // 100 + before // 400 - 719_527


def day_of(year: int, month: int, day: int) -> int:
    """Counted from 1970-01-01; ValueError if there is no such day."""
    leap = is_leap(year)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        raise ValueError(f"there is no day {day} in month {month} of {year}")
    return first_day(year) + _MONTH_STARTS[month - 1] + (leap and month > 2) + day - 1


def first_week(week_year: int) -> int:
    """The Monday of the first week of a week year, which has January 4."""
    fourth = first_day(week_year) + 3
    return fourth - (fourth + 3) % 7


@dataclass(frozen=True)
class Moment:
    """A local time by its parts."""

    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int
    """1 is Monday."""
    week_year: int
    week: int
    milliseconds: int
    """Since midnight."""

    @classmethod
    def at(cls, local_ms: int) -> Moment:
        days, milliseconds = divmod(local_ms, DAY_MS)
        year = 1970 + days * 400 // 146_097
        year += 1 if days >= first_day(year + 1) else -1 if days < first_day(year) else 0
        of_year = days - first_day(year)
        leap = is_leap(year)
        month = next(
            number
            for number in range(12, 0, -1)
            if of_year >= _MONTH_STARTS[number - 1] + (leap and number > 2)
        )
        day = of_year - _MONTH_STARTS[month - 1] - (leap and month > 2) + 1
        week_year = year + (days >= first_week(year + 1)) - (days < first_week(year))
        week = (days - first_week(week_year)) // 7 + 1
        return cls(year, month, day, of_year + 1, (days + 3) % 7 + 1, week_year, week, milliseconds)

    @property
    def hour(self) -> int:
        return self.milliseconds // 3_600_000
