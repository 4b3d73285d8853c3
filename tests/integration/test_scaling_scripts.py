"""The scripts of docs/deploy/kubernetes.md that need no Kubernetes: `scripts/*.sh`, run as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from icestream.embedded import ports
from icestream.embedded.kafka import Broker
from tests import long_form
from tests.kit.programs import needs_program

ROOT = Path(__file__).parents[2]
_NEEDS_JQ = needs_program("jq")


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # `icestream` of this Python, with the code of this folder.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **variables}
    command = [str(ROOT / "scripts" / script), *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=850)


@_NEEDS_JQ
@pytest.mark.slow
@pytest.mark.parametrize("workers", long_form.sized(2, 4))
def test_workers_share_connectors_and_take_those_of_one_that_is_killed(workers: int) -> None:
    sizes = {"WORKERS": str(workers), "CONNECTORS": str(workers), "RECORDS": "300"}
    ran = run("test-horizontal-scaling.sh", KAFKA_PORT=str(ports.free_port()), **sizes)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{workers} workers:\n" in ran.stdout
    assert f"one worker killed, {workers - 1} left:\n" in ran.stdout
    assert ran.stdout.count("600 in the topic, 600 in the table. None missing, none twice.") == workers
    assert ran.stdout.endswith(f"{workers} connectors: nothing is missing, nothing is there twice\n")


def test_load_is_generated(broker: Broker) -> None:
    ran = run("generate-test-load.sh", "500", TOPIC="some-load", KAFKA_BOOTSTRAP_SERVERS=broker.bootstrap)
    assert ran.returncode == 0, ran.stderr
    assert "500 records in 'some-load'" in ran.stdout


@pytest.mark.parametrize("wrong", ["many", "-1", "5; ls", ""])
def test_a_load_that_is_no_number_is_refused(wrong: str) -> None:
    ran = run("generate-test-load.sh", wrong or " ")
    assert ran.returncode == 2
    assert "is no number of records" in ran.stderr


@_NEEDS_JQ
def test_nothing_is_proved_where_no_worker_is() -> None:
    ran = run("verify-data-integrity.sh", ICESTREAM_URL=f"http://127.0.0.1:{ports.free_port()}")
    assert ran.returncode != 0
    assert "nothing is missing" not in ran.stdout
