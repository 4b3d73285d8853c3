"""The loop around a manager: what it shows, what it retries, when it ends."""

import math
import threading
import time
from collections.abc import Callable

import pytest

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.status import Progress, State
from icestream.jobs import job_thread
from icestream.jobs.job_thread import Bell, JobThread
from icestream.retry import Backoff, Patience
from icestream.waits import waiting_for


class ScriptedManager:
    """Does what it is told, turn by turn; the last instruction repeats."""

    def __init__(self, *turns: Callable[[], float]) -> None:
        self._turns = list(turns)
        self.ticks = 0
        self.closed = threading.Event()
        self.progress = Progress(rows=7)

    def tick(self) -> float:
        turn = self._turns[min(self.ticks, len(self._turns) - 1)]
        self.ticks += 1
        return turn()

    def close(self) -> None:
        self.closed.set()


def rest() -> float:
    return 0.01


def raising(error: Exception) -> Callable[[], float]:
    def turn() -> float:
        raise error

    return turn


def started(manager: ScriptedManager, *, paused: bool = False) -> JobThread:
    return JobThread("job", lambda: manager, lambda: None, lambda: None, paused=paused)


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_a_job_that_fails_in_its_first_turn_shows_what_it_did_before() -> None:
    job = started(ScriptedManager(raising(FatalError("the rest is bad"))))
    assert eventually(lambda: job.status().state is State.FAILED)
    assert job.status().progress.rows == 7


def test_a_running_job_shows_its_progress() -> None:
    job = started(ScriptedManager(rest))
    assert eventually(lambda: job.status().progress.rows == 7)
    assert job.status().state is State.RUNNING
    job.stop()


def test_a_stopped_job_has_closed_its_manager_and_ticks_no_more() -> None:
    manager = ScriptedManager(rest)
    job = started(manager)
    assert eventually(lambda: manager.ticks > 0)
    job.stop()
    assert manager.closed.is_set()
    ticks = manager.ticks
    time.sleep(0.05)
    assert manager.ticks == ticks


def test_a_manager_that_cannot_close_is_only_told(caplog: pytest.LogCaptureFixture) -> None:
    manager = ScriptedManager(rest)
    manager.close = raising(OSError("no space"))  # type: ignore[method-assign, assignment]
    job = started(manager)
    assert eventually(lambda: manager.ticks > 0)
    job.stop()
    assert "job was not closed in order: no space" in caplog.text


def test_a_paused_job_does_nothing_until_it_is_resumed() -> None:
    manager = ScriptedManager(rest)
    job = started(manager, paused=True)
    time.sleep(0.05)
    assert (manager.ticks, job.status().state) == (0, State.PAUSED)
    job.resume()
    assert eventually(lambda: manager.ticks > 0)
    job.pause()
    assert job.status().state is State.PAUSED
    job.stop()


def test_an_outage_is_retried_and_shown_as_a_warning() -> None:
    manager = ScriptedManager(
        raising(SourceUnavailable("no broker")), raising(SourceUnavailable("no broker"))
    )
    job = started(manager)
    assert eventually(lambda: manager.ticks >= 2)
    assert job.status().state is State.RUNNING
    assert "no broker" in job.status().progress.warnings
    job.stop()


def test_an_outage_that_ends_leaves_no_warning() -> None:
    manager = ScriptedManager(raising(SourceUnavailable("no broker")), rest)
    job = started(manager)
    assert eventually(lambda: manager.ticks >= 3)
    assert eventually(lambda: job.status().progress.warnings == ())
    job.stop()


def test_a_fatal_error_fails_the_job_with_its_trace() -> None:
    manager = ScriptedManager(raising(FatalError("the topic was created anew")))
    job = started(manager)
    assert eventually(lambda: job.status().state is State.FAILED)
    assert "the topic was created anew" in (job.status().trace or "")
    assert manager.closed.wait(60)
    job.stop()


def test_a_failed_job_stays_failed_whatever_is_resumed() -> None:
    job = started(ScriptedManager(raising(FatalError("no"))))
    assert eventually(lambda: job.status().state is State.FAILED)
    job.pause()
    job.resume()
    assert job.status().state is State.FAILED


