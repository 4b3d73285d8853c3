"""What a user can do to connectors, over jobs that only pretend."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from icestream.api.errors import (
    AlreadyExistsError,
    BadOffsets,
    ConfigError,
    FatalError,
    NotFoundError,
    Problem,
)
from icestream.api.status import Progress, State
from icestream.cluster.configs.properties import ConnectorFile
from icestream.cluster.configs.validation import Validator
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import ConnectorStore, MemoryStore, StoredConnector, TargetState
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
CONFIG = {
    "name": "sink",
    "connector.class": "IcebergSink",
    "tasks.max": "2",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}


def service_over(store: ConnectorStore, extras: Extras | None = None) -> ConnectorService:
    extras = replace(extras or Extras(), patience=Patience(start=2.0, stop=2.0))
    return ConnectorService("w:1", store, WORKER, extras=extras)


class Bench:
    """A service with its fakes."""

    def __init__(self, store: ConnectorStore | None = None, *, is_started: bool = True) -> None:
        self.managers = FakeManagers()
        self.store = store or MemoryStore()
        self.service = service_over(self.store)
        if is_started:
            self.service.connectors.use(self.managers)

    def has_patience(self, start: float, stop: float) -> None:
        self.service.connectors._patience = Patience(start, stop)

    def state(self, name: str = "sink") -> State:
        return self.service.status(name).state

    def states(self, name: str = "sink") -> list[State]:
        return [task.state for task in self.service.status(name).tasks]


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.service.close()


def eventually(check: object, timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while not check():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@pytest.mark.parametrize("tasks", ["2147483647", "9" * 5_000])
def test_a_stored_connector_with_countless_tasks_fails_and_the_worker_lives(tasks: str) -> None:
    store = MemoryStore()
    store.put("huge", StoredConnector({**CONFIG, "name": "huge", "tasks.max": tasks}, TargetState.STARTED))
    bench = Bench(store)
    bench.service.restore()
    eventually(lambda: bench.state("huge") is State.FAILED)
    assert len(bench.service.status("huge").tasks) <= 10_000
    assert len(bench.service.tasks("huge")) <= 10_000
    bench.service.delete("huge")
    bench.service.close()


def test_a_stored_connector_that_nobody_can_validate_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Validator, config: Mapping[str, str | None], *, deep: bool) -> object:
        raise RecursionError("deep")

    store = MemoryStore()
    store.put("sink", StoredConnector(CONFIG, TargetState.STARTED))
    bench = Bench(store)
    monkeypatch.setattr(Validator, "validated", fails)
    bench.service.restore()
    eventually(lambda: bench.state() is State.FAILED)
    assert "cannot be validated (RecursionError)" in (bench.service.status("sink").trace or "")
    bench.service.close()


def test_a_created_connector_runs_with_the_worker_defaults(bench: Bench) -> None:
    info = bench.service.create("sink", CONFIG)
    assert (info.name, info.config, info.task_ids, info.type) == ("sink", CONFIG, (0, 1), "sink")
    assert bench.state() is State.RUNNING
    assert bench.states() == [State.RUNNING, State.RUNNING]
    assert bench.managers.latest("sink").config["value.converter.schemas.enable"] == "false"
    assert bench.service.config("sink") == CONFIG


def test_a_name_is_taken_once(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    with pytest.raises(AlreadyExistsError, match="Connector sink already exists"):
        bench.service.create("sink", CONFIG)


def test_an_invalid_config_changes_nothing(bench: Bench) -> None:
    with pytest.raises(ConfigError):
        bench.service.create("sink", {**CONFIG, "tasks.max": "x"})
    bench.service.create("sink", CONFIG)
    with pytest.raises(ConfigError):
        bench.service.put_config("sink", {**CONFIG, "tasks.max": "x"})
    assert bench.service.config("sink") == CONFIG
    assert len(bench.managers.made) == 1


def test_pause_and_resume_keep_the_job(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    bench.service.pause("sink")
    assert bench.states() == [State.PAUSED, State.PAUSED]
    bench.service.resume("sink")
    assert bench.state() is State.RUNNING
    assert not bench.managers.latest("sink").is_closed
    assert len(bench.managers.made) == 1


def test_stop_ends_the_job_and_its_tasks(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    bench.service.stop("sink")
    assert bench.state() is State.STOPPED
    assert bench.states() == []
    assert bench.service.info("sink").task_ids == ()
    assert bench.managers.alive("sink") == []
    bench.service.resume("sink")
    assert bench.state() is State.RUNNING
    assert len(bench.managers.made) == 2


def test_a_connector_can_begin_paused_or_stopped(bench: Bench) -> None:
    bench.service.create("paused", {**CONFIG, "name": "paused"}, TargetState.PAUSED)
    bench.service.create("stopped", {**CONFIG, "name": "stopped"}, TargetState.STOPPED)
    assert bench.state("paused") is State.PAUSED
    assert bench.state("stopped") is State.STOPPED
    assert bench.managers.made == []
    bench.service.resume("paused")
    assert [manager.name for manager in bench.managers.made] == ["paused"]


def test_a_new_config_starts_a_new_job_in_the_same_state(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    bench.service.pause("sink")
    info, is_created = bench.service.put_config("sink", {**CONFIG, "tasks.max": "3"})
    assert not is_created
    assert info.task_ids == (0, 1, 2)
    assert bench.state() is State.PAUSED
    bench.service.resume("sink")
    assert len(bench.managers.alive("sink")) == 1
    assert bench.managers.latest("sink").config["tasks.max"] == "3"


def test_patch_changes_and_removes_keys(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    info = bench.service.patch_config("sink", {"tasks.max": None, "errors.tolerance": "all"})
    assert info.task_ids == (0,)
    assert info.config["errors.tolerance"] == "all"


def test_restart_makes_a_new_job(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    plan = bench.service.restart("sink", include_tasks=True)
    assert plan.state is State.RESTARTING
    assert [task.state for task in plan.tasks] == [State.RESTARTING] * 2
    assert bench.state() is State.RUNNING
    assert [manager.is_closed for manager in bench.managers.made] == [True, False]


def test_restart_of_only_the_failed_leaves_the_others_alone(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    bench.service.restart("sink", only_failed=True)
    assert len(bench.managers.made) == 1
    bench.managers.latest("sink").fail("record at t-0@5")
    assert bench.state() is State.FAILED
    assert (bench.service.task_status("sink", 1).trace or "").endswith("ValueError: record at t-0@5\n")
    bench.service.restart("sink", only_failed=True)
    assert bench.state() is State.RUNNING


def test_restarting_a_task_restarts_the_job(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    bench.service.restart_task("sink", 1)
    assert len(bench.managers.made) == 2
    with pytest.raises(NotFoundError, match="Unknown task: sink-2"):
        bench.service.restart_task("sink", 2)


def test_a_stopped_connector_stays_stopped_on_restart(bench: Bench) -> None:
    bench.service.create("sink", CONFIG, TargetState.STOPPED)
    bench.service.restart("sink", include_tasks=True)
    assert bench.state() is State.STOPPED
    assert bench.managers.made == []


def test_a_crashing_start_is_a_failed_connector(bench: Bench) -> None:
    bench.managers.broken["sink"] = FatalError("no broker at localhost:1")
    bench.service.create("sink", CONFIG)
    status = bench.service.status("sink")
    assert status.state is State.FAILED
    assert status.trace is not None
    assert "FatalError: no broker at localhost:1" in status.trace
    bench.service.create("other", {**CONFIG, "name": "other"})
    assert bench.state("other") is State.RUNNING
    bench.managers.broken.clear()
    bench.service.restart("sink")
    assert bench.state() is State.RUNNING


def test_delete_stops_the_job_and_forgets(bench: Bench) -> None:
    bench.service.create("sink", CONFIG)
    bench.service.delete("sink")
    assert bench.service.names() == []
    assert bench.store.load() == {}
    assert bench.managers.alive("sink") == []
    with pytest.raises(NotFoundError, match="Connector sink not found"):
        bench.service.info("sink")


def test_two_jobs_of_one_connector_never_overlap() -> None:
    bench, may_end = Bench(), threading.Event()
    bench.service.create("sink", CONFIG)
    first = bench.managers.latest("sink")
    first.close = lambda: may_end.wait(120) and None  # type: ignore[method-assign]
    bench.has_patience(start=0.05, stop=0.05)
    bench.service.delete("sink")
    bench.service.create("sink", CONFIG)
    assert bench.state() is State.RESTARTING
    assert bench.managers.made == [first]
    may_end.set()
    eventually(lambda: len(bench.managers.made) == 2)
    eventually(lambda: bench.state() is State.RUNNING)
    bench.service.close()


def test_a_slow_stop_of_one_blocks_no_other() -> None:
    bench = Bench()
    bench.service.create("slow", {**CONFIG, "name": "slow"})
    bench.has_patience(start=0.05, stop=0.05)
    manager, may_end = bench.managers.latest("slow"), threading.Event()

    def slowly() -> None:
        may_end.wait(120)

    manager.close = slowly  # type: ignore[method-assign]
    bench.service.stop("slow")
    bench.service.create("sink", CONFIG)
    eventually(lambda: bench.state() is State.RUNNING)
    assert bench.state("slow") is State.RUNNING
    may_end.set()
    eventually(lambda: bench.state("slow") is State.STOPPED)
    bench.service.close()


def test_connectors_wait_for_what_makes_their_managers() -> None:
    bench = Bench(is_started=False)
    bench.has_patience(start=0.05, stop=1.0)
    bench.service.create("sink", CONFIG)
    assert bench.state() is State.UNASSIGNED
    assert bench.service.health().status == "starting"
    bench.service.connectors.use(bench.managers)
    bench.service.ready()
    eventually(lambda: bench.state() is State.RUNNING)
    assert bench.service.health().status == "healthy"
    bench.service.close()


def test_states_survive_a_restart_of_the_worker(bench: Bench) -> None:
    for name in ("runs", "paused", "stopped"):
        bench.service.create(name, {**CONFIG, "name": name})
    bench.service.pause("paused")
    bench.service.stop("stopped")
    bench.service.close()
    again = Bench(bench.store)
    again.service.restore()
    eventually(lambda: again.state("runs") is State.RUNNING)
    eventually(lambda: again.state("paused") is State.PAUSED)
    eventually(lambda: again.state("stopped") is State.STOPPED)
    eventually(lambda: [manager.name for manager in again.managers.made] == ["runs"])
    again.service.close()


def test_a_file_wins_over_the_store_but_keeps_the_state() -> None:
    store = MemoryStore()
    store.put("sink", StoredConnector(CONFIG, TargetState.PAUSED))
    bench = Bench(store)
    changed = {**CONFIG, "tasks.max": "5"}
    bench.service.restore([ConnectorFile("sink", changed)])
    eventually(lambda: bench.state() is State.PAUSED)
    assert store.load() == {"sink": StoredConnector(changed, TargetState.PAUSED)}
    bench.service.close()


def test_a_broken_file_names_its_connector(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"connector 'sink': Invalid value x for configuration tasks\.max"):
        bench.service.restore([ConnectorFile("sink", {**CONFIG, "tasks.max": "x"})])


def test_a_stored_config_that_is_no_longer_valid_is_shown_as_failed() -> None:
    store = MemoryStore()
    store.put("old", StoredConnector({"name": "old", "connector.class": "Gone"}))
    bench = Bench(store)
    bench.service.restore()
    eventually(lambda: bench.state("old") is State.FAILED)
    assert "available connectors are" in (bench.service.status("old").trace or "")
    bench.service.close()


def test_progress_shows_the_warnings_of_the_config(bench: Bench) -> None:
    bench.service.create("sink", {**CONFIG, "my.note": "x"})
    bench.managers.latest("sink").advance(Progress(lag=3, rows=10, warnings=("slow broker",)))
    progress = bench.service.progress("sink")
    assert (progress.lag, progress.rows) == (3, 10)
    assert progress.warnings == ("'my.note' is not a known configuration and has no effect", "slow broker")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda service: service.info("no"), "Connector no not found"),
        (lambda service: service.status("no"), "No status found for connector no"),
        (lambda service: service.task_status("no", 0), "No status found for task no-0"),
        (lambda service: service.pause("no"), "Unknown connector no"),
        (lambda service: service.resume("no"), "Unknown connector no"),
        (lambda service: service.delete("no"), "Connector no not found"),
        (lambda service: service.restart("no", include_tasks=True), "Unknown connector: no"),
        (lambda service: service.plugin_config("Foo"), "Unknown plugin Foo."),
    ],
)
def test_unknown_connectors_in_the_words_of_kafka(bench: Bench, call: object, message: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        call(bench.service)  # type: ignore[operator]
    assert str(caught.value) == message


def test_offsets_of_a_connector_that_was_resumed_in_between_are_left_alone() -> None:
    altered: list[str] = []

    class Admin:
        def reset(self, name: str, config: Mapping[str, str]) -> str:
            altered.append(name)
            return "done"

    store = MemoryStore()
    service = service_over(store, Extras(offsets=Admin()))  # type: ignore[arg-type]
    service.connectors.use(FakeManagers())
    service.create("sink", CONFIG)
    service.stop("sink")
    refused: list[Exception] = []

    def reset() -> None:
        try:
            service.reset_offsets("sink")
        except BadOffsets as error:
            refused.append(error)

    asking = threading.Thread(target=reset)
    with service._changing:
        asking.start()
        time.sleep(0.1)
        store.put("sink", StoredConnector(CONFIG, TargetState.STARTED))
    asking.join(60)
    assert refused and not altered
    service.close()


def test_a_restart_validates_anew_what_the_config_points_to() -> None:
    is_there = False

    def resolve(config: Mapping[str, str]) -> dict[str, str]:
        if not is_there:
            raise ConfigError([Problem("topics", "the file of the provider cannot be read")])
        return dict(config)

    store = MemoryStore()
    store.put("sink", StoredConnector(CONFIG))
    service = service_over(store, Extras(resolve=resolve))
    service.connectors.use(FakeManagers())
    service.restore()
    service.connectors.settle("sink")
    assert service.status("sink").state is State.FAILED
    is_there = True
    service.restart("sink")
    assert service.status("sink").state is State.RUNNING
    service.close()


def _patching(meanwhile: Callable[[ConnectorService], None]) -> ConnectorService:
    """A service in which something happens while a patch of the topics is validated, once."""
    todo = [meanwhile]

    def deep(config: Mapping[str, str]) -> list[Problem]:
        if config["topics"] == "new" and todo:
            todo.pop()(service)
        return []

    service = service_over(MemoryStore(), Extras(deep_check=deep))
    service.connectors.use(FakeManagers())
    service.create("sink", CONFIG)
    return service


def test_a_patch_brings_no_deleted_connector_back() -> None:
    service = _patching(lambda service: service.delete("sink"))
    with pytest.raises(NotFoundError):
        service.patch_config("sink", {"topics": "new"})
    assert service.names() == []
    service.close()


def _patch_tasks(service: ConnectorService) -> None:
    service.patch_config("sink", {"tasks.max": "7"})


def test_patches_at_the_same_time_both_hold() -> None:
    service = _patching(_patch_tasks)
    service.patch_config("sink", {"topics": "new"})
    assert (service.config("sink")["tasks.max"], service.config("sink")["topics"]) == ("7", "new")
    service.close()
