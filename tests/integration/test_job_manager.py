"""`icestream job-manager` as a process: by variables, with its HTTP answers, until it is told to stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.coordinator.job_manager import IcebergJobConfig
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics

COMMAND = (sys.executable, "-m", "icestream.cli.main", "job-manager")
SECRET = "hunter2-of-the-catalog"
PATIENCE = 120


@pytest.fixture
def variables(broker: Broker, tmp_path: Path) -> dict[str, str]:
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    topics.create("job-manager-control", 1, 1)
    found = {
        "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
        "CONNECT_GROUP_ID": "connect-job-manager",
        "CONTROL_TOPIC": "job-manager-control",
        "CATALOG_NAME": "lake",
        "CATALOG_CATALOG_IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "CATALOG_WAREHOUSE": f"file://{tmp_path}/warehouse",
        "CATALOG_JDBC_PASSWORD": SECRET,
        "JOB_ID": "orders",
        "COMMIT_INTERVAL_MINUTES": "0.05",
        "HTTP_PORT": "0",
    }
    open_catalog(IcebergJobConfig.from_environment(found).catalog_config).create_namespace_if_not_exists("db")
    return found


@pytest.fixture
def process(variables: Mapping[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (tmp_path / "log").open("wb") as output:
        started = subprocess.Popen(COMMAND, env={**os.environ, **variables}, stdout=output, stderr=output)
    yield started
    started.kill()
    started.wait(60)


def wait_for_text(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[1]


def wait_for_answer(url: str, path: str, pattern: str, log: Path) -> httpx.Response:
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = httpx.get(url + path, trust_env=False, timeout=30)
        if re.search(pattern, answer.text):
            return answer
        assert time.monotonic() < deadline, f"{answer.text}\n{log.read_text()}"
        time.sleep(0.1)


def test_a_job_manager_is_ready_tells_its_metrics_and_stops_when_told(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    url = wait_for_text(log, r"/metrics on (http://127\.0\.0\.1:\d+)")
    wait_for_answer(url, "/ready", '"ready"', log)
    assert httpx.get(f"{url}/live", trust_env=False).json()["status"] == "alive"
    wait_for_answer(url, "/metrics", r'icestream_job_state\{connector="orders",state="running"\} 1', log)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, log.read_text()
    assert SECRET not in log.read_text()


def test_every_variable_that_is_missing_is_named_and_nothing_starts() -> None:
    bare = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    ran = subprocess.run(COMMAND, env=bare, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 1
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "CONNECT_GROUP_ID", "CONTROL_TOPIC", "CATALOG_NAME"):
        assert f"environment variable {name} is missing" in ran.stderr
