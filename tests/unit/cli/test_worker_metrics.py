"""`metrics.listeners` of a worker: what its jobs tell is told there and on REST, until they go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from icestream.api.history import BatchRecord, Outcome
from icestream.cli.standalone import StandaloneWorker
from icestream.cli.worker_process import DataPlane
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.embedded.ports import free_port
from icestream.testing import FakeManagers
from tests.unit.metrics.test_counters import LANDED

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "1",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def plane() -> DataPlane:
    return DataPlane(FakeManagers, lambda config: [])


@pytest.fixture
def worker(tmp_path: Path, port: int, plane: DataPlane) -> Iterator[StandaloneWorker]:
    config = {
        "bootstrap.servers": "127.0.0.1:1",
        "listeners": "http://127.0.0.1:0",
        "key.converter": JSON,
        "value.converter": JSON,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "metrics.listeners": f"http://127.0.0.1:{port}",
    }
    made = StandaloneWorker(parse_standalone(config), [], plane)
    yield made
    made.stop()


def read_by(url: str) -> dict[str, float]:
    """Records that each connector has read."""
    text = httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text
    found = re.findall(r'^icestream_records_read_total\{connector="(.*?)"\} (\S+)$', text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_what_jobs_tell_is_on_rest_and_on_the_listener(
    worker: StandaloneWorker, plane: DataPlane, port: int
) -> None:
    for name in ("a", "b"):
        worker.service.create(name, {**CONFIG, "name": name})
    plane.observers.batch("a", BatchRecord("b1", 1, Outcome.UNDER_WAY))
    plane.observers.batch("a", LANDED)
    plane.observers.batch("nobody's", LANDED)
    assert plane.observers.settle(60)
    for url in (worker.url, f"http://127.0.0.1:{port}"):
        assert read_by(url) == {"a": 10, "b": 0}
    worker.service.delete("a")
    assert read_by(worker.url) == {"b": 0}
