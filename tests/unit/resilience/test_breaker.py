"""The circuit breaker of a destination: its states, and whatever sequence of events it meets."""

from __future__ import annotations

import datetime as dt
import gc
import logging
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from icestream.resilience.breaker import CircuitBreaker, CircuitLimits, Circuits, CircuitState, Permit

LIMITS = CircuitLimits(failures=3, open_seconds=10.0)


class Clocks:
    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def wall(self) -> dt.datetime:
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=self.now)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def breaker(clocks: Clocks) -> CircuitBreaker:
    return CircuitBreaker("s3://lake", clocks.clock, clocks.wall, lambda: 0.0)


def permit(breaker: CircuitBreaker, who: str = "a", limits: CircuitLimits = LIMITS) -> Permit:
    found = breaker.admit(who, limits)
    assert isinstance(found, Permit)
    return found


def opened(breaker: CircuitBreaker, who: str = "a") -> CircuitBreaker:
    for _ in range(LIMITS.failures):
        permit(breaker, who).failed("503")
    assert breaker.view.state is CircuitState.OPEN
    return breaker


def test_failures_in_a_row_open_it_and_everybody_sees_why_and_until_when(
    breaker: CircuitBreaker, caplog: pytest.LogCaptureFixture
) -> None:
    opened(breaker)
    assert breaker.admit("b", LIMITS) == pytest.approx(10.0)
    said = str(breaker.view)
    assert said == (
        "Circuit breaker of s3://lake is open until 2026-01-01T00:00:10+00:00, "
        "since 2026-01-01T00:00:00+00:00, after 3 failures: 503"
    )
    assert said in caplog.text
    assert breaker.view.plain() == {
        "destination": "s3://lake",
        "state": "open",
        "failures": 3,
        "since": "2026-01-01T00:00:00+00:00",
        "until": "2026-01-01T00:00:10+00:00",
        "reason": "503",
        "opened": 1,
    }


def test_a_success_begins_the_count_anew(breaker: CircuitBreaker) -> None:
    for _ in range(2):
        permit(breaker).failed("503")
    permit(breaker).succeeded()
    for _ in range(2):
        permit(breaker).failed("503")
    assert breaker.view.state is CircuitState.CLOSED