def test_backoff_doubles_up_to_its_limit_and_gives_up_after_its_patience() -> None:
    now = [0.0]
    backoff = Backoff(patience=Patience(100.0, 4.0), clock=lambda: now[0], first=1.0, jitter=lambda: 0.0)
    assert [backoff.failed() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    now[0] = 101.0
    assert backoff.failed() is None
    backoff.succeeded()
    assert backoff.failed() == 1.0


def test_an_outage_may_be_waited_for_without_end() -> None:
    backoff = Backoff(patience=Patience(math.inf, 2.0), clock=lambda: 0.0, jitter=lambda: 0.5)
    delays = [backoff.failed() for _ in range(3_000)]
    assert delays[0] == pytest.approx(0.175)
    assert delays[-1] == pytest.approx(1.75)


def test_a_job_without_patience_fails_with_the_outage() -> None:
    manager = ScriptedManager(raising(SourceUnavailable("no registry")))
    patience = Patience(-1.0, 0.01)
    job = JobThread("job", lambda: manager, lambda: None, lambda: None, paused=False, patience=patience)
    assert eventually(lambda: job.status().state is State.FAILED)
    assert "no registry" in (job.status().trace or "")
    assert manager.ticks == 2
    job.stop()


def test_a_bell_wakes_a_job_that_sleeps_for_long() -> None:
    manager, bell = ScriptedManager(lambda: 3600.0), Bell()
    job = JobThread("job", lambda: manager, lambda: None, lambda: None, paused=False, bell=bell)
    assert eventually(lambda: manager.ticks == 1)
    bell.ring()
    assert eventually(lambda: manager.ticks == 2)
    job.stop()


def test_a_job_that_sleeps_for_long_pauses_and_goes_on_at_once() -> None:
    manager = ScriptedManager(lambda: 3600.0)
    job = started(manager)
    assert eventually(lambda: manager.ticks == 1)
    job.pause()
    job.resume()
    assert eventually(lambda: manager.ticks == 2)
    job.stop()


def test_what_a_job_waits_for_is_shown_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_thread, "_SHOWN_AFTER", -1.0)
    go_on = threading.Event()

    def stuck() -> float:
        with waiting_for("the catalog"):
            go_on.wait()
        return 0.01

    job = started(ScriptedManager(stuck))
    assert eventually(lambda: job.status().waiting is not None)
    status = job.status()
    assert status.state is State.RUNNING
    assert status.waiting is not None
    assert str(status.waiting).startswith("waiting for the catalog since 20")
    assert str(status.waiting) in status.progress.warnings
    go_on.set()
    job.stop()


def test_a_thread_that_never_returns_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_thread, "_SHOWN_AFTER", -1.0)
    monkeypatch.setattr(job_thread, "_GIVEN_UP_AFTER", -1.0)
    go_on, calls = threading.Event(), []

    def stuck() -> float:
        calls.append(1)
        with waiting_for("the catalog"):
            go_on.wait()
        return 0.0

    job = started(ScriptedManager(stuck))
    assert eventually(lambda: job.status().state is State.FAILED)
    assert "given up: still waiting for the catalog" in (job.status().trace or "")
    before = time.monotonic()
    job.stop()
    assert time.monotonic() - before < 15, "nobody waits for a thread that was given up"
    go_on.set()
    job._thread.join(10)
    assert not job._thread.is_alive()
    assert len(calls) == 1, "it does nothing more when it wakes"


def test_an_outage_before_a_pause_does_not_count_after_it() -> None:
    now = [0.0]
    manager = ScriptedManager(raising(SourceUnavailable("nobody")))
    job = JobThread(
        "job",
        lambda: manager,
        lambda: None,
        lambda: None,
        paused=False,
        patience=Patience(100.0, 0.01),
        clock=lambda: now[0],
    )
    assert eventually(lambda: manager.ticks > 2)
    job.pause()
    now[0] = 1000.0
    ticks = manager.ticks
    job.resume()
    assert eventually(lambda: manager.ticks > ticks + 3)
    assert job.status().state is State.RUNNING
    now[0] = 2000.0
    assert eventually(lambda: job.status().state is State.FAILED)
