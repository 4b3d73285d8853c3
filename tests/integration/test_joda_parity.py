"""Our patterns, zones and ISO times beside the real Joda-Time, which comes with Spark."""

from __future__ import annotations

import datetime as dt
import random
import zoneinfo
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py4j.protocol import Py4JJavaError

from icestream.connectors.s3.partitioners.iso_times import parsed
from icestream.connectors.s3.partitioners.joda import JodaPattern
from icestream.connectors.s3.zones import zone_of
from tests.integration.jvm import java_gateway

PATTERNS = [
    "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "YYYY-MM-dd'T'HH:mm:ss.SSSZZ",
    "G C Y YY YYY YYYYY x xx xxxx w ww e ee y yy yyyy D DDD M MM MMM MMMM d dd",
    "E EEE EEEE a K KK h hh H HH k kk m mm s ss S SS SSS SSSS SSSSSSSSS Z ZZ",
    "'it''s' ''yyyy'' 'open",
    "'dt'=yyyyMMdd",
]
ZONES = [
    *(
        "UTC",
        "Europe/Berlin",
        "America/Los_Angeles",
        "America/Sao_Paulo",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
    ),
    *("Pacific/Apia", "America/St_Johns", "Africa/Casablanca", "+01:00", "-05:30", "+01:30:15", "Etc/GMT+5"),
]
YEAR = 31_556_952_000
DAY = 86_400_000
FIRST_DAY, LAST_DAY = -25_567, 84_005  # 1900 and 2200
CYCLE = 146_097 * DAY  # 400 years


@pytest.fixture(scope="module")
def joda() -> Iterator[Any]:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    (jar,) = (Path(spec.origin).parent / "jars").glob("joda-time-*.jar")
    with java_gateway(str(jar)) as gateway:
        yield gateway.jvm


