"""A database that drops connections, or takes them and says nothing: the circuit breaker opens, the job keeps
its place, and afterwards every row is there once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from icestream.api.sink import SinkPlugin
from icestream.api.status import State
from icestream.embedded.kafka import Broker
from tests.databases import Server
from tests.integration.jdbc.test_sink import Database
from tests.running import RunningConnector, StartConnector
from tests.tcp_proxy import Mode, TcpProxy, tcp_proxy

PATIENCE = 120
SHORT = "?connectTimeout=1"


@pytest.fixture
def proxy(postgresql: Server) -> Iterator[TcpProxy]:
    place = urlsplit(postgresql.address)
    with tcp_proxy(str(place.hostname), place.port or 0) as running:
        yield running


@pytest.fixture
def database(
    postgresql: Server, proxy: TcpProxy, broker: Broker, start_job: StartConnector
) -> Iterator[Database]:
    made = Database(postgresql.settings, broker, start_job)
    yield made
    proxy.mode = "passes"
    for job in made.jobs:
        job.stop()


def through(database: Database, proxy: TcpProxy, **config: str) -> RunningConnector:
    """Start its job by way of the proxy."""
    place = urlsplit(database.settings["connection.url"].removeprefix("jdbc:"))
    url = f"jdbc:postgresql://127.0.0.1:{proxy.port}{place.path}{SHORT}"
    return database.start(
        **{
            "connection.url": url,
            "connection.attempts": "1",
            "auto.create": "true",
            "icestream.circuit.failures": "2",
            "icestream.circuit.open.ms": "1500",
            **config,
        }
    )


def eventually(job: RunningConnector, look: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < deadline, f"{what}: {job.status()}"
        time.sleep(0.1)


@pytest.mark.parametrize("mode", ["drops", "hangs"])
def test_a_database_that_is_away_is_waited_for(
    database: Database, proxy: TcpProxy, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Five minutes are what a call may take.
    monkeypatch.setattr(SinkPlugin, "answer_seconds", 3.0)
    database.produce([(str(number), {"id": number}) for number in range(100)])
    job = through(database, proxy)
    eventually(job, lambda: job.status().progress.rows == 100, "the first rows are missing")
    proxy.mode = mode
    database.produce([(str(number), {"id": number}) for number in range(100, 200)])
    eventually(job, lambda: (job.status().trace or "").startswith("Circuit breaker of"), "it is not open")
    status = job.status()
    assert status.state is State.RUNNING
    assert f"postgresql://127.0.0.1:{proxy.port}/" in (status.trace or "")
    assert "pass:word" not in str(status)
    asked = proxy.refused
    eventually(job, lambda: proxy.refused > asked, "nobody asks whether it is back")
    assert len(database.rows()) == 100
    proxy.mode = "passes"
    eventually(job, lambda: job.status().progress.rows == 200, "the rest is missing")
    assert Counter(row[0] for row in database.rows('"id"')) == Counter(range(200))
    eventually(job, lambda: job.status().trace is None, "it is still said to be open")


def test_after_max_retries_the_connector_fails(database: Database, proxy: TcpProxy) -> None:
    database.produce([("1", {"id": 1})])
    proxy.mode = "drops"
    job = through(database, proxy, **{"max.retries": "2", "retry.backoff.ms": "10"})
    eventually(job, lambda: job.status().state is State.FAILED, "it did not fail")
    assert proxy.refused == 3
