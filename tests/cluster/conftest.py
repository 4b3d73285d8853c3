"""A group of workers of its own for each test of clusters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from icestream.embedded.kafka import Broker
from tests.cluster.workers import WorkerProcess, cluster_properties, eventually, ours, theirs

StartWorker = Callable[..., WorkerProcess]
_NUMBERS = itertools.count(1)


@pytest.fixture
def group() -> str:
    return f"group-{next(_NUMBERS)}"


@pytest.fixture
def start_worker(broker: Broker, group: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts a worker of the group, ours or the real one, and waits until it is ready."""
    started: list[WorkerProcess] = []

    def start(*, real: bool = False, waits: bool = True, **more: str) -> WorkerProcess:
        properties = cluster_properties(broker.bootstrap, group, **more)
        make = theirs if real else ours
        worker = make(f"{'theirs' if real else 'ours'}-{len(started)}", tmp_path, properties)
        started.append(worker)
        worker.start()
        if waits:
            eventually(worker.is_ready, lambda: f"{worker.name} does not start: {worker.text()}", 240)
        return worker

    yield start
    for worker in started:
        worker.kill()
