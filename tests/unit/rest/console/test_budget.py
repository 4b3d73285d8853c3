"""How large the overview of a thousand connectors is. Time is measured by `make bench`, not here."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator

import pytest

from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore, StoredConnector
from icestream.rest.answering import dumped
from icestream.rest.console.overview import Overview, short
from icestream.rest.console.stream import rows_event
from icestream.testing import FakeManagers

from .conftest import CONFIG, WORKER

THOUSAND = 1_000
_KB = 1_000


@pytest.fixture(scope="module")
def thousand() -> Iterator[tuple[ConnectorService, FakeManagers]]:
    store, managers = MemoryStore(), FakeManagers()
    service = ConnectorService(
        "worker-1:8083", store, WORKER, extras=Extras(patience=Patience(0.0, 5.0), cluster_id=lambda: "x")
    )
    for number in range(THOUSAND):
        topic = f"team-{number % 37}.orders-{number}"
        name = f"iceberg-sink-{number}"
        store.put(name, StoredConnector({**CONFIG, "name": name, "topics": topic}))
    yield service, managers
    service.close()


def test_the_overview_of_a_thousand_is_small(thousand: tuple[ConnectorService, FakeManagers]) -> None:
    service, _ = thousand
    chance, now = random.Random(5), 1_794_737_647_123
    overview = Overview(service, lambda: now)
    answer = overview.all()
    assert len(answer["rows"]) == THOUSAND
    for row in answer["rows"]:
        # As busy as can be: no two rows have the same numbers.
        name, topics, number = row[0], row[16], row[0].rpartition("-")[2]
        state = [name, "sink", "IcebergSinkConnector", "ok", "RUNNING", 2, 2, "worker-1:8083"]
        rate, fresh = short(chance.randrange(50_000) / 10), short(chance.randrange(200_000))
        committed = (now - chance.randrange(10**6)) // 1000 * 1000
        numbers = [rate, chance.randrange(100_000), fresh, committed, chance.randrange(10**8), 0]
        row[:] = [*state, *numbers, None, 0, topics, [f"streaming.orders_{number}"]]
    content = dumped(answer)
    assert len(content) <= 190 * _KB
    assert len(gzip.compress(content, 5)) <= 32 * _KB
    # Without topics and tables, which are for the search box.
    content = dumped({**answer, "rows": [row[:16] for row in answer["rows"]]})
    assert len(content) <= 150 * _KB
    assert len(gzip.compress(content, 5)) <= 25 * _KB


def test_only_what_has_changed_is_told_again(thousand: tuple[ConnectorService, FakeManagers]) -> None:
    service, _ = thousand
    overview = Overview(service, lambda: 1_794_737_647_123)
    first, _ = overview.changes(-1)
    assert len(first.rows) == THOUSAND and not first.is_complete
    again, states = overview.changes(first.version)
    assert (again.rows, again.gone, again.is_complete, states) == ([], [], True, [])
    service.history.touched("iceberg-sink-3")
    quiet, _ = overview.changes(first.version)
    assert quiet.rows == []


def test_a_thousand_busy_connectors_are_few_bytes_a_second(
    thousand: tuple[ConnectorService, FakeManagers], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = thousand
    chance, now = random.Random(5), [1_794_737_647_123]
    jobs: dict[str, JobStatus] = {}

    def commit(name: str) -> None:
        lag, rows = chance.randrange(1, 100_000), chance.randrange(10**8)
        through = now[0] - chance.randrange(20_000)
        progress = Progress(lag=lag, rows=rows, last_commit_ms=now[0], valid_through_ms=through)
        jobs[name] = JobStatus(State.RUNNING, progress=progress)

    names = service.names()
    for name in names:
        commit(name)
    monkeypatch.setattr(service.connectors, "job_status", lambda name: jobs[name])
    overview = Overview(service, lambda: now[0])
    version, told, seconds = overview.changes(-1)[0].version, 0, 30
    for second in range(seconds):
        now[0] += 1000
        # Each commits every ten seconds.
        for name in names[second % 10 :: 10]:
            commit(name)
        changes, _ = overview.changes(version)
        version = changes.version
        told += len(rows_event(changes, now[0]))
    assert told / seconds <= 50 * _KB
