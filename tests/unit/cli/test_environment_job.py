"""The process around a job that environment variables configure."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping

import httpx
import pytest

from icestream.api.environment_job import EnvironmentJob
from icestream.api.errors import ConfigError, FatalError, PreconditionError, SourceUnavailable
from icestream.api.status import Progress
from icestream.cli.environment_job import JobShell, _served, parse_environment
from tests.unit.metrics.test_counters import LANDED


class Turns:
    """A manager whose turns the test decides."""

    def __init__(self, turn: Callable[[], float]) -> None:
        self.turn = turn
        self.progress = Progress(lag=7, rows=12, batches=3, last_commit_ms=1_700_000_000_500)
        self.closed = threading.Event()

    def tick(self) -> float:
        return self.turn()

    def cancel(self) -> None: ...

    def allow(self) -> None: ...

    def close(self) -> None:
        self.closed.set()


class Running:
    """A job in its shell, with its HTTP answers."""

    def __init__(self, manager: Turns, secrets: Mapping[str, str]) -> None:
        self.manager = manager
        self.shell = JobShell(EnvironmentJob("orders", lambda wake, observer: manager, secrets=secrets))
        self.told = threading.Event()
        self.failure: list[Exception] = []
        self.http = _served({"HTTP_HOST": "127.0.0.1", "HTTP_PORT": 0}, self.shell.answers())
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.shell.run(self.told)
        except FatalError as error:
            self.failure.append(error)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.http.url + path, trust_env=False, timeout=30)

    def wait(self, path: str, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
        for _ in range(1200):
            if wanted(answer := self.get(path)):
                return answer
            threading.Event().wait(0.05)
        raise AssertionError(answer.text)

    def close(self) -> None:
        self.told.set()
        self.thread.join(60)
        self.http.stop()


Run = Callable[..., Running]


@pytest.fixture
def run() -> Iterator[Run]:
    started: list[Running] = []

    def start(turn: Callable[[], float], secrets: Mapping[str, str] | None = None) -> Running:
        started.append(Running(Turns(turn), secrets or {}))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_a_job_is_live_and_ready_and_tells_its_metrics(run: Run) -> None:
    job = run(lambda: 60.0)
    job.wait("/ready", lambda answer: answer.status_code == 200)
    job.shell.observers.batch("orders", LANDED)
    assert job.shell.observers.settle(60)
    assert job.get("/live").json()["status"] == "alive"
    metrics = job.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in (
        'icestream_lag_records{connector="orders"} 7.0',
        'icestream_records_read_total{connector="orders"} 10.0',
        'icestream_records_written_total{connector="orders"} 6.0',
        'icestream_batches_total{connector="orders",outcome="committed"} 1.0',
        'icestream_commit_last_success_timestamp_seconds{connector="orders"} 1.7000000005e+09',
        'icestream_job_state{connector="orders",state="running"} 1.0',
        'icestream_retries_total{connector="orders",target="kafka"} 0.0',
    ):
        assert line in metrics.text.splitlines()


def test_an_outage_is_not_ready_but_alive_and_shows_no_secret(run: Run) -> None:
    def turn() -> float:
        raise SourceUnavailable("kafka:9092 refuses hunter2")

    job = run(turn, {"hunter2": "[sasl.jaas.config]"})
    answer = job.wait("/ready", lambda answer: "refuses" in answer.text)
    assert answer.status_code == 503
    assert "hunter2" not in answer.text and "[sasl.jaas.config]" in answer.text
    assert job.get("/live").status_code == 200
    job.wait(
        "/metrics",
        lambda answer: (
            re.search(r'icestream_retries_total\{.*target="kafka"\} [1-9]', answer.text) is not None
        ),
    )


def test_a_job_that_is_told_to_stop_ends_its_turn_and_is_closed(run: Run) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def turn() -> float:
        begun.set()
        may_end.wait(60)
        ended.set()
        return 60.0

    job = run(turn)
    assert begun.wait(60)
    job.told.set()
    assert not job.manager.closed.wait(0.2)
    may_end.set()
    job.thread.join(60)
    assert ended.is_set() and job.manager.closed.is_set()
    assert not job.failure


def test_a_job_that_fails_ends_the_process_with_its_reason(run: Run) -> None:
    def turn() -> float:
        raise FatalError("the table is gone, says hunter2")

    job = run(turn, {"hunter2": "[token]"})
    job.thread.join(60)
    assert str(job.failure[0]) == (
        "job orders failed: icestream.api.errors.FatalError: the table is gone, says [token]"
    )


def test_problems_of_the_job_and_of_the_process_are_told_together() -> None:
    with pytest.raises(ConfigError) as error:
        parse_environment({"HTTP_PORT": "http", "LOG_LEVEL": "loud"})
    keys = {problem.key for problem in error.value.problems}
    assert {"KAFKA_BOOTSTRAP_SERVERS", "CONNECT_GROUP_ID", "CONTROL_TOPIC", "CATALOG_NAME"} < keys
    assert {"HTTP_PORT", "LOG_LEVEL"} < keys


def test_a_port_that_is_taken_is_told_by_the_variables(run: Run) -> None:
    job = run(lambda: 60.0)
    values = {"HTTP_HOST": "127.0.0.1", "HTTP_PORT": job.http.port}
    with pytest.raises(PreconditionError, match=f"HTTP_PORT={job.http.port} cannot be used"):
        _served(values, job.shell.answers())
