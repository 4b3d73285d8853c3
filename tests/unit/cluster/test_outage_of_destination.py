"""Connectors whose destination is away: the circuit breaker that they share, what their status says of it,
and when they give up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from icestream.api.config import Config
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    EngineUnavailable,
    OriginUnavailable,
    RetriableError,
    SinkRefused,
    SinkUnavailable,
    SourceUnavailable,
)
from icestream.api.manager import Manager
from icestream.api.status import Progress, State
from icestream.cluster.desired_state import DesiredState
from icestream.cluster.reconciler import Reconciler
from icestream.cluster.settings.retry_settings import RetrySettings
from icestream.cluster.stores.connector_store import TargetState
from icestream.resilience.backoff import RetryLimits
from icestream.resilience.breaker import CircuitLimits, Circuits

QUICK = RetrySettings(
    "s3://lake", RetryLimits(first=0.001, longest=0.002), CircuitLimits(failures=3, open_seconds=0.2)
)
LONG = replace(QUICK, circuit=CircuitLimits(failures=3, open_seconds=3600.0))
CONFIG = {"connector.class": "FileStreamSink"}


class Destination:
    """What all connectors of a test write to; counts who asks at the same time."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked: list[str] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def ask(self, who: str) -> None:
        with self._lock:
            self.asked.append(who)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        time.sleep(0.002)
        with self._lock:
            self._now -= 1
        if self.error is not None:
            raise self.error


class Job:
    """A manager that asks the destination in each turn, unless it has no records."""

    def __init__(self, name: str, destination: Destination) -> None:
        self.name = name
        self.destination = destination
        self.progress = Progress()
        self.is_idle = False
        self.idle_turns = 0
        self.closed = threading.Event()

    def tick(self) -> float:
        if self.is_idle:
            self.idle_turns += 1
        else:
            self.destination.ask(self.name)
            self.progress = replace(self.progress, batches=self.progress.batches + 1)
        return 0.001

    def close(self) -> None:
        self.closed.set()

    def cancel(self) -> None: ...

    def allow(self) -> None: ...


