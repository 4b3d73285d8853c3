"""What is told of a connector besides its batches: states, restarts, retries, changes, and who asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from icestream.api.errors import FatalError, Fenced, SinkUnavailable, SourceUnavailable
from icestream.api.history import Event, NobodyLooks
from icestream.cluster.connector_registry import Patience
from icestream.cluster.desired_state import DesiredState
from icestream.cluster.history.change_events import ACTING_USER, changes
from icestream.cluster.history.history import History
from icestream.cluster.history.recent_answers import RecentAnswers
from icestream.cluster.reconciler import Reconciler
from icestream.cluster.restarts import Policy
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.settings.retry_settings import RetrySettings
from icestream.cluster.stores.connector_store import MemoryStore, StoredConnector, TargetState
from icestream.resilience.backoff import RetryLimits
from icestream.resilience.breaker import CircuitLimits
from icestream.testing import FakeManagers
from tests.unit.cluster.test_reconciler import CONFIG, ScriptedManager
from tests.unit.cluster.test_service import CONFIG as SINK
from tests.unit.cluster.test_service import WORKER

_PATIENCE = 60.0


class Told(NobodyLooks):
    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str, str]] = []
        self.events: list[Event] = []

    def event(self, connector: str, event: Event) -> None:
        self.heard.append((event.kind, event.text, event.user, event.about))
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [kind for kind, *_ in self.heard]


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def raises(error: Exception) -> Callable[[], float]:
    def turn() -> float:
        raise error

    return turn


@pytest.fixture
def told() -> Told:
    return Told()


Run = Callable[..., Reconciler]


@pytest.fixture
def run(told: Told) -> Iterator[Run]:
    made: list[Reconciler] = []

    def started(*turns: Callable[[], float], policy: Policy | None = None, config: dict[str, str] = CONFIG):
        quick = RetrySettings(
            "s3://lake", RetryLimits(0.001, 0.002, 60.0), CircuitLimits(failures=2, open_seconds=0.01)
        )
        one = Reconciler(
            "job",
            lambda: lambda name, config, wake: ScriptedManager(*turns),
            retries=lambda config: quick,
            observer=told,
            resolve=lambda config: {
                key: value.replace("${env:X}", "hunter22") for key, value in config.items()
            },
        )
        desired = DesiredState(1, config, TargetState.STARTED)
        one.set_desired(desired if policy is None else DesiredState(1, config, TargetState.STARTED, policy))
        made.append(one)
        return one

    yield started
    for one in made:
        one.set_desired(None)
        one.wait(_PATIENCE)


def test_a_job_starts_tries_again_and_ends(run: Run, told: Told) -> None:
    job = run(raises(SourceUnavailable("no broker")), lambda: 0.01)
    wait_for(lambda: "retry" in told.kinds())
    job.set_desired(None)
    assert job.wait(_PATIENCE)
    assert told.heard[0][:2] == ("state", "RUNNING: its job has started")
    retry = next(event for event in told.events if event.kind == "retry")
    assert retry.about == "kafka"
    assert "gives up at" in retry.text
    assert retry.text.endswith("no broker")
    assert retry.numbers["attempt"] == 1
    assert told.heard[-1][:2] == ("state", "its job has ended")


def test_a_failure_and_its_restart_are_told_without_secrets(run: Run, told: Told) -> None:
    config = {**CONFIG, "password": "${env:X}"}
    run(raises(FatalError("wrong: hunter22")), policy=Policy(True, 1, 0.01, 0.01), config=config)
    wait_for(lambda: told.kinds().count("state") >= 4)
    texts = [text for _, text, *_ in told.heard]
    assert any(text.startswith("FAILED: wrong: ${env:X}; restart 1 of 1 at") for text in texts)
    assert ("restart", "restart 1 of 1 is under way", "", "") in told.heard
    assert not any("hunter22" in text for text in texts)


def test_a_fence_is_told_as_one(run: Run, told: Told) -> None:
    run(raises(Fenced("another manager is alive")))
    wait_for(lambda: "fenced" in told.kinds())


def test_the_circuit_breaker_opens_and_closes(run: Run, told: Told) -> None:
    away = raises(SinkUnavailable("the lake is away"))
    run(away, away, away, lambda: 0.01)
    wait_for(lambda: ("circuit", "closed") in [(kind, about) for kind, _, _, about in told.heard])
    states = [about for kind, _, _, about in told.heard if kind == "circuit"]
    assert "open" in states
    assert next(about for kind, _, _, about in told.heard if kind == "retry") == "destination"


def test_an_observer_that_raises_harms_no_job() -> None:
    class Raises(NobodyLooks):
        def event(self, connector: str, event: Event) -> None:
            raise RuntimeError("broken")

    ticked = threading.Event()

    def turn() -> float:
        ticked.set()
        return 0.01

    job = Reconciler("job", lambda: lambda name, config, wake: ScriptedManager(turn), observer=Raises())
    job.set_desired(DesiredState(1, CONFIG, TargetState.STARTED))
    assert ticked.wait(_PATIENCE)
    job.set_desired(None)
    assert job.wait(_PATIENCE)


# What people change


@pytest.fixture
def service(told: Told) -> Iterator[ConnectorService]:
    extras = Extras(patience=Patience(2.0, 2.0), observer=told)
    made = ConnectorService("w:1", MemoryStore(), WORKER, extras=extras)
    made.connectors.use(FakeManagers())
    made.ready()
    yield made
    made.close()


def asked(told: Told) -> list[tuple[str, str, str]]:
    """Without what jobs do by themselves."""
    return [(kind, text, user) for kind, text, user, _ in told.heard if user]


def test_changes_have_the_name_of_who_asked(service: ConnectorService, told: Told) -> None:
    token = ACTING_USER.set("alice")
    try:
        service.create("sink", SINK)
        service.patch_config(
            "sink",
            {"tasks.max": "3", "iceberg.catalog.token": "s3cret", "topics": None, "topics.regex": "t.*"},
        )
        service.pause("sink")
        service.restart("sink")
        service.stop("sink")
    finally:
        ACTING_USER.reset(token)
    assert asked(told) == [
        ("config", "created with 6 keys", "alice"),
        ("config", "set: iceberg.catalog.token, topics.regex; changed: tasks.max; removed: topics", "alice"),
        ("state", "it is to pause", "alice"),
        ("restart", "a restart was asked for", "alice"),
        ("state", "it is to stop", "alice"),
    ]
    assert "s3cret" not in str(told.heard)


def test_what_a_worker_finds_at_its_start_is_no_change(told: Told) -> None:
    store = MemoryStore()
    store.put("sink", StoredConnector(SINK, TargetState.STARTED))
    service = ConnectorService("w:1", store, WORKER, extras=Extras(observer=told))
    service.restore()
    assert "config" not in told.kinds()
    service.close()


def test_many_keys_are_not_all_named() -> None:
    before = StoredConnector({}, TargetState.STARTED)
    after = StoredConnector({f"k{number:02}": "v" for number in range(30)}, TargetState.STARTED)
    ((kind, text),) = changes(before, after)
    assert kind == "config"
    assert text.endswith("k19 and 10 more")


def test_a_connector_that_is_deleted_is_forgotten() -> None:
    service = ConnectorService("w:1", MemoryStore(), WORKER, extras=Extras(patience=Patience(2.0, 2.0)))
    service.connectors.use(FakeManagers())
    service.ready()
    service.create("sink", SINK)
    assert service.history.events("sink")
    service.delete("sink")
    wait_for(lambda: service.history.batches("sink").since_ms is None)
    service.close()


def test_retries_one_after_the_other_are_one_line() -> None:
    history = History(lambda: 1_000)
    for second in range(5):
        history.event("a", Event(second * 1_000, "retry", f"attempt {second}", about="kafka"))
    history.event("a", Event(9_000, "retry", "Spark", about="spark"))
    first, second = history.events("a")
    assert (first.text, first.at_ms, first.numbers) == ("attempt 4", 4_000, {"since_ms": 0})
    assert second.text == "Spark"


def test_an_answer_is_asked_for_once_in_a_while() -> None:
    now = [0.0]
    answers = RecentAnswers(10.0, lambda: now[0])
    count = iter(range(100))
    assert [answers.of("a", lambda: next(count)) for _ in range(3)] == [0, 0, 0]
    assert answers.of("b", lambda: next(count)) == 1
    now[0] = 10.0
    assert answers.of("a", lambda: next(count)) == 2
    with pytest.raises(ZeroDivisionError):
        answers.of("c", lambda: 1 // 0)
    assert answers.of("c", lambda: next(count)) == 3