def test_one_tries_when_the_time_has_come_and_the_others_wait(
    breaker: CircuitBreaker, clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    opened(breaker)
    clocks.now = 10.0
    probe = permit(breaker, "b")
    assert breaker.view.state is CircuitState.HALF_OPEN
    assert "Circuit breaker of s3://lake is half-open" in caplog.text
    assert all(isinstance(breaker.admit(who, LIMITS), float) for who in ("a", "c", "d"))
    clocks.now = 12.0
    probe.succeeded()
    assert breaker.view.state is CircuitState.CLOSED
    assert "Circuit breaker of s3://lake is closed again, after 12 s" in caplog.text
    for who in ("a", "b", "c"):
        permit(breaker, who)


def test_an_attempt_that_fails_opens_it_again(breaker: CircuitBreaker, clocks: Clocks) -> None:
    opened(breaker)
    clocks.now = 10.0
    permit(breaker, "b").failed("still 503")
    view = breaker.view
    assert (view.state, view.failures, view.opened) == (CircuitState.OPEN, 4, 1)
    assert view.since == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert view.reason == "still 503"
    assert breaker.admit("a", LIMITS) == pytest.approx(10.0)


def test_whoever_failed_last_lets_others_try_first(breaker: CircuitBreaker, clocks: Clocks) -> None:
    opened(breaker)
    clocks.now = 10.0
    permit(breaker, "a").failed("503")
    clocks.now = 20.0
    assert breaker.admit("a", LIMITS) == pytest.approx(1.0)
    permit(breaker, "b").failed("503")
    clocks.now = 31.0
    permit(breaker, "b").release()  # nobody else came
    permit(breaker, "a")


def test_an_attempt_without_an_answer_leaves_the_next_one_to_others(
    breaker: CircuitBreaker, clocks: Clocks
) -> None:
    opened(breaker)
    clocks.now = 10.0
    probe = permit(breaker, "b")
    probe.release()
    second = permit(breaker, "c")
    # Whoever was given up and wakes later has no say any more.
    probe.succeeded()
    probe.failed("late")
    probe.release()
    assert breaker.view.state is CircuitState.HALF_OPEN
    second.succeeded()
    assert breaker.view.state is CircuitState.CLOSED


def test_what_was_asked_before_it_opened_neither_closes_nor_prolongs_it(breaker: CircuitBreaker) -> None:
    early, other = permit(breaker, "b"), permit(breaker, "c")
    opened(breaker)
    before = breaker.view
    early.succeeded()
    other.failed("late")
    assert breaker.view is before


def test_a_connector_that_fails_where_others_do_well_opens_nothing_for_them(
    breaker: CircuitBreaker, clocks: Clocks
) -> None:
    opened(breaker, "broken")
    clocks.now = 10.0
    permit(breaker, "well").succeeded()
    for _ in range(100):
        permit(breaker, "broken").failed("its own proxy")
    assert breaker.view.state is CircuitState.CLOSED
    permit(breaker, "broken").succeeded()
    opened(breaker, "broken")


def test_a_person_need_not_wait(breaker: CircuitBreaker) -> None:
    opened(breaker)
    breaker.try_now()
    permit(breaker, "a").succeeded()
    assert breaker.view.state is CircuitState.CLOSED


def test_without_a_limit_a_connector_neither_opens_it_nor_is_held(breaker: CircuitBreaker) -> None:
    never = CircuitLimits(failures=0)
    for _ in range(20):
        permit(breaker, "a", never).failed("503")
    assert breaker.view.state is CircuitState.CLOSED
    opened(breaker, "b")
    permit(breaker, "a", never)
    assert breaker.view.state is CircuitState.OPEN


def test_connectors_of_one_destination_share_its_breaker_which_goes_with_the_last() -> None:
    circuits = Circuits()
    one = circuits.of("s3://lake")
    assert circuits.of("s3://lake") is one
    assert circuits.of("s3://sea") is not one
    assert [view.destination for view in circuits.views()] == ["s3://lake"]
    del one
    gc.collect()
    assert circuits.views() == []


def test_many_threads_get_one_attempt(clocks: Clocks) -> None:
    breaker = opened(CircuitBreaker("s3://lake", clocks.clock, clocks.wall, lambda: 0.0))
    clocks.now = 100.0
    answers: list[Permit | float] = []
    start = threading.Barrier(16)

    def ask(who: str) -> None:
        start.wait(60)
        answers.append(breaker.admit(who, LIMITS))

    threads = [threading.Thread(target=ask, args=[f"c{n}"]) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(isinstance(answer, Permit) for answer in answers) == 1


WHO = st.sampled_from(["a", "b", "c"])


class AnySequence(RuleBasedStateMachine):
    """Connectors come and go in any order, time passes, and what they say comes late or never."""

    @initialize()
    def start(self) -> None:
        self.clocks = Clocks()
        self.breaker = CircuitBreaker("it", self.clocks.clock, self.clocks.wall, lambda: 0.5)
        self.permits: list[Permit] = []
        self.probe: Permit | None = None
        self.before = self.breaker.view

    @rule(who=WHO)
    def ask(self, who: str) -> None:
        was = self.breaker.view
        answer = self.breaker.admit(who, LIMITS)
        if isinstance(answer, Permit):
            self.permits.append(answer)
            if was.state is not CircuitState.CLOSED:
                assert self.probe is None, "two attempts at the same time"
                assert was.until is not None
                assert self.clocks.wall() >= was.until or self.was_hurried
                self.probe = answer
        else:
            assert answer > 0
            assert was.state is not CircuitState.CLOSED

    was_hurried = False

    @precondition(lambda self: self.permits)
    @rule(data=st.data(), verdict=st.sampled_from(["succeeded", "failed", "release"]))
    def say(self, data: st.DataObject, verdict: str) -> None:
        number = data.draw(st.integers(0, len(self.permits) - 1))
        said = self.permits.pop(number)
        was = self.breaker.view.state
        said.failed("no") if verdict == "failed" else getattr(said, verdict)()
        now = self.breaker.view.state
        if said is self.probe:
            self.probe = None
            assert now is (CircuitState.CLOSED if verdict == "succeeded" else CircuitState.OPEN)
            self.was_hurried = verdict == "release"
        elif was is not CircuitState.CLOSED:
            assert now is was, "only the attempt closes it or opens it again"

    @rule(seconds=st.floats(0, 30))
    def wait(self, seconds: float) -> None:
        self.clocks.now += seconds

    @rule()
    def hurry(self) -> None:
        self.breaker.try_now()
        self.was_hurried = True

    @invariant()
    def is_consistent(self) -> None:
        view = self.breaker.view
        assert (view.state is CircuitState.HALF_OPEN) == (self.probe is not None)
        assert (view.until is not None) == (view.state is CircuitState.OPEN)
        assert (view.since is None) == (view.state is CircuitState.CLOSED)
        if view.state is CircuitState.CLOSED:
            assert view.failures < LIMITS.failures
            self.was_hurried = False

    def teardown(self) -> None:
        # However it went, it ends: once the time has come somebody may try, and closes it.
        if not hasattr(self, "breaker"):
            return
        if self.probe is not None:
            self.probe.release()
        self.clocks.now += 100.0
        answer = self.breaker.admit("last", LIMITS)
        assert isinstance(answer, Permit)
        answer.succeeded()
        assert self.breaker.view.state is CircuitState.CLOSED


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
