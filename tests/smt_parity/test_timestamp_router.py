"""TimestampRouter beside the real class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.transforms.timestamp_router import TimestampRouter
from tests.smt_parity.given import Given, Json
from tests.smt_parity.harness import Parity, Smt, generated

TOPICS = [
    *("${topic}-${timestamp}", "${timestamp}", "x", "${topic}${topic}"),
    *("$topic ${timestamp}${topic}", "", "$1\\"),
]
PATTERNS = ["yyyyMMdd", "yyyy-MM-dd'T'HH", "'${topic}'yyyy", "yyyy.MM", "$", ""]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_routes(parity: Parity, topic: str, pattern: str) -> None:
    times = [0, -1, 1_763_222_400_123, 1_763_222_400_124, 1_763_308_800_000, 253_402_300_800_000]
    given = Given(Json([{"a": at} for at in range(len(times))]), timestamps=times, topic="some$1.topic")
    parity.check([Smt(TimestampRouter, {"topic.format": topic, "timestamp.format": pattern}, None)], given)


def test_records_without_a_timestamp(parity: Parity) -> None:
    given = Given(Json([1, {}, None]), timestamps=[None, 5, None])
    parity.check([Smt(TimestampRouter, {}, None)], given, reasons=False)


@generated(examples=40)
@given(
    topic=st.sampled_from(TOPICS),
    pattern=st.sampled_from(PATTERNS),
    times=st.lists(st.integers(-(2**45), 2**48), min_size=1, max_size=30),
)
def test_any_time(parity: Parity, topic: str, pattern: str, times: list[int]) -> None:
    given = Given(Json([1] * len(times)), timestamps=times)
    parity.check([Smt(TimestampRouter, {"topic.format": topic, "timestamp.format": pattern}, None)], given)
