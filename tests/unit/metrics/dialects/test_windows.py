"""Rates, averages and extremes as Kafka's clients have them, with a clock of the tests."""

from __future__ import annotations

import math

from icestream.metrics.dialects.windows import Share, StateShares, Window, WindowSize, window_size

T0 = 1_700_000_000_000


def test_a_rate_right_after_the_start_is_over_one_sample_at_least() -> None:
    window = Window()
    window.record(60, T0)

    assert window.rate(T0) == 60 / 30
    assert window.rate(T0 + 10_000) == 60 / 40
    assert window.rate(T0 + 45_000) == 60 / 45


def test_a_rate_is_over_the_samples_that_are_left() -> None:
    window = Window()
    window.record(300, T0)
    window.record(60, T0 + 30_000)
    window.record(60, T0 + 60_000)

    assert window.rate(T0 + 60_000) == 120 / 30
    assert window.rate(T0 + 200_000) == 0


def test_without_a_value_in_the_window_averages_and_extremes_are_no_numbers_and_rates_are_zero() -> None:
    window = Window()
    assert all(map(math.isnan, [window.average(T0), window.largest(T0), window.smallest(T0)]))
    assert window.rate(T0) == 0
    window.record(5, T0)
    window.record(9, T0 + 1)

    assert (window.average(T0 + 59_000), window.largest(T0 + 59_000), window.smallest(T0)) == (7, 9, 5)
    assert math.isnan(window.average(T0 + 60_001))
    assert math.isnan(window.largest(T0 + 60_001))


def test_old_samples_make_room() -> None:
    window = Window(WindowSize(samples=3, sample_ms=1000))
    for number in range(10):
        window.record(number, T0 + number * 1000)

    assert window.largest(T0 + 9000) == 9
    assert window.smallest(T0 + 9000) == 7


def test_shares_are_fractions_and_zero_if_nothing_happened() -> None:
    share = Share()
    assert (share.success(T0), share.failure(T0)) == (0, 0)
    for is_success in (True, True, True, False):
        share.record(is_success=is_success, now_ms=T0)

    assert (share.success(T0), share.failure(T0)) == (0.75, 0.25)


def test_the_time_in_each_state_is_a_share_of_all_time() -> None:
    states = StateShares()
    states.enter("RUNNING", T0)
    assert states.share("RUNNING", T0) == 1
    states.enter("PAUSED", T0 + 3000)

    assert states.share("RUNNING", T0 + 4000) == 0.75
    assert states.share("PAUSED", T0 + 4000) == 0.25


def test_the_size_of_the_window_is_that_of_the_worker_config() -> None:
    given = {"metrics.num.samples": "4", "metrics.sample.window.ms": "5000"}

    assert window_size(given) == WindowSize(4, 5000)
    assert window_size({"metrics.num.samples": "none"}) == window_size({}) == WindowSize(2, 30_000)
