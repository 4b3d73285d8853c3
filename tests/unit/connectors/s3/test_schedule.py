"""Rotation by the clock."""

from __future__ import annotations

import datetime as dt

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.s3.plugin import S3SinkPlugin
from icestream.connectors.s3.schedule import next_rotation
from icestream.connectors.s3.zones import zone_setting

HOUR = 3_600_000
CONFIG = {
    "s3.bucket.name": "lake",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "1000",
}


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("since", "interval", "zone", "expected"),
    [
        ("2026-11-16T10:20:00+00:00", HOUR, "UTC", "2026-11-16T11:00:00+00:00"),
        ("2026-11-16T11:00:00+00:00", HOUR, "UTC", "2026-11-16T12:00:00+00:00"),
        # Multiples since midnight, and midnight in any case.
        ("2026-11-16T20:00:00+00:00", 7 * HOUR, "UTC", "2026-11-16T21:00:00+00:00"),
        ("2026-11-16T22:00:00+00:00", 7 * HOUR, "UTC", "2026-11-17T00:00:00+00:00"),
        ("2026-11-16T22:00:00+00:00", 7 * HOUR, "+02:00", "2026-11-17T05:00:00+00:00"),
        # A day of 23 hours, and one of 25.
        ("2026-03-29T20:00:00+00:00", 24 * HOUR, "Europe/Berlin", "2026-03-29T22:00:00+00:00"),
        ("2026-10-25T20:00:00+00:00", 24 * HOUR, "Europe/Berlin", "2026-10-25T22:00:00+00:00"),
    ],
)
def test_objects_are_complete_at_multiples_since_midnight(
    since: str, interval: int, zone: str, expected: str
) -> None:
    assert next_rotation(moment(since), interval, zone_setting(zone).tzinfo) == moment(expected)


def test_a_zone_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigError, match="no time zone"):
        zone_setting("../../etc/passwd")


def test_the_keys_of_the_clock_say_when_what_waits_is_written() -> None:
    since = moment("2026-11-16T10:20:00+00:00")

    def flush_at(**more: str) -> dt.datetime | None:
        filling = S3SinkPlugin().options({**CONFIG, **more}).filling
        assert filling is not None
        assert (filling.rows, filling.key) == (1000, "flush.size")
        return filling.flush_at(since) if filling.flush_at else None

    assert flush_at() is None
    by_schedule = {"rotate.schedule.interval.ms": str(HOUR), "timezone": "UTC"}
    assert flush_at(**by_schedule) == moment("2026-11-16T11:00:00+00:00")
    ours = {"icestream.s3.commit.interval.ms": "60000"}
    assert flush_at(**ours) == moment("2026-11-16T10:21:00+00:00")
    assert flush_at(**by_schedule, **ours) == moment("2026-11-16T10:21:00+00:00")


def test_records_are_looked_at_only_where_their_times_complete_objects() -> None:
    def look(**more: str) -> float | None:
        filling = S3SinkPlugin().options({**CONFIG, **more}).filling
        assert filling is not None
        return filling.look_seconds

    by_time = {"partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner"}
    assert look() is None
    assert look(**{"rotate.interval.ms": "5000"}) is None
    assert look(**by_time) is None
    assert look(**by_time, **{"rotate.interval.ms": "5000"}) == 5
    assert look(**by_time, **{"rotate.interval.ms": "1"}) == 1
