"""A group of two workers in the browser: a connector of the other one, and what is seen when that dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.conftest import StartWorker, start_worker
from tests.cluster.workers import WorkerProcess, call, eventually
from tests.console.conftest import Pages

__all__ = ["start_worker"]
NAME = "lines"
pytestmark = pytest.mark.slow


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return f"seen-{request.node.name.replace('_', '-')[:60]}"


def test_the_other_workers_connector_is_whole_and_comes_over_when_that_one_dies(
    broker: Broker, group: str, tmp_path: Path, start_worker: StartWorker, pages: Pages
) -> None:
    workers = [start_worker(waits=False), start_worker(waits=False)]
    for worker in workers:
        eventually(worker.is_ready, worker.text)
    eventually(lambda: len(asked(workers[0], "workers")["members"]) == 2, workers[0].text)
    create(workers[0], broker, group, tmp_path)
    other = owner(workers)
    (here,) = [worker for worker in workers if worker is not other]
    page = pages.open(f"{here.url}/console/#/c/{NAME}")
    expect(page.get_by_text(f"RUNNING on {other.address}")).to_be_visible()
    produce(broker, group, 40)
    is_whole(page, group, read=40, end=40)
    since = page.get_by_text("history since").locator("time")
    began = since.get_attribute("datetime") or ""

    other.kill()
    pages.allow(r"status of (409|50\d)")  # until the group has noticed
    expect(page.get_by_text(f"RUNNING on {here.address}")).to_be_visible()
    produce(broker, group, 5)
    # The books go on. The history that the dead one kept is gone with it, and the page says since when it is.
    is_whole(page, group, read=45, end=45)
    expect(since).not_to_have_attribute("datetime", began)
    page.get_by_role("link", name="All batches").click()
    expect(page.get_by_text("The worker remembers batches since")).to_be_visible()
    committed = page.get_by_role("region", name="Batches").locator("tbody tr").filter(has_text="committed")
    assert sum(int(row.locator("td").nth(2).inner_text()) for row in committed.all()) == 5
    page.get_by_role("link", name="Events").click()
    events = page.get_by_role("region", name="Events").locator("tbody tr")
    expect(events.filter(has_text="the group gave it to this worker")).to_have_count(1)
    page.get_by_role("link", name="Workers").click()
    expect(page.get_by_role("region", name="Members").locator("tbody tr")).to_have_count(1)
    moved = page.get_by_role("region", name="Rebalances").locator("tbody tr").filter(has_text="1 left")
    expect(moved.filter(has_text=NAME)).to_have_count(1)


def create(worker: WorkerProcess, broker: Broker, topic: str, folder: Path) -> None:
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 1, 1)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(folder / NAME),
        "topics": topic,
        "value.converter.schemas.enable": "false",
        "key.converter.schemas.enable": "false",
    }
    call(worker.url, "POST", "/connectors", {"name": NAME, "config": config})


def runs(worker: WorkerProcess) -> bool:
    status = call(worker.url, "GET", f"/connectors/{NAME}/status")["connector"]
    return status == {**status, "state": "RUNNING", "worker_id": worker.address}


def owner(workers: list[WorkerProcess]) -> WorkerProcess:
    def found() -> WorkerProcess | None:
        return next((worker for worker in workers if runs(worker)), None)

    said: WorkerProcess = eventually(found, lambda: "\n".join(worker.text() for worker in workers))
    return said


def asked(worker: WorkerProcess, path: str, **query: str) -> Any:
    url, headers = f"{worker.url}/console/api/{path}", {"x-icestream-console": "1"}
    return httpx.get(url, params=query, headers=headers, timeout=60, trust_env=False).json()


def produce(broker: Broker, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(records):
        producer.produce(topic, json.dumps(f"line {number}"))
    assert producer.flush(60) == 0


def is_whole(page: Page, topic: str, *, read: int, end: int) -> None:
    """Books, partitions and batches are there, whoever runs the connector."""
    expect(page.get_by_role("region", name="Books")).to_contain_text(f"read{read}")
    expect(page.get_by_role("region", name="Books")).to_contain_text("balanced")
    lag = page.locator("section", has_text="Lag by partition").locator("tbody tr")
    expect(lag.filter(has_text=f"{topic}-0")).to_contain_text(f"{end}{end}0")
    batches = page.get_by_role("region", name="Batches").locator("tbody tr")
    expect(batches.filter(has_text="committed").first).to_be_visible()
