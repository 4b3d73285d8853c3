"""English names of months, days, eras and zones, as java.text.SimpleDateFormat writes and reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

MONTHS: Final[Sequence[str]] = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS: Final[Sequence[str]] = (
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
)
ERAS: Final[Sequence[str]] = ("BC", "AD")
HALVES: Final[Sequence[str]] = ("AM", "PM")
ZONES: Final[Mapping[str, int]] = {
    "UTC": 0,
    "GMT": 0,
    "Coordinated Universal Time": 0,
    "Greenwich Mean Time": 0,
    "WET": 0,
    "CET": 60,
    "CEST": 120,
    "EET": 120,
    "EEST": 180,
    "BST": 60,
    "MSK": 180,
    "JST": 540,
    "EST": -300,
    "EDT": -240,
    "CST": -360,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
}
"""Minutes east of Greenwich, of the zones that are common in logs."""


def by_name(names: Sequence[str], first: int) -> Mapping[str, int]:
    """Long and short names in lower case, with their numbers."""
    short = {name[:3].lower(): number for number, name in enumerate(names, first)}
    return short | {name.lower(): number for number, name in enumerate(names, first)}
