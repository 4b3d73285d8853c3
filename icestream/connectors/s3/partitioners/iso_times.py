"""Times in ISO 8601 as Joda's `dateTimeParser` reads them; times without an offset are UTC. For
`timestamp.field`."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.connectors.s3.partitioners.civil import DAY_MS, day_of, first_day, first_week, is_leap
from icestream.records.rows import Indexes

_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
_USUAL: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$"
_DATE: Final = (
    r"(?P<year>[+-]?[0-9]{1,9})(?:-W(?P<week>[0-9]{1,2})(?:-(?P<weekday>[0-9]))?"
    r"|-(?P<day_of_year>[0-9]{3})|-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2}))?)?"
)
_TIME: Final = (
    r"(?P<hour>[0-9]{1,2})(?:[.,](?P<of_hour>[0-9]+)"
    r"|:(?P<minute>[0-9]{1,2})(?:[.,](?P<of_minute>[0-9]+)"
    r"|:(?P<second>[0-9]{1,2})(?:[.,](?P<of_second>[0-9]+))?)?)?"
)
_OFFSET: Final = (
    r"(?P<offset>Z|(?P<sign>[+-])(?P<off_hour>[0-9]{2})(?::?(?P<off_minute>[0-9]{2})"
    r"(?::?(?P<off_second>[0-9]{2})(?:[.,](?P<off_ms>[0-9]{1,3}))?)?)?)"
)
_TEXT: Final = re.compile(rf"(?:{_DATE})?(?:T(?:{_TIME})?(?:{_OFFSET})?)?")
_LIMIT: Final = 2**63


def milliseconds(texts: pa.Array) -> tuple[Indexes, dict[int, str]]:
    """Of each text, and which are no times, with the reason. Nulls are not looked at."""
    if pc.all(pc.match_substring_regex(texts, _USUAL)).as_py():
        try:
            bare = pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("ns"))
            return np.floor_divide(bare.cast(pa.int64()).to_numpy(zero_copy_only=False), 1_000_000), {}
        except pa.ArrowInvalid:
            pass  # one that there is not, or one that is too far away
    found, failed = np.zeros(len(texts), np.int64), {}
    for at, text in enumerate(texts.to_pylist()):
        try:
            found[at] = 0 if text is None else parsed(text)
        except ValueError as error:
            failed[at] = str(error)
    return found, failed


def parsed(text: str) -> int:
    """Milliseconds since 1970; ValueError."""
    if _NUMBER.fullmatch(text) and -_LIMIT <= int(text) < _LIMIT:
        return int(text)
    match = _TEXT.fullmatch(text)
    if match is None or not text or text == "T":
        raise ValueError(f'Invalid format: "{text}"')
    parts = match.groupdict()
    days = _days({name: int(parts[name]) for name in _DAY_PARTS if parts[name] is not None})
    moment = days * DAY_MS + _of_day(parts) - _offset(parts)
    if not -_LIMIT <= moment < _LIMIT:
        raise ValueError(f'"{text}" is too far away')
    return moment


_DAY_PARTS: Final = ("year", "month", "day", "day_of_year", "week", "weekday")


def _days(parts: dict[str, int]) -> int:
    year = parts.get("year", 1970)
    if (week := parts.get("week")) is not None:
        weekday = parts.get("weekday", 1)
        weeks = (first_week(year + 1) - first_week(year)) // 7
        if not 1 <= week <= weeks or not 1 <= weekday <= 7:
            raise ValueError(f"there is no week {week} with day {weekday} in {year}")
        return first_week(year) + (week - 1) * 7 + weekday - 1
    if (of_year := parts.get("day_of_year")) is not None:
        if not 1 <= of_year <= 365 + is_leap(year):
            raise ValueError(f"there is no day {of_year} in {year}")
        return first_day(year) + of_year - 1
    return day_of(year, parts.get("month", 1), parts.get("day", 1))


def _of_day(parts: dict[str, str | None]) -> int:
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"there is no time {hour}:{minute}:{second}")
    whole = ((hour * 60 + minute) * 60 + second) * 1000
    for name, unit in (("of_hour", 3_600_000), ("of_minute", 60_000), ("of_second", 1000)):
        if digits := parts[name]:
            whole += int(digits) * unit // 10 ** len(digits)
    return whole


def _offset(parts: dict[str, str | None]) -> int:
    if parts["sign"] is None:
        return 0
    hour, minute, second = (int(parts[name] or 0) for name in ("off_hour", "off_minute", "off_second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"there is no offset of {hour}:{minute}:{second}")
    total = ((hour * 60 + minute) * 60 + second) * 1000 + int((parts["off_ms"] or "0").ljust(3, "0"))
    return -total if parts["sign"] == "-" else total