class Rules:
    """The rules of a zone in the tz database of this machine, which ours follow, beside those of the database
    within Joda-Time. Both are read without our code: they are of different years."""

    def __init__(self, joda: Any, zone: str) -> None:
        self._here = zoneinfo.ZoneInfo(zone) if zone in zoneinfo.available_timezones() else None
        self._differing = set() if self._here is None else self._differing_days(joda, zone)

    def differ(self, moment: int) -> bool:
        """Whether they do within a day of a moment."""
        day = min(moment // DAY, LAST_DAY)
        return not self._differing.isdisjoint(range(day - 1 if day < LAST_DAY else day - 366, day + 2))

    def offset_here(self, moment: int) -> int:
        assert self._here is not None
        # Python's times end with the year 9999.
        moment = moment if moment < 7000 * YEAR else (moment - 6000 * YEAR) % CYCLE + 6000 * YEAR
        offset = dt.datetime.fromtimestamp(moment / 1000, self._here).utcoffset()
        assert offset is not None
        return offset // dt.timedelta(milliseconds=1)

    def _differing_days(self, joda: Any, zone: str) -> set[int]:
        theirs = joda.org.joda.time.DateTimeZone.forID(zone)
        changes = [FIRST_DAY * DAY]
        while (change := theirs.nextTransition(changes[-1])) > changes[-1] and change < LAST_DAY * DAY:
            changes.append(change)
        found = set()
        for begin, end in zip(changes, [*changes[1:], LAST_DAY * DAY], strict=True):
            offset = theirs.getOffset(begin)
            probes = [begin, *range(begin + DAY, end, DAY), end - 1]
            found |= {probe // DAY for probe in probes if self.offset_here(probe) != offset}
        return found


@pytest.fixture(scope="module")
def rules(joda: Any) -> Callable[[str], Rules]:
    return cache(lambda zone: Rules(joda, zone))


def moments(count: int) -> list[int]:
    """Mostly of our time; some far away, and some around the changes of clocks."""
    chance = random.Random(7)
    found = [0, -1, 1, 951_782_400_000, 1_709_164_800_000]
    found += [chance.randrange(0, 60 * YEAR) for _ in range(count)]
    found += [chance.randrange(-3000 * YEAR, 8000 * YEAR) for _ in range(count // 4)]
    found += [chance.randrange(-200_000 * YEAR, 200_000 * YEAR) for _ in range(count // 4)]
    for change in (1_774_746_000_000, 1_792_890_000_000, 1_772_964_000_000, 1_793_523_600_000):
        found += [change + chance.randrange(-7_200_000, 7_200_000) for _ in range(5)]
    return found


@pytest.mark.parametrize("locale", ["en", "en-US", "de_DE", "US", "EN"])
def test_patterns_print_what_joda_prints(joda: Any, rules: Callable[[str], Rules], locale: str) -> None:
    """`path.format`, `locale`, `timezone`."""
    made = joda.java.util.Locale(locale)
    for zone in ZONES if locale == "en" else ZONES[:1]:
        java_zone, known = joda.org.joda.time.DateTimeZone.forID(zone), rules(zone)
        for pattern in PATTERNS if zone in ZONES[:2] else PATTERNS[:2]:
            theirs = joda.org.joda.time.format.DateTimeFormat.forPattern(pattern)
            theirs = theirs.withLocale(made).withZone(java_zone)
            ours = JodaPattern.parsed(pattern, locale)
            for moment in moments(12):
                # Before 1900 clocks followed the sun, and the two have not the same data on it.
                if moment < -2_200_000_000_000 and zone != "UTC":
                    continue
                if known.differ(moment):
                    assert zone_of(zone).offsets(np.array([moment])).tolist() == [known.offset_here(moment)]
                else:
                    assert ours.printed(moment, zone_of(zone)) == theirs.print(moment), (
                        pattern,
                        zone,
                        moment,
                    )


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_become_the_moments_of_joda(joda: Any, rules: Callable[[str], Rules], zone: str) -> None:
    java_zone, known = joda.org.joda.time.DateTimeZone.forID(zone), rules(zone)
    local = [one for one in moments(60) if one > 0]
    found = zone_of(zone).moments(np.array(local)).tolist()
    theirs = [
        one - known.offset_here(moment) if known.differ(one) else java_zone.convertLocalToUTC(one, False)
        for one, moment in zip(local, found, strict=True)
    ]
    assert found == theirs


def test_the_rules_of_most_zones_are_the_same_in_both_databases(rules: Callable[[str], Rules]) -> None:
    """Otherwise the tests above compare nothing with Joda."""
    differing = {zone for zone in ZONES if any(rules(zone).differ(one) for one in moments(60) if one > 0)}
    assert len(differing) <= 2, differing


@pytest.mark.parametrize(
    "zone",
    [
        "Z",
        "UT",
        "GMT",
        "utc",
        "+1",
        "+01",
        "+0100",
        "UTC+01:00",
        "GMT+1",
        "PST",
        "+24:00",
        "01:00",
        "",
        "Factory",
    ],
)
def test_zones_that_joda_knows(joda: Any, zone: str) -> None:
    try:
        offset = joda.org.joda.time.DateTimeZone.forID(zone).getOffset(0)
    except Py4JJavaError:
        with pytest.raises(ValueError, match=r"is no"):
            zone_of(zone)
        return
    assert zone_of(zone).offsets(np.array([0])).tolist() == [offset]


@pytest.mark.parametrize("pattern", ["QQ", "b", "yyyy-tt", "'only text'"])
def test_patterns_that_joda_refuses(joda: Any, pattern: str) -> None:
    try:
        theirs = joda.org.joda.time.format.DateTimeFormat.forPattern(pattern).print(0)
    except Py4JJavaError as error:
        with pytest.raises(ValueError, match=error.java_exception.getMessage()):
            JodaPattern.parsed(pattern)
        return
    assert JodaPattern.parsed(pattern).printed(0, zone_of("UTC")) == theirs


TIMES = [
    *(
        "2026-01-31T10:11:12.123Z",
        "2026-01-31T10:11:12Z",
        "2026-01-31T10:11:12.123456789+05:30",
        "2026-01-31",
    ),
    *(
        "2026",
        "2026-02",
        "2026-02-30",
        "2026-13-01",
        "2026-031",
        "2026-366",
        "2024-366",
        "2026-W05",
        "2026-W05-7",
    ),
    *("2026-W54-1", "2026-01-31T", "2026-01-31T10", "2026-01-31T10.5", "2026-01-31T10:11,25", "T10:11", "T"),
    *(
        "2026-01-31T24:00",
        "2026-01-31T23:59:60",
        "2026-01-31 10:11",
        "2026-01-31T10:11Z",
        "2026-01-31T+01:00",
    ),
    *(
        "2026-01-31T10:11-0130",
        "2026-01-31T10:11:12.9999Z",
        "1969-12-31T23:59:59.9999Z",
        "-0001-01-01T00:00Z",
    ),
    *(
        "",
        "yesterday",
        "2026-1-3",
        "2026-01-31T1:2:3Z",
        "2026-01-31T10:11:12+25:00",
        "+2026-01-01",
        "20260131",
    ),
    *("12345-01-01T00:00:00Z", "0000-01-01", "2026-01-31T10:11:12.Z", "2026-01-31T10:11:12+01:00:15.250"),
]


@pytest.mark.parametrize("text", TIMES)
def test_times_that_joda_reads(joda: Any, text: str) -> None:
    """`timestamp.field` of strings: digits are milliseconds before anything else."""
    parser = joda.org.joda.time.format.ISODateTimeFormat.dateTimeParser().withZoneUTC()
    try:
        theirs = int(text) if text.lstrip("-").isdigit() else parser.parseMillis(text)
    except Py4JJavaError:
        with pytest.raises(ValueError, match=r".+"):
            parsed(text)
        return
    assert parsed(text) == theirs
