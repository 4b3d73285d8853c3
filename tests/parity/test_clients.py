"""Clients that other people wrote for Kafka Connect, unmodified, through the life of a connector of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.clients import from_npm, from_pypi, node
from tests.parity.sending import Side
from tests.parity.table import SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.network]

CLIENT = Path(__file__).with_name("kafka_connect_client.js")


def config_for(side: Side) -> dict[str, str]:
    return {key: value.replace("@FOLDER@", side.folder) for key, value in SOURCE.items()}


def run(command: list[str], environment: dict[str, str]) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=240,
        env={**clean, **environment},
        stdin=subprocess.DEVNULL,
    )
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def until(state: str, read: Callable[[], dict[str, Any]]) -> None:
    deadline = time.monotonic() + 120
    while True:
        status = read()
        if {status["connector"]["state"], *(task["state"] for task in status["tasks"])} == {state}:
            return
        assert time.monotonic() < deadline, f"the connector does not become {state}: {status}"
        time.sleep(0.1)


def test_kafka_connect_py(ours: Side) -> None:
    library = from_pypi("kafka-connect-py-1.0.0", "kafka-connect-py==1.0.0")
    url = f"http://127.0.0.1:{ours.port}"

    def kc(*arguments: str) -> Any:
        command = [sys.executable, "-c", "from kafka_connect.cli import cli; cli()", "--url", url, *arguments]
        said = run(command, {"PYTHONPATH": str(library)})
        return json.loads(said) if said.strip() else None

    def status() -> Any:
        return kc("status", "from-py")

    config = config_for(ours)
    assert kc("info")["version"].startswith("4.3.1")
    assert kc("create", "-d", json.dumps({"name": "from-py", "config": config}))["name"] == "from-py"
    until("RUNNING", status)
    assert "from-py" in kc("list")
    assert kc("list", "--expand", "status")["from-py"]["status"]["connector"]["state"] == "RUNNING"
    assert kc("get", "from-py")["tasks"] == [{"connector": "from-py", "task": 0}]
    assert kc("list-tasks", "from-py")[0]["id"] == {"connector": "from-py", "task": 0}
    assert kc("task-status", "from-py", "0")["state"] == "RUNNING"
    kc("pause", "from-py")
    until("PAUSED", status)
    kc("resume", "from-py")
    until("RUNNING", status)
    kc("restart", "from-py", "--include-tasks")
    kc("restart-task", "from-py", "0")
    assert (
        kc("update", "from-py", "-d", json.dumps({**config, "batch.size": "5"}))["config"]["batch.size"]
        == "5"
    )
    assert kc("config", "from-py")["batch.size"] == "5"
    assert list(kc("list-topics", "from-py")) == ["from-py"]
    assert SOURCE["connector.class"] in {plugin["class"] for plugin in kc("list-plugins")}
    # Its command sends the config as one string, which Kafka Connect refuses too; its library does it right.
    script = (
        "import json, sys; from kafka_connect.kafka_connect import KafkaConnect; "
        "client = KafkaConnect(sys.argv[1]); "
        "print(json.dumps(client.validate_connector_config('FileStreamSource', json.loads(sys.argv[2]))))"
    )
    bad = json.dumps({**config, "name": "x", "tasks.max": "0"})
    report = json.loads(run([sys.executable, "-c", script, url, bad], {"PYTHONPATH": str(library)}))
    assert report["error_count"] == 1
    kc("delete", "from-py")
    assert "from-py" not in kc("list")


def wait_for(check: Callable[[], Any], seconds: float = 120) -> None:
    """Until it no longer fails: a job that was restarted needs a moment."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            check()
            return
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def test_kafka_connect_cli(ours: Side) -> None:
    # Its own requirements are pinned to what it was built with; of these it uses requests.
    libraries = [
        from_pypi("kafka-connect-cli-0.2.5", "--no-deps", "kafka-connect-cli==0.2.5"),
        from_pypi("kafka-connect-py-1.0.0", "kafka-connect-py==1.0.0"),
    ]
    if sys.version_info >= (3, 13):
        # It imports `cgi`, which Python no longer has.
        libraries.append(from_pypi("legacy-cgi-2.6.4", "legacy-cgi==2.6.4"))
    path = os.pathsep.join(map(str, libraries))

    def cli(*arguments: str) -> Any:
        command = [
            sys.executable,
            "-m",
            "kafka_connect",
            *arguments,
            "--url",
            f"http://127.0.0.1:{ours.port}",
        ]
        said = run(command, {"PYTHONPATH": path})
        assert not said.startswith("Error"), said
        return json.loads(said) if said.strip().startswith(("{", "[")) else said

    def connector(action: str, *arguments: str) -> Any:
        return cli("connector", action, "--name", "from-cli", *arguments)

    config = config_for(ours)
    connector("create", "--configuration", json.dumps(config))
    assert "from-cli" in [each["connector"] for each in cli("connector", "list")]
    assert connector("get")["connector"] == "from-cli"
    assert connector("configuration")["topic"] == "parity-out"
    connector("pause")
    connector("resume")
    connector("restart")
    assert (
        connector("update", "--configuration", json.dumps({**config, "batch.size": "5"}))["config"][
            "batch.size"
        ]
        == "5"
    )
    assert len(cli("task", "list", "--connector", "from-cli")) == 1
    cli("task", "restart", "--connector", "from-cli", "--task", "0")
    wait_for(lambda: cli("health-check"))
    connector("delete")
    assert "from-cli" not in [each["connector"] for each in cli("connector", "list")]


def test_kafka_connect_client_of_npm(ours: Side) -> None:
    modules = from_npm("kafka-connect-client-2.3.0", "kafka-connect-client@2.3.0") / "node_modules"
    command = [node(), str(CLIENT), str(ours.port), json.dumps(config_for(ours))]
    told = json.loads(run(command, {"NODE_PATH": str(modules)}))
    assert {name: answer["status"] for name, answer in told.items()} == {
        **dict.fromkeys(told, 200),
        "created": 201,
        "paused": 202,
        "resumed": 202,
        "restarted": 204,
        "stopped": 204,
        "deleted": 204,
    }
    assert "from-node" in told["listed"]["data"]
    assert told["config"]["data"]["batch.size"] == "5"
    assert told["offsets"]["data"].keys() == {"offsets"}
    assert told["validated"]["data"]["error_count"] == 1
