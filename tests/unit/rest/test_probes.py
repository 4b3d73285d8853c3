"""`/live` and `/ready` of a worker whose parts are broken for real: its event loop, threads of its jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from icestream.api.errors import SourceUnavailable
from icestream.api.status import State
from icestream.cluster.liveness import Checked, LifeLimits
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.rest.server import HERE, RestServer, bind, serve
from icestream.testing import FakeManager, FakeManagers
from icestream.waits import waiting_for

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON}
CONFIG = {"name": "very-secret-name", "connector.class": "IcebergSink", "topics": "t"}
CONFIG |= {"iceberg.tables": "db.t", "iceberg.catalog.type": "sql"}
QUICK = LifeLimits(job=0.5, loop=3.0)


@dataclass
class Running:
    service: ConnectorService
    server: RestServer

    def get(self, path: str, timeout: float = 60) -> httpx.Response:
        return httpx.get(f"{self.server.url}{path}", trust_env=False, timeout=timeout)

    def wait(self, path: str, status: int) -> dict[str, Any]:
        return eventually(lambda: self.get(path), lambda answer: answer.status_code == status).json()


def eventually(ask: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + 60
    while not holds(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return answer


@contextmanager
def running(*, managers: Any = None, credentials: dict[str, str] | None = None) -> Iterator[Running]:
    service = ConnectorService("w:1", MemoryStore(), WORKER, extras=Extras(life=QUICK))
    server = serve(service, bind(replace(HERE, credentials=credentials)))
    try:
        if managers is not None:
            service.restore()
            service.connectors.use(managers)
            service.ready()
        yield Running(service, server)
    finally:
        server.stop()
        service.close()


def test_a_worker_that_starts_is_alive_and_says_what_it_waits_for() -> None:
    with running() as worker:
        assert worker.get("/live").json()["status"] == "alive"
        answer = worker.get("/ready")
        assert answer.status_code == 503
        assert answer.json()["status"] == "not ready"
        assert "not read yet" in answer.json()["message"]
        worker.service.restore()
        assert "being prepared" in worker.get("/ready").json()["message"]
        worker.service.connectors.use(FakeManagers())
        worker.service.ready()
        said = worker.get("/ready")
        assert (said.status_code, said.json()["status"]) == (200, "ready")
        assert said.json()["message"] == "The worker is at work."
        assert {check["status"] for check in said.json()["checks"]} == {"ok"}


def test_probes_need_no_login_and_learn_nothing() -> None:
    with running(managers=FakeManagers(), credentials={"alice": "wonderland"}) as worker:
        worker.service.create(CONFIG["name"], CONFIG)
        for path in ("/live", "/ready"):
            answer = worker.get(path)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-store"
            assert "secret" not in answer.text
        assert worker.get("/health").status_code == 401
        assert httpx.post(f"{worker.server.url}/live", trust_env=False).status_code == 405


def test_a_loop_that_is_blocked_answers_no_probe_and_others_see_why() -> None:
    with running(managers=FakeManagers()) as worker:
        may_go_on = threading.Event()
        real = worker.service.readiness

        def blocks() -> Checked:
            may_go_on.wait(60)
            return real()

        worker.service.readiness = blocks  # type: ignore[method-assign]
        asking = threading.Thread(target=worker.get, args=["/ready"])
        asking.start()
        heartbeat = worker.server.heartbeat
        seen = eventually(lambda: worker.service.live(heartbeat.age), lambda checked: not checked.is_well)
        assert "The event loop of REST has shown no sign of life" in seen.message
        with pytest.raises(httpx.TimeoutException):
            worker.get("/live", timeout=0.5)
        may_go_on.set()
        asking.join()
        eventually(lambda: worker.service.live(heartbeat.age), lambda checked: checked.is_well)
        assert worker.get("/live").status_code == 200


class Scripted(FakeManager):
    def __init__(self, turn: Callable[[], float]) -> None:
        super().__init__("job", {})
        self._turn = turn

    def tick(self) -> float:
        return self._turn()


def test_a_job_that_hangs_without_a_word_is_lost_until_it_comes_back() -> None:
    may_go_on = threading.Event()

    def hang() -> float:
        may_go_on.wait(60)
        return 3600.0

    with running(managers=lambda *_: Scripted(hang)) as worker:
        worker.service.create(CONFIG["name"], CONFIG)
        said = worker.wait("/live", 503)
        assert said["status"] == "not alive"
        assert "The threads of 1 of 1 connector(s) are lost" in said["message"]
        assert CONFIG["name"] not in str(said)
        assert worker.get("/ready").status_code == 200
        may_go_on.set()
        worker.wait("/live", 200)


def test_a_job_that_waits_for_others_again_and_again_is_not_lost() -> None:
    ended = threading.Event()
    turns = []

    def long_turn() -> float:
        turns.append(1)
        # Longer than a silence may last, but never silent.
        for _ in range(40):
            with waiting_for("Kafka"):
                time.sleep(0.05)
        ended.set()
        return 3600.0

    with running(managers=lambda *_: Scripted(long_turn)) as worker:
        worker.service.create(CONFIG["name"], CONFIG)
        while not ended.wait(0.05):
            assert worker.get("/live").status_code == 200
        assert turns


def test_an_outage_of_others_is_no_reason_to_be_killed() -> None:
    def away() -> float:
        raise SourceUnavailable("nobody at kafka:9092")

    with running(managers=lambda *_: Scripted(away)) as worker:
        worker.service.create(CONFIG["name"], CONFIG)
        until = time.monotonic() + 2 * QUICK.job
        while time.monotonic() < until:
            assert worker.get("/live").status_code == 200
            assert worker.get("/ready").status_code == 200
            time.sleep(0.05)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing ends the job of a thread that is dead: at the end of the test it is waited for.
    monkeypatch.setattr("icestream.cluster.reconciler._STOP_SECONDS", 0.5)

    def die() -> float:
        raise GeneratorExit  # what nobody catches

    with running(managers=lambda *_: Scripted(die)) as worker:
        worker.service.create(CONFIG["name"], CONFIG)
        assert "are lost" in worker.wait("/live", 503)["message"]


def test_code_that_ends_python_fails_its_job_and_nothing_else() -> None:
    def leave() -> float:
        raise SystemExit(1)

    with running(managers=lambda *_: Scripted(leave)) as worker:
        name = CONFIG["name"]
        worker.service.create(name, CONFIG)
        eventually(lambda: worker.service.status(name).state, lambda state: state is State.FAILED)
        assert worker.get("/live").status_code == 200
