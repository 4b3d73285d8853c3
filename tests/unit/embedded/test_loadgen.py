"""The pace of a load, with a clock of our own."""

import pytest

from icestream.embedded.loadgen import LoadReport, Pacer


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_the_pacer_keeps_the_rate() -> None:
    clock = Clock()
    pacer = Pacer(500, clock, clock.sleep)
    for sent in range(25, 1001, 25):
        clock.now += 0.001
        pacer.wait(sent)
    assert pacer.seconds() == pytest.approx(2.0)


def test_a_pacer_that_is_late_does_not_sleep() -> None:
    clock = Clock()
    pacer = Pacer(500, clock, clock.sleep)
    clock.now += 60
    pacer.wait(100)
    assert pacer.seconds() == 60


def test_slow_rates_go_in_small_chunks() -> None:
    assert Pacer(2).chunk == 1
    assert Pacer(1000).chunk == 50
    assert Pacer(None).chunk == 2000


def test_the_report_knows_its_rate() -> None:
    assert LoadReport(sent=100, bad=1, seconds=2.0).rate == 50
