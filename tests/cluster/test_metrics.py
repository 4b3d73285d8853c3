"""A connector moves from one worker to another: its series are never on both."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, call, eventually

pytestmark = pytest.mark.slow
NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Scrape:
    began: float
    ended: float
    connectors: frozenset[str]
    """Those that have any series at all."""


@dataclass
class Scraper:
    """Scrapes a worker without a pause."""

    worker: WorkerProcess
    done: threading.Event = field(default_factory=threading.Event)
    scrapes: list[Scrape] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self.done.set()
        self._thread.join()

    def now(self) -> frozenset[str]:
        return self.scrapes[-1].connectors if self.scrapes else frozenset()

    def first_with(self, name: str) -> Scrape | None:
        return next((one for one in self.scrapes if name in one.connectors), None)

    def _run(self) -> None:
        while not self.done.is_set():
            began = time.monotonic()
            text = httpx.get(f"{self.worker.url}/metrics", timeout=60, trust_env=False).text
            found = {
                sample.labels["connector"]
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.labels.get("connector") in NAMES
            }
            self.scrapes.append(Scrape(began, time.monotonic(), frozenset(found)))


def test_series_move_with_their_connector(
    broker: Broker, tmp_path: Path, group: str, start_worker: StartWorker
) -> None:
    topic = f"{group}-lines"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 1, 1)
    first = start_worker()
    for name in NAMES:
        config = {"connector.class": "FileStreamSink", "file": str(tmp_path / name), "topics": topic}
        call(first.url, "POST", "/connectors", {"name": name, "config": config})
    before = Scraper(first)
    scrapers = [before]
    try:
        eventually(lambda: before.now() == set(NAMES), first.text)
        second = start_worker()
        after = Scraper(second)
        scrapers.append(after)
        eventually(lambda: len(after.now()) == 2, second.text)
        eventually(lambda: before.now() | after.now() == set(NAMES), first.text)
        # The first worker is asked again after the second has them all.
        so_far = len(before.scrapes)
        eventually(lambda: len(before.scrapes) > so_far + 2, first.text)
    finally:
        for scraper in scrapers:
            scraper.stop()
    moved = {name: scrape for name in NAMES if (scrape := after.first_with(name))}
    assert len(moved) == 2
    for name, scrape in moved.items():
        later = [one for one in before.scrapes if one.began > scrape.ended]
        assert later and not [one for one in later if name in one.connectors]
    for worker in (first, second):
        text = httpx.get(f"{worker.url}/metrics", timeout=60, trust_env=False).text
        assert f"icestream_group_leader {1.0 if worker is first else 0.0}" in text
