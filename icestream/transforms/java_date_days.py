"""Which day the fields mean that a date format has read, as java.util.Calendar decides it.

Fields are letters of the pattern in the order in which they were set: where several say which day of the
year it is, those that were set last count.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from icestream.transforms.java_calendar import DAY, civil, moments

Found = dict[str, int]
Day = tuple[int, int, int]
"""Year, month and day, each perhaps out of range."""
_THURSDAY: Final = 5
_SUNDAY: Final = 1


def day_of(found: Found) -> Day:
    if "Y" in found and _stamp(found, "Y") > _stamp(found, "y"):
        return _week_date(found)
    year = found.get("y", 1970)
    if found.get("G") == 0:
        year = 1 - year
    month = found.get("M", 1)
    if not any(letter in found for letter in "DEFwW"):
        return year, month, found.get("d", 1)
    kind = _deciding(found)
    if kind == "d":
        return year, month, found.get("d", 1)
    if kind == "D":
        return year, 1, found["D"]
    if kind == "w":
        return _as_day(_week(_first(year, 1), found, found["w"]))
    if kind == "W":
        return _as_day(_week(_first(year, month), found, found["W"]))
    return _as_day(_weekday_in_month(year, month, found))


def _stamp(found: Found, letter: str) -> int:
    return list(found).index(letter) + 1 if letter in found else 0


def _deciding(found: Found) -> str:
    """The field that decides on the day: of the month, of the year, or the week or weekday."""
    day, year, weekday = (_stamp(found, letter) for letter in "dDE")
    weeks = {letter: _stamp(found, letter) for letter in "WFw"}
    ages = {letter: max(stamp, weekday) if stamp and weekday else 0 for letter, stamp in weeks.items()}
    if not max(day, year, *ages.values()):
        ages = {"W": weeks["W"], "F": max(weeks["F"], weekday), "w": weeks["w"]}
        if not max(ages.values()):
            return "d"
    best = max(day, year, *ages.values())
    if best == day:
        return "d"
    if best == ages["W"] and weeks["W"] >= weeks["w"]:
        return "F" if ages["F"] == ages["W"] and weeks["F"] > weeks["W"] else "W"
    if best == ages["F"] and weeks["F"] >= weeks["w"]:
        return "F"
    return "D" if best == year else "w"


def _first(year: int, month: int) -> int:
    """The first of a month, in days since 1970."""
    columns = np.array([(year, month, 1, 0)], np.int64).T
    return int(moments(*columns)[0]) // DAY


def _on_or_before(day: int, weekday: int) -> int:
    return day - (day + _THURSDAY - weekday) % 7


def _week(first: int, found: Found, week: int) -> int:
    """A day of a week that is counted from the one with the first day."""
    sunday = _on_or_before(first, _SUNDAY)
    return _on_or_before(sunday + 6, found.get("E", _SUNDAY)) + 7 * (week - 1)


def _weekday_in_month(year: int, month: int, found: Found) -> int:
    weekday, nth = found.get("E", _SUNDAY), found.get("F", 1)
    if nth >= 0:
        return _on_or_before(_first(year, month) + 7 * nth - 1, weekday)
    return _on_or_before(_first(year, month + 1) + 7 * (nth + 1) - 1, weekday)


def _week_date(found: Found) -> Day:
    week, weekday = found.get("w", 1), found.get("E", _SUNDAY)
    if not 1 <= weekday <= 7:  # a number of Java's `u`, which counts from Monday
        week += (weekday - 1) // 7
        weekday = ((weekday - 1) % 7 + 1) % 7 + 1
    sunday = _on_or_before(_first(found["Y"], 1), _SUNDAY)
    return _as_day(sunday + (weekday - _SUNDAY) % 7 + 7 * (week - 1))


def _as_day(days: int) -> Day:
    year, month, day = civil(np.array([days]))
    return int(year[0]), int(month[0]), int(day[0])
