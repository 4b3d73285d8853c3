"""A worker's console over jobs that only pretend: real service, real REST, real history, made-up records.

For the browser tests and for `make screenshots`. Whoever changes what a connector tells does it through its
`FakeManager` (progress, failures) and through the history (batches, events).
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.api.history import BatchRecord, Event, Outcome, PartitionLag, TargetCommit
from icestream.api.status import Progress
from icestream.cluster.connector_registry import Patience
from icestream.cluster.history.history import History
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.settings.rest_settings import RestConfig
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.rest.server import HERE, RestServer, bind, serve
from icestream.testing import FakeManager, FakeManagers

JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
WORKER: Final = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
ICEBERG: Final = "org.apache.iceberg.connect.IcebergSinkConnector"
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE


class Clock:
    """The wall clock of the history: it can be put back, to tell what happened before."""

    def __init__(self) -> None:
        self._offset = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self._offset

    @contextmanager
    def at(self, ms: int) -> Iterator[None]:
        self._offset = ms - time.time_ns() // 1_000_000
        try:
            yield
        finally:
            self._offset = 0


@dataclass
class World:
    """One worker with its console at `url`."""

    service: ConnectorService
    managers: FakeManagers
    history: History
    clock: Clock
    server: RestServer
    random: random.Random = field(default_factory=lambda: random.Random(7))

    @property
    def url(self) -> str:
        return self.server.console_urls[0]

    def add(
        self, name: str, config: Mapping[str, str] | None = None, progress: Progress | None = None
    ) -> FakeManager:
        """A connector that runs."""
        self.service.create(name, {**iceberg(name), **(config or {}), "name": name})
        manager = self.managers.latest(name)
        if progress is not None:
            manager.advance(progress)
        return manager

    def batch(self, name: str, **facts: Any) -> BatchRecord:
        record = batch(self.clock(), self.random, **facts)
        self.history.batch(name, record)
        return record

    def event(self, name: str, kind: str, text: str, user: str = "") -> None:
        self.history.event(name, Event(self.clock(), kind, text, user))

    def empty(self) -> None:
        for name in self.service.names():
            self.service.delete(name)

    def live_through(
        self, name: str, table: str, minutes: int = 60, rate: int = 4000, ended: int = 0
    ) -> None:
        """Tell an hour of batches and samples, a point every ten seconds, with a wave of load in it; the
        last of them `ended` minutes ago."""
        end = self.clock() - ended * MINUTE
        sent, before = 0.0, float(rate * 10)
        for at in range(end - minutes * MINUTE, end, 10_000):
            wave = 1 + 0.35 * math.sin((end - at) / (9 * MINUTE)) + self.random.uniform(-0.06, 0.06)
            burst = 2.1 if 0 < (end - at) - 22 * MINUTE < 4 * MINUTE else 1.0
            came = rate * 10 * wave * burst
            sent += came
            lag = int(rate * (0.4 + wave * 0.5 + 2.2 * (burst - 1) * self.random.uniform(0.8, 1)))
            with self.clock.at(at):
                self.history.sample(name, lag, max(0.4, 1.2 * lag / rate), int(sent))
                # What comes in is written with the next batch.
                self.batch(name, read=int(0.3 * came + 0.7 * before), lag_after=lag, table=table)
            before = came


def iceberg(name: str) -> dict[str, str]:
    topic = name.rpartition("-")[2] or "t"
    return {
        "connector.class": ICEBERG,
        "tasks.max": "2",
        "topics": topic,
        "iceberg.tables": f"streaming.{topic}",
        "iceberg.catalog.type": "sql",
    }


def batch(
    now_ms: int,
    chance: random.Random,
    *,
    read: int = 40_000,
    rejected: Mapping[str, int] | None = None,
    filtered: Mapping[str, int] | None = None,
    lag_after: int | None = None,
    outcome: Outcome = Outcome.COMMITTED,
    table: str = "streaming.apilogs",
    note: str = "",
    id: str | None = None,
    seconds: float | None = None,
) -> BatchRecord:
    """A batch as a sink with two tasks tells it."""
    written = read - sum((rejected or {}).values()) - sum((filtered or {}).values())
    speed = chance.uniform(0.8, 1.25) * max(read, 1000) / 40_000
    inside = {"read": 0.9, "convert": 1.2, "transform": 0.14, "stage": 0.52}
    stages = {
        "plan": 0.03,
        "queue": 0.11 * chance.uniform(0.7, 1.6),
        **{name: spent * speed for name, spent in inside.items()},
    }
    longest = sum(stages[name] for name in inside) * chance.uniform(0.5, 0.58)
    is_over = outcome is not Outcome.UNDER_WAY
    if is_over:
        stages |= {"commit": chance.uniform(0.2, 0.42), "publish": chance.uniform(0.08, 0.2)}
    if outcome is Outcome.UNAVAILABLE:
        stages["commit"] = 8.4
        del stages["publish"]
    wall = longest + sum(spent for name, spent in stages.items() if name not in inside)
    has_landed = outcome is Outcome.COMMITTED
    target = TargetCommit(
        table,
        id=str(chance.randrange(10**18, 9 * 10**18)),
        rows=written,
        seconds=stages.get("commit", 0.0),
        file_bytes=tuple(int(written * 100 * chance.uniform(0.9, 1.1)) for _ in range(3)),
    )
    return BatchRecord(
        id=id or f"{chance.getrandbits(128):032x}",
        started_ms=now_ms - int(wall * 1000),
        outcome=outcome,
        seconds=seconds if seconds is not None else round(wall, 3),
        read=read,
        written=written if has_landed else 0,
        rejected=rejected or {},
        filtered=filtered or {},
        bytes=read * 863,
        lag_after=lag_after,
        valid_through_ms=now_ms - 1200 if has_landed else None,
        tasks=2,
        longest_task=longest,
        stages=stages,
        targets=(target,) if has_landed else (),
        note=note,
    )


def partitions(
    topic: str, lags: tuple[int, ...], now_ms: int, done: int = 4_012_000
) -> tuple[PartitionLag, ...]:
    return tuple(
        PartitionLag(
            topic, index, done - 9_173 * index, done - 9_173 * index + lag, now_ms - 900 - 310 * index
        )
        for index, lag in enumerate(lags)
    )


@contextmanager
def running_world(
    config: RestConfig = HERE, worker_id: str = "127.0.0.1:8083", **more: Any
) -> Iterator[World]:
    """`more` are parts of `Extras`."""
    managers, clock = FakeManagers(), Clock()
    history = History(clock)
    extras = Extras(
        cluster_id=lambda: "Mk3OEYBSD34fcwNTJENDM2", patience=Patience(5.0, 5.0), history=history, **more
    )
    service = ConnectorService(worker_id, MemoryStore(), WORKER, extras=extras)
    service.connectors.use(managers)
    service.ready()
    world = World(service, managers, history, clock, serve(service, bind(config)))
    try:
        yield world
    finally:
        # It may be another one than at first.
        world.server.stop()
        service.close()
