"""A JVM that does not answer holds up one scrape for a moment, and no second one."""

from __future__ import annotations

import threading

from icestream.api.engine import EngineNumbers
from icestream.pipeline.engine_numbers import EngineWatch


def test_numbers_are_asked_for_now_and_then() -> None:
    asked: list[float] = []
    now = [0.0]

    def ask() -> EngineNumbers:
        asked.append(now[0])
        return EngineNumbers(True, {"active": len(asked)})

    watch = EngineWatch(ask, lambda: now[0])
    for seconds in (0.0, 1.0, 4.9, 6.0):
        now[0] = seconds
        assert watch.numbers() is not None
    assert asked == [0.0, 6.0]


def test_who_does_not_answer_is_asked_once() -> None:
    answers, asked = threading.Event(), []

    def ask() -> EngineNumbers:
        asked.append(1)
        answers.wait(60)
        return EngineNumbers(True)

    watch = EngineWatch(ask, lambda: 0.0)
    assert watch.numbers() is None
    assert watch.numbers() is None
    assert len(asked) == 1
    answers.set()
    found = None
    while found is None:
        found = watch.numbers()
    assert found == EngineNumbers(True)


def test_an_error_is_no_answer() -> None:
    def ask() -> EngineNumbers:
        raise ConnectionError("the JVM has ended")

    watch = EngineWatch(ask)
    assert watch.numbers() is None
    assert watch.numbers() is None
