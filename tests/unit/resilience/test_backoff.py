"""How long to wait before the next attempt."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.resilience.backoff import Backoff, RetryLimits, exponential


def backoff(limits: RetryLimits, now: list[float] | None = None, chance: float = 0.0) -> Backoff:
    clock = now or [0.0]
    return Backoff(limits, lambda: clock[0], lambda: chance)


def test_a_wait_doubles_up_to_its_limit() -> None:
    tried = backoff(RetryLimits(first=1.0, longest=4.0))
    assert [tried.failed() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    tried.succeeded()
    assert tried.failed() == 1.0


@given(
    failures=st.integers(0, 10_000),
    chance=st.floats(0, 1),
    first=st.floats(0.001, 10),
    longest=st.floats(0.001, 100),
)
def test_jitter_shortens_a_wait_by_half_at_most(
    failures: int, chance: float, first: float, longest: float
) -> None:
    whole = exponential(first, longest, failures)
    assert whole <= longest
    wait = backoff(RetryLimits(first=first, longest=longest), chance=chance).failed()
    assert wait is not None
    assert min(first, longest) / 2 <= wait <= min(first, longest)


def test_what_is_no_outage_of_the_destination_is_given_up_after_its_time() -> None:
    now = [0.0]
    tried = backoff(RetryLimits(seconds=100.0), now)
    assert tried.failed() is not None
    now[0] = 101.0
    assert tried.failed() is None
    tried.succeeded()
    assert tried.failed() is not None


def test_an_outage_of_the_destination_is_waited_for_without_end() -> None:
    now = [0.0]
    tried = backoff(RetryLimits(seconds=100.0, longest=2.0), now, chance=0.5)
    waits = []
    for _ in range(3_000):
        waits.append(tried.failed(is_outage=True))
        now[0] += 100.0
    assert waits[0] == pytest.approx(0.15)
    assert waits[-1] == pytest.approx(1.5)


def test_after_so_many_retries_it_is_enough() -> None:
    tried = backoff(RetryLimits(most=2))
    assert tried.failed(is_outage=True) is not None
    assert tried.failed(is_outage=False) is not None  # Kafka's, which is not counted
    assert tried.failed(is_outage=True) is not None
    assert tried.failed(is_outage=True) is None
    tried.succeeded()
    assert tried.failed(is_outage=True) is not None


def test_no_retry_at_all() -> None:
    assert backoff(RetryLimits(most=0)).failed(is_outage=True) is None


def test_without_limits_nothing_is_given_up() -> None:
    now = [0.0]
    tried = backoff(RetryLimits(seconds=math.inf), now)
    tried.failed()
    now[0] = 1e12
    assert tried.failed() is not None
