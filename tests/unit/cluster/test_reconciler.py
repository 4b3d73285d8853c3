"""The thread that brings a connector to its desired state: what it retries, shows, and when it ends."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from icestream.api.errors import Cancelled, FatalError, SourceUnavailable
from icestream.api.manager import Manager
from icestream.api.status import Progress, State
from icestream.cluster import reconciler as module
from icestream.cluster.desired_state import DesiredState
from icestream.cluster.reconciler import Reconciler
from icestream.cluster.restarts import Policy
from icestream.cluster.settings.retry_settings import RetrySettings
from icestream.cluster.stores.connector_store import TargetState
from icestream.jobs.publishing import publisher
from icestream.kafka import clients, topics, transactions
from icestream.resilience.backoff import RetryLimits
from icestream.waits import waiting_for

CONFIG = {"name": "job", "connector.class": "FileStreamSink"}
STARTED = DesiredState(1, CONFIG, TargetState.STARTED)
PAUSED = replace(STARTED, target=TargetState.PAUSED)
STOPPED = replace(STARTED, target=TargetState.STOPPED)
AGAIN = replace(STARTED, run=2)


class ScriptedManager:
    """Does what it is told, turn by turn; the last instruction repeats."""

    def __init__(self, *turns: Callable[[], float]) -> None:
        self._turns = list(turns)
        self.ticks = 0
        self.closed = threading.Event()
        self.cancelled = threading.Event()
        self.progress = Progress(rows=7)

    def tick(self) -> float:
        turn = self._turns[min(self.ticks, len(self._turns) - 1)]
        self.ticks += 1
        return turn()

    def close(self) -> None:
        self.closed.set()

    def cancel(self) -> None:
        self.cancelled.set()

    def allow(self) -> None:
        self.cancelled.clear()


def rest() -> float:
    return 0.01


def raising(error: Exception) -> Callable[[], float]:
    def turn() -> float:
        raise error

    return turn


class Connector:
    """A reconciler over managers that a test brings, one for each start."""

    def __init__(self, *managers: ScriptedManager, **parts: Any) -> None:
        self._managers = iter(managers)
        self.made = 0
        self.reconciler = Reconciler("job", lambda: self._make, **parts)

    def _make(self, name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
        manager = next(self._managers)
        self.made += 1
        return manager

    def want(self, desired: DesiredState | None = STARTED) -> None:
        self.reconciler.set_desired(desired)

    def end(self) -> None:
        self.want(None)
        assert self.reconciler.wait(60)

    @property
    def state(self) -> State:
        return self.reconciler.status().state


@pytest.fixture
def running() -> Iterator[Callable[..., Connector]]:
    made: list[Connector] = []

    def start(*managers: ScriptedManager, **parts: Any) -> Connector:
        made.append(Connector(*managers, **parts))
        made[-1].want()
        return made[-1]

    yield start
    for connector in made:
        connector.end()


Running = Callable[..., Connector]


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_a_connector_that_fails_in_its_first_turn_shows_what_it_did_before(running: Running) -> None:
    connector = running(ScriptedManager(raising(FatalError("the rest is bad"))))
    assert eventually(lambda: connector.state is State.FAILED)
    assert connector.reconciler.status().progress.rows == 7


def test_a_running_connector_shows_its_progress(running: Running) -> None:
    connector = running(ScriptedManager(rest))
    assert eventually(lambda: connector.reconciler.status().progress.rows == 7)
    assert connector.state is State.RUNNING


def test_a_status_is_the_same_object_until_something_changes(running: Running) -> None:
    manager = ScriptedManager(rest)
    connector = running(manager)
    assert eventually(lambda: manager.ticks > 1)
    before, ticks = connector.reconciler.status(), manager.ticks
    assert eventually(lambda: manager.ticks > ticks + 2)
    assert connector.reconciler.status() is before


def test_a_stopped_connector_has_closed_its_manager_and_ticks_no_more(running: Running) -> None:
    manager = ScriptedManager(rest)
    connector = running(manager)
    assert eventually(lambda: manager.ticks > 0)
    connector.want(STOPPED)
    assert connector.reconciler.wait(60)
    assert manager.closed.is_set()
    assert connector.state is State.STOPPED
    ticks = manager.ticks
    time.sleep(0.05)
    assert manager.ticks == ticks
    assert connector.reconciler._thread is None, "one that is stopped needs no thread"


def test_a_manager_that_cannot_close_is_only_told(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    manager = ScriptedManager(rest)
    manager.close = raising(OSError("no space"))  # type: ignore[method-assign, assignment]
    connector = running(manager)
    assert eventually(lambda: manager.ticks > 0)
    connector.end()
    assert "was not closed in order: no space" in caplog.text


def test_a_paused_connector_does_nothing_until_it_is_resumed() -> None:
    manager = ScriptedManager(rest)
    connector = Connector(manager)
    connector.want(PAUSED)
    assert connector.reconciler.wait(60)
    assert (connector.made, connector.state) == (0, State.PAUSED)
    connector.want(STARTED)
    assert eventually(lambda: manager.ticks > 0)
    connector.want(PAUSED)
    assert connector.state is State.PAUSED
    connector.want(STARTED)
    ticks = manager.ticks
    assert eventually(lambda: manager.ticks > ticks)
    assert connector.made == 1, "a pause keeps the manager"
    connector.end()


def test_a_turn_under_way_is_cancelled_by_a_pause_and_goes_on_after_it(running: Running) -> None:
    under_way = threading.Event()

    def batch() -> float:
        under_way.set()
        assert manager.cancelled.wait(60)
        raise Cancelled("the batch was given up")

    manager = ScriptedManager(batch, rest)
    connector = running(manager)
    assert under_way.wait(60)
    connector.want(PAUSED)
    connector.want(STARTED)
    assert eventually(lambda: manager.ticks > 2)
    assert not manager.cancelled.is_set(), "what was cancelled is allowed again"
    assert connector.state is State.RUNNING


def test_a_restart_cancels_closes_and_begins_anew(running: Running) -> None:
    under_way = threading.Event()

    def batch() -> float:
        under_way.set()
        assert first.cancelled.wait(60)
        raise Cancelled("the batch was given up")

    first, second = ScriptedManager(batch), ScriptedManager(rest)
    connector = running(first, second)
    assert under_way.wait(60)
    connector.want(AGAIN)
    assert eventually(lambda: second.ticks > 0)
    assert first.closed.is_set()


def test_an_outage_is_retried_and_shown_as_a_warning(running: Running) -> None:
    manager = ScriptedManager(raising(SourceUnavailable("no broker")))
    connector = running(manager)
    assert eventually(lambda: manager.ticks >= 2)
    status = connector.reconciler.status()
    assert status.state is State.RUNNING
    assert "no broker" in status.progress.warnings
    assert status.waiting is not None


def test_an_outage_that_ends_leaves_no_warning(running: Running) -> None:
    manager = ScriptedManager(raising(SourceUnavailable("no broker")), rest)
    connector = running(manager)
    assert eventually(lambda: manager.ticks >= 3)
    assert eventually(lambda: connector.reconciler.status().progress.warnings == ())


def test_a_fatal_error_fails_the_connector_with_its_trace(running: Running) -> None:
    manager = ScriptedManager(raising(FatalError("the topic was created anew")))
    connector = running(manager)
    assert eventually(lambda: connector.state is State.FAILED)
    assert "the topic was created anew" in (connector.reconciler.status().trace or "")
    assert manager.closed.wait(60)
    assert eventually(lambda: connector.reconciler._thread is None)


def test_a_failed_connector_stays_failed_whatever_is_resumed(running: Running) -> None:
    connector = running(ScriptedManager(raising(FatalError("no"))))
    assert eventually(lambda: connector.state is State.FAILED)
    connector.want(PAUSED)
    connector.want(STARTED)
    assert connector.state is State.FAILED


def test_a_failed_connector_starts_again_by_its_policy() -> None:
    policy = Policy(is_on=True, attempts=1, delay=0.01, longest_delay=0.01)
    bad = [ScriptedManager(raising(FatalError("no"))) for _ in range(2)]
    connector = Connector(*bad)
    connector.want(replace(STARTED, restarts=policy))
    assert eventually(lambda: bad[1].closed.is_set())
    assert connector.state is State.FAILED
    assert (connector.reconciler.status().trace or "").startswith("restart 1 of 1 failed too\n")
    assert connector.made == 2
    connector.end()


def test_a_connector_without_patience_fails_with_the_outage(
    running: Running,
) -> None:
    impatient = RetrySettings(limits=RetryLimits(longest=0.01, seconds=-1.0))
    manager = ScriptedManager(raising(SourceUnavailable("no registry")))
    connector = running(manager, retries=lambda config: impatient)
    assert eventually(lambda: connector.state is State.FAILED)
    assert "no registry" in (connector.reconciler.status().trace or "")
    assert manager.ticks == 2


def test_a_connector_that_sleeps_for_long_can_be_woken(running: Running) -> None:
    manager = ScriptedManager(lambda: 3600.0)
    connector = running(manager)
    assert eventually(lambda: manager.ticks == 1)
    connector.reconciler.wake()
    assert eventually(lambda: manager.ticks == 2)


def test_a_connector_that_sleeps_for_long_pauses_and_goes_on_at_once(running: Running) -> None:
    manager = ScriptedManager(lambda: 3600.0)
    connector = running(manager)
    assert eventually(lambda: manager.ticks == 1)
    connector.want(PAUSED)
    connector.want(STARTED)
    assert eventually(lambda: manager.ticks == 2)


def test_what_a_connector_waits_for_is_shown_since_when(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SHOWN_AFTER", -1.0)
    go_on = threading.Event()

    def stuck() -> float:
        with waiting_for("the catalog"):
            go_on.wait()
        return 0.01

    connector = running(ScriptedManager(stuck))
    assert eventually(lambda: connector.reconciler.status().waiting is not None)
    status = connector.reconciler.status()
    assert status.state is State.RUNNING
    assert status.waiting is not None
    assert str(status.waiting).startswith("waiting for the catalog since 20")
    assert str(status.waiting) in status.progress.warnings
    go_on.set()


def test_a_thread_that_never_returns_is_given_up(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHOWN_AFTER", -1.0)
    monkeypatch.setattr(module, "_GIVEN_UP_AFTER", -1.0)
    go_on = threading.Event()

    def stuck() -> float:
        with waiting_for("the catalog"):
            go_on.wait()
        return 0.0

    lost, second = ScriptedManager(stuck), ScriptedManager(rest)
    connector = running(lost, second)
    assert eventually(lambda: lost.ticks == 1)
    thread = connector.reconciler._thread
    assert thread is not None
    assert eventually(lambda: connector.state is State.FAILED)
    assert "given up: still waiting for the catalog" in (connector.reconciler.status().trace or "")
    connector.want(AGAIN)
    assert eventually(lambda: second.ticks > 0), "nobody waits for a thread that was given up"
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()
    assert lost.closed.is_set()
    assert lost.ticks == 1, "it does nothing more when it wakes"
    assert connector.state is State.RUNNING


def test_a_manager_that_does_not_end_is_left_behind(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_STOP_SECONDS", 0.1)
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.05)
    go_on = threading.Event()

    def stuck() -> float:
        with waiting_for("the catalog"):
            go_on.wait()
        return 0.0

    lost, second = ScriptedManager(stuck), ScriptedManager(rest)
    connector = running(lost, second)
    assert eventually(lambda: lost.ticks == 1)
    connector.want(AGAIN)
    assert connector.state is State.RESTARTING
    assert eventually(lambda: second.ticks > 0)
    assert "did not end within 0 s and is left behind, still waiting for the catalog since 20" in caplog.text
    go_on.set()
    assert lost.closed.wait(60)
    assert lost.ticks == 1
    assert connector.state is State.RUNNING


def test_a_call_to_kafka_ends_before_its_manager_is_left_behind() -> None:
    """When Kafka hangs, the first call that fails ends the turn."""
    limits = {
        "a question": clients.ANSWER_SECONDS + topics._REFRESH_SECONDS,
        "the offsets of a group": topics._STABLE_SECONDS + topics._UNSTABLE_SECONDS,
        "a transaction": publisher._LONGEST_SILENCE,
        "closing": transactions._CLOSE_SECONDS,
    }
    assert {name for name, seconds in limits.items() if seconds >= module._STOP_SECONDS} == set()


def test_an_outage_before_a_pause_does_not_count_after_it(
    running: Running,
) -> None:
    patient = RetrySettings(limits=RetryLimits(longest=0.01, seconds=100.0))
    # Time stands still but for what the test says, and for the pauses of a hundredth of a second.
    now, began = [0.0], time.monotonic()
    manager = ScriptedManager(raising(SourceUnavailable("nobody")))
    connector = running(
        manager, clock=lambda: now[0] + time.monotonic() - began, retries=lambda config: patient
    )
    assert eventually(lambda: manager.ticks > 2)
    connector.want(PAUSED)
    now[0] = 1000.0
    ticks = manager.ticks
    connector.want(STARTED)
    assert eventually(lambda: manager.ticks > ticks + 3)
    assert connector.state is State.RUNNING
    now[0] = 2000.0
    assert eventually(lambda: connector.state is State.FAILED)


def test_a_status_tells_no_secret(running: Running) -> None:
    def resolve(config: Mapping[str, str]) -> dict[str, str]:
        return {**config, "name": config["name"], "password": "hunter2hunter2"}

    manager = ScriptedManager(raising(FatalError("hunter2hunter2 is wrong")))
    manager.progress = Progress(warnings=("hunter2hunter2 is old",))
    connector = Connector(manager, resolve=resolve)
    connector.want(replace(STARTED, config={**CONFIG, "password": "${env:PW}"}))
    assert eventually(lambda: connector.state is State.FAILED)
    status = connector.reconciler.status()
    assert "${env:PW} is wrong" in (status.trace or "")
    assert status.progress.warnings == ("${env:PW} is old",)
    connector.end()


class OneAtATime(ScriptedManager):
    """A manager with random turns that counts how many of its kind are open."""

    open: ClassVar[set[OneAtATime]] = set()
    most: ClassVar[int] = 0

    def __init__(self, chance: random.Random) -> None:
        super().__init__(self._any_turn)
        self._chance = chance
        self.open.add(self)
        OneAtATime.most = max(self.most, len(self.open))

    def _any_turn(self) -> float:
        kind = self._chance.random()
        if kind < 0.3 and self.cancelled.wait(self._chance.random() / 100):
            raise Cancelled("the batch was given up")
        if kind > 0.9:
            raise SourceUnavailable("away") if kind > 0.95 else FatalError("no")
        return self._chance.choice([0.0, 0.001, 10.0])

    def close(self) -> None:
        super().close()
        self.open.discard(self)


def test_whatever_is_desired_in_whatever_order_there_is_one_manager_at_a_time() -> None:
    seed = 20261116
    chance, own = random.Random(seed), random.Random(seed + 1)
    reconciler = Reconciler("job", lambda: lambda name, config, wake: OneAtATime(own))
    policy = Policy(is_on=True, attempts=1_000, delay=0.001, longest_delay=0.001)
    desired = replace(STARTED, restarts=policy)
    for _ in range(300):
        target = chance.choice([TargetState.STARTED, *TargetState])
        desired = replace(desired, target=target, run=desired.run + chance.choice([0, 0, 1]))
        reconciler.set_desired(chance.choice([desired, desired, desired, None]))
        reconciler.status()
        time.sleep(chance.random() / 200)
    reconciler.set_desired(replace(desired, target=TargetState.STARTED, run=desired.run + 1))
    assert reconciler.wait(60)
    reconciler.set_desired(None)
    assert reconciler.wait(60), seed
    assert (OneAtATime.most, OneAtATime.open) == (1, set()), seed
    assert eventually(lambda: reconciler._thread is None)
