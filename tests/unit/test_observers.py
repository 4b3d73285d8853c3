"""Several observers, each told aside: one that raises or hangs harms nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TypeAlias

import pytest

from icestream.api.history import BatchRecord, Event, Outcome
from icestream.observers import Observers

_PATIENCE = 60.0
Observing: TypeAlias = Callable[..., Observers]


class Keeps:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def batch(self, connector: str, record: BatchRecord) -> None:
        self.heard.append(f"{connector} {record.id} {record.note}".strip())

    def event(self, connector: str, event: Event) -> None:
        self.heard.append(f"{connector} {event.text}")

    def forget(self, connector: str) -> None:
        self.heard.append(f"{connector} gone")


class Raises(Keeps):
    def batch(self, connector: str, record: BatchRecord) -> None:
        raise ValueError("no room")


class Hangs(Keeps):
    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def batch(self, connector: str, record: BatchRecord) -> None:
        self.may_go_on.wait(_PATIENCE)


def record(number: int, note: str = "") -> BatchRecord:
    return BatchRecord(f"b{number}", 0, Outcome.COMMITTED, note=note)


@pytest.fixture
def observing() -> Iterator[Observing]:
    with ExitStack() as made:
        yield lambda *given, **named: made.enter_context(closing(Observers(*given, **named)))


def test_all_hear_everything_in_order(observing: Observing) -> None:
    first, second = Keeps(), Keeps()
    observers = observing(first)
    observers.add(second)
    observers.batch("a", record(1))
    observers.event("a", Event(0, "state", "RUNNING"))
    observers.forget("a")
    assert observers.settle(_PATIENCE)
    assert first.heard == second.heard == ["a b1", "a RUNNING", "a gone"]


def test_one_that_raises_or_hangs_harms_neither_the_job_nor_the_others(observing: Observing) -> None:
    hangs, raises, keeps = Hangs(), Raises(), Keeps()
    observers = observing(hangs, raises)
    observers.add(keeps)
    bell = threading.Event()
    for number in range(20_000):
        observers.batch("a", record(number))
    keeps.event = lambda connector, event: bell.set()  # type: ignore[method-assign]
    observers.event("a", Event(0, "state", "RUNNING"))
    assert not observers.settle(0.0)
    hangs.may_go_on.set()
    assert observers.settle(_PATIENCE)
    assert keeps.heard[:2] == ["a b0", "a b1"]


def test_what_is_lost_by_one_that_is_too_slow_is_said_once(
    observing: Observing, caplog: pytest.LogCaptureFixture
) -> None:
    hangs = Hangs()
    observers = observing(hangs)
    for number in range(10_100):
        observers.batch("a", record(number))
    hangs.may_go_on.set()
    assert observers.settle(_PATIENCE)
    assert [one.getMessage() for one in caplog.records] == [
        "Hangs is 10000 calls behind and loses what comes next"
    ]


def test_secrets_are_taken_out_of_what_is_said(observing: Observing) -> None:
    keeps = Keeps()
    observers = observing(keeps, discreet=lambda text: text.replace("s3cret", "[hidden]"))
    observers.batch("a", record(1, "refused with s3cret"))
    observers.event("a", Event(0, "retry", "s3cret is wrong"))
    assert observers.settle(_PATIENCE)
    assert keeps.heard == ["a b1 refused with [hidden]", "a [hidden] is wrong"]


def test_whoever_tells_goes_on_if_nobody_can_be_told(
    observing: Observing, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeps = Keeps()

    def broken(text: str) -> str:
        raise RecursionError(text)

    observers = observing(keeps, discreet=broken)
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    observers.batch("a", record(1))
    observers.event("a", Event(0, "state", "s3cret"))
    observers.forget("a")
    monkeypatch.setattr(threading.Thread, "start", start)
    observers.batch("a", record(2, "s3cret"))
    assert observers.settle(_PATIENCE), "the thread starts when it can"
    assert keeps.heard[-1] == "a b2"
    assert "s3cret" not in "".join(keeps.heard)


def test_one_that_is_closed_has_heard_what_was_told_before_and_has_no_thread(observing: Observing) -> None:
    keeps = Keeps()
    observers = observing(keeps)
    observers.forget("a")
    observers.close()
    (thread,) = [it for it in threading.enumerate() if it.name == "observer-Keeps"]
    thread.join(_PATIENCE)
    assert not thread.is_alive()
    observers.forget("b")
    assert keeps.heard == ["a gone"]


def test_one_that_is_closed_starts_no_thread(observing: Observing) -> None:
    observers = observing(Keeps())
    observers.close()
    observers.forget("a")
    assert "observer-Keeps" not in [it.name for it in threading.enumerate()]