class World:
    def __init__(self) -> None:
        self.circuits = Circuits()
        self.destination = Destination()
        self.jobs: dict[str, Job] = {}
        self.reconcilers: dict[str, Reconciler] = {}

    def start(self, name: str, settings: RetrySettings = QUICK) -> Reconciler:
        def make(name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
            return self.jobs.setdefault(name, Job(name, self.destination))

        def retries(config: Config) -> RetrySettings:
            return settings

        reconciler = Reconciler(name, lambda: make, circuits=self.circuits, retries=retries)
        self.reconcilers[name] = reconciler
        reconciler.set_desired(DesiredState(1, {**CONFIG, "name": name}, TargetState.STARTED))
        return reconciler

    def want(self, name: str, target: TargetState) -> None:
        self.reconcilers[name].set_desired(DesiredState(1, {**CONFIG, "name": name}, target))


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for reconciler in made.reconcilers.values():
        reconciler.set_desired(None)
    for reconciler in made.reconcilers.values():
        assert reconciler.wait(60)


def eventually(holds: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def circuit_of(reconciler: Reconciler) -> Mapping[str, Any]:
    return reconciler.status().progress.circuit or {}


def test_a_status_says_why_and_until_when_and_nobody_is_asked_meanwhile(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.destination.error = SinkUnavailable("the store answers 503")
    one = world.start("one", LONG)
    assert eventually(lambda: circuit_of(one).get("state") == "open")
    asked = len(world.destination.asked)
    assert asked == 3
    assert eventually(lambda: "Circuit breaker" in " ".join(one.status().progress.warnings))
    status = one.status()
    assert status.state is State.RUNNING
    said = status.trace or ""
    assert said.startswith("Circuit breaker of s3://lake is open until 20")
    assert said.endswith("after 3 failures: the store answers 503")
    assert status.waiting is not None
    assert "Circuit breaker of s3://lake is open" in caplog.text
    # Another one that comes meanwhile is shown as held, and asks nothing. Its manager is not even made.
    two = world.start("two", LONG)
    assert two.wait(60)
    assert (two.status().trace or "").startswith("Circuit breaker of s3://lake is open until")
    for _ in range(20):
        one.wake()
        two.wake()
        time.sleep(0.005)
    assert len(world.destination.asked) == asked
    assert "two" not in world.jobs


def test_one_of_many_asks_whether_it_is_back_and_then_all_go_on(world: World) -> None:
    names = [f"c{n}" for n in range(8)]
    for name in names:
        world.start(name)
    assert eventually(
        lambda: len(world.jobs) == 8 and all(job.progress.batches for job in world.jobs.values())
    )
    world.destination.error = SinkUnavailable("503")
    assert eventually(lambda: circuit_of(world.reconcilers["c0"]).get("state") == "open")
    time.sleep(0.05)  # those that were under way have ended
    world.destination.most_at_once = 0
    before = len(world.destination.asked)
    assert eventually(lambda: len(world.destination.asked) >= before + 4)
    assert world.destination.most_at_once == 1
    batches = {name: job.progress.batches for name, job in world.jobs.items()}
    world.destination.error = None
    assert eventually(lambda: all(world.jobs[name].progress.batches > batches[name] for name in names))
    for name in names:
        assert eventually(lambda name=name: world.reconcilers[name].status().trace is None)  # type: ignore[misc]
        assert world.reconcilers[name].status().progress.circuit == {
            **circuit_of(world.reconcilers[name]),
            "state": "closed",
            "until": None,
        }


def test_a_turn_that_did_not_ask_the_destination_closes_nothing(world: World) -> None:
    world.start("idle", LONG)
    assert eventually(lambda: world.jobs.get("idle") and world.jobs["idle"].progress.batches)
    world.jobs["idle"].is_idle = True
    # The turn under way still asks.
    assert eventually(lambda: world.jobs["idle"].idle_turns)
    world.destination.error = SinkUnavailable("503")
    bad = world.start("bad", LONG)
    assert eventually(lambda: circuit_of(bad).get("state") == "open")
    assert world.destination.asked.count("bad") == 3


@pytest.mark.parametrize(
    "error", [SinkUnavailable("503"), CommitUnknown("no answer"), OriginUnavailable("the database is away")]
)
def test_an_outage_of_the_destination_opens_it(world: World, error: RetriableError) -> None:
    world.destination.error = error
    one = world.start("one", LONG)
    assert eventually(lambda: circuit_of(one).get("state") == "open")


@pytest.mark.parametrize(
    "error",
    [
        SourceUnavailable("no broker"),
        EngineUnavailable("no Spark"),
        SinkRefused("403"),
        CommitConflict("somebody else committed"),
    ],
)
def test_what_is_not_its_fault_does_not_open_it(world: World, error: RetriableError) -> None:
    world.destination.error = error
    one = world.start("one", LONG)
    assert eventually(lambda: len(world.destination.asked) > 10)
    assert circuit_of(one)["state"] == "closed"


def test_a_connector_fails_after_so_many_retries_if_its_config_says_so(world: World) -> None:
    world.destination.error = SinkUnavailable("503")
    limited = replace(QUICK, limits=replace(QUICK.limits, most=4))
    one = world.start("one", limited)
    assert eventually(lambda: one.status().state is State.FAILED)
    assert len(world.destination.asked) == 5
    assert "503" in (one.status().trace or "")


def test_what_is_refused_is_not_retried_for_ever(world: World) -> None:
    world.destination.error = SinkRefused("the catalog answers HTTP 403")
    impatient = replace(QUICK, limits=replace(QUICK.limits, seconds=0.05))
    one = world.start("one", impatient)
    assert eventually(lambda: one.status().state is State.FAILED)
    assert "HTTP 403" in (one.status().trace or "")


def test_who_is_resumed_tries_at_once(world: World) -> None:
    world.destination.error = SinkUnavailable("503")
    one = world.start("one", LONG)
    assert eventually(lambda: circuit_of(one).get("state") == "open")
    world.want("one", TargetState.PAUSED)
    assert eventually(lambda: one.status().state is State.PAUSED)
    world.destination.error = None
    world.want("one", TargetState.STARTED)
    assert eventually(lambda: world.jobs["one"].progress.batches > 0)
    assert eventually(lambda: one.status().trace is None)


def test_a_stop_does_not_wait_for_the_breaker(world: World) -> None:
    world.destination.error = SinkUnavailable("503")
    one = world.start("one", LONG)
    assert eventually(lambda: circuit_of(one).get("state") == "open")
    world.want("one", TargetState.STOPPED)
    assert one.wait(60)
    assert one.status().state is State.STOPPED
