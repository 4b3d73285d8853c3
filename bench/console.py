"""`python -m bench.console`, which `make bench-console` calls: what the console's overview costs a worker.

A service with as many connectors as you like, jobs that only pretend, an hour of samples of lag for each. CPU
is that of the thread that looks.
"""

from __future__ import annotations

import gzip
import logging
import os
import random
import time
from collections.abc import Callable
from typing import Any, Final

import click

from icestream.api.status import Progress
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore, StoredConnector
from icestream.rest.answering import dumped
from icestream.rest.console.overview import Overview
from icestream.testing import FakeManagers

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_WORKER: Final = {"key.converter": _JSON, "value.converter": _JSON}
_CONFIG: Final = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}
_SAMPLES: Final = 360
_PATIENCE: Final = 120.0


@click.command()
@click.option("--connectors", default=1_000, show_default=True)
def main(connectors: int) -> None:
    logging.disable(logging.CRITICAL)
    service = _busy(connectors)
    overview = Overview(service, lambda: time.time_ns() // 1_000_000)
    _timed("overview, the first", overview.all)
    _timed("overview, nothing changed", overview.all)
    for name in service.names():
        service.history.touched(name)
    answer = _timed("overview, all have news", overview.all)
    content = _timed("written as JSON", lambda: dumped(answer))
    packed = _timed("packed", lambda: gzip.compress(content, 5))
    click.echo(f"{len(content):,} bytes, {len(packed):,} packed")
    # The threads of a thousand pretended jobs need not end in order.
    os._exit(0)


def _busy(connectors: int) -> ConnectorService:
    store, managers, chance = MemoryStore(), FakeManagers(), random.Random(1)
    extras = Extras(patience=Patience(0.0, 0.0))
    service = ConnectorService("worker-1:8083", store, _WORKER, extras=extras)
    for number in range(connectors):
        name = f"iceberg-sink-{number}"
        topic = f"team-{number % 37}.orders-{number}"
        store.put(name, StoredConnector({**_CONFIG, "name": name, "topics": topic}))
    service.connectors.use(managers)
    _wait(lambda: len(managers.made) == connectors)
    for manager in list(managers.made):
        lag, rows = chance.randrange(1, 100_000), chance.randrange(10**8)
        manager.progress = Progress(lag=lag, rows=rows, batches=1, last_commit_ms=time.time_ns() // 1_000_000)
        manager.wake()
    _wait(lambda: all(service.connectors.job_status(name).progress.rows for name in service.names()))
    for name in service.names():
        for at in range(_SAMPLES):
            service.history.sample(name, chance.randrange(10_000), 1.0, 100 * at)
    return service


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise click.ClickException("the pretended jobs do not start; is the machine busy?")
        time.sleep(0.1)


def _timed(what: str, work: Callable[[], Any]) -> Any:
    begun = time.thread_time()
    done = work()
    click.echo(f"{what:<28}{(time.thread_time() - begun) * 1000:6.1f} ms of CPU")
    return done


if __name__ == "__main__":
    main()
