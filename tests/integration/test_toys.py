"""Other people's connectors in a worker, as a user meets them: REST, the commands, records and `verify`.

Nothing in `icestream` knows of the two toys; they are installed by their entry points.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from icestream.client import ConnectClient
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from icestream.embedded.process import spawn
from icestream.kafka.topics import Topics
from tests.integration.worker_world import eventually
from tests.otlp_collector import Collector, attributes, running_collector

JSON = "org.apache.kafka.connect.json.JsonConverter"


def rows(folder: Path) -> list[tuple[str, int]]:
    """What the log of the sink names: all that a reader would see."""
    found = []
    for log in sorted(folder.glob("_log/*/*.json")):
        for name in json.loads(log.read_text())["files"]:
            found += [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return sorted((row["counter"], row["number"]) for row in found)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


def test_a_worker_runs_connectors_of_other_packages(
    broker: Broker, tmp_path: Path, toys: None, collector: Collector
) -> None:
    port, topic, folder = free_port(), "toys-numbers", tmp_path / "numbers"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 2, 1)
    settings = tmp_path / "worker.properties"
    settings.write_text(
        f"bootstrap.servers={broker.bootstrap}\nlisteners=http://127.0.0.1:{port}\n"
        f"key.converter={JSON}\nvalue.converter={JSON}\noffset.storage.file.filename={tmp_path}/offsets\n"
        f"icestream.traces.endpoint={collector.address}\n"
    )
    source = {"connector.class": "CounterSource", "topic": topic, "until": "250", "tasks.max": "2"}
    sink = {"connector.class": "JsonFolderSink", "topics": topic, "folder": str(folder)}
    command = [sys.executable, "-m", "icestream.cli.main"]
    worker = spawn(
        [*command, "standalone", str(settings)], output=tmp_path / "worker.log", die_with_parent=True
    )
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(ConnectClient(url).is_healthy, 300)
        listed = {one["class"] for one in httpx.get(f"{url}/connector-plugins").json()}
        assert {"com.example.CounterSourceConnector", "com.example.JsonFolderSinkConnector"} <= listed
        report = httpx.put(
            f"{url}/connector-plugins/JsonFolderSink/config/validate",
            json={**sink, "name": "toy-sink", "folder": None},
        ).json()
        wrong = [one["value"]["name"] for one in report["configs"] if one["value"]["errors"]]
        assert wrong == ["folder"]
        for name, config in (("toy-source", source), ("toy-sink", sink)):
            assert httpx.put(f"{url}/connectors/{name}/config", json=config).status_code == 201
        wanted = [(counter, number) for counter in "ab" for number in range(250)]
        eventually(lambda: len(rows(folder)) >= len(wanted), 180)
        assert rows(folder) == wanted
        status = httpx.get(f"{url}/connectors/toy-source/status").json()
        assert [task["state"] for task in status["tasks"]] == ["RUNNING", "RUNNING"]
        line = re.compile(rf" INFO +\S+ \[127\.0\.0\.1:{port}\|toy-sink\|batch-[0-9a-f-]{{36}}\] committed ")
        assert line.search((tmp_path / "worker.log").read_text())
        proof = subprocess.run(
            [*command, "verify", "toy-sink", "--url", url, "--bootstrap-servers", broker.bootstrap],
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert proof.returncode == 0, proof.stderr
        assert "500 in the topic, 500 in the table. None missing, none twice." in proof.stdout
    finally:
        worker.send(signal.SIGTERM)
        assert worker.wait(60), (tmp_path / "worker.log").read_text()[-2000:]
    assert_traces_of_batches(collector)


def assert_traces_of_batches(collector: Collector) -> None:
    """Each batch of the sink is a trace."""
    roots = [(span, attributes(span)) for span in collector.spans if span.name == "batch"]
    landed = {
        span.trace_id.hex(): said
        for span, said in roots
        if (said["icestream.connector"], said["icestream.batch.outcome"]) == ("toy-sink", "committed")
    }
    assert sum(said["icestream.records.written"] for said in landed.values()) == 500
    for trace, said in landed.items():
        assert said["icestream.batch.id"].replace("-", "") == trace
        stages = {span.name for span in collector.spans if span.trace_id.hex() == trace}
        assert {"batch", "plan", "commit", "publish"} <= stages
