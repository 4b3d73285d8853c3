"""TimestampRouter: topics by time."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.transforms.groups import Side
from icestream.transforms.timestamp_router import TimestampRouter
from tests.unit.transforms.groups import maps

DAY = 86_400_000


def router(topic: str = "${topic}-${timestamp}", pattern: str = "yyyyMMdd") -> TimestampRouter:
    return TimestampRouter.configured({"topic.format": topic, "timestamp.format": pattern}, Side.VALUE)


def test_records_part_by_topic() -> None:
    times = pa.array([0, DAY, 5, None], pa.int64())
    applied = router().apply(replace(maps({}, {}, {}, {}), timestamps=times))
    topics = {int(row): records.topic for records in applied.records for row in records.rows}
    assert topics == {0: "orders-19700101", 1: "orders-19700102", 2: "orders-19700101"}
    assert applied.failed[3].reason.startswith("Timestamp missing on record: ")


def test_a_topic_of_the_time_alone() -> None:
    (records,) = router("${timestamp}", "yyyy").apply(maps({}, {})).records
    assert (records.topic, len(records)) == ("1970", 2)


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="Illegal pattern character 'e'"):
        router(pattern="e")
