"""A worker as a process of its own, over jobs that only pretend: client, command line, signals, restart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from icestream.api.errors import (
    AlreadyExistsError,
    ConfigError,
    IcestreamError,
    NotFoundError,
    PreconditionError,
)
from icestream.cli.connectors import connectors
from icestream.client import ConnectClient
from icestream.rest.server import listen

PROGRAM = """
import sys, time
from pathlib import Path
from icestream import logs
from icestream.cli.standalone import StandaloneWorker
from icestream.cli.worker_process import DataPlane, run_until_told
from icestream.cluster.configs.properties import read_connector, read_properties
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.testing import FakeManagers

def prepare():
    while not Path(sys.argv[2]).exists():
        time.sleep(0.02)
    return FakeManagers(close_takes=0.2)

logs.configure()
config = parse_standalone(read_properties(Path(sys.argv[1])))
files = [read_connector(Path(name)) for name in sys.argv[3:]]
worker = StandaloneWorker(config, files, DataPlane(prepare, lambda _: []))
print(worker.url, flush=True)
run_until_told(worker)
"""
CONFIG = {
    "connector.class": "IcebergSink",
    "tasks.max": "2",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
    "iceberg.catalog.s3.secret-access-key": "hush-hush",
}


@dataclass
class WorkerProcess:
    process: subprocess.Popen[str]
    client: ConnectClient
    log: Path

    def wait_ready(self) -> None:
        deadline = time.monotonic() + 120
        while not self.client.is_healthy():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


class Place:
    """A folder with a worker's config; starts workers in it and cleans up after them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[WorkerProcess] = []
        converter = "org.apache.kafka.connect.json.JsonConverter"
        (folder / "worker.properties").write_text(
            f"bootstrap.servers=127.0.0.1:1\nlisteners=http://127.0.0.1:0\nkey.converter={converter}\n"
            f"value.converter={converter}\nvalue.converter.schemas.enable=false\n"
            f"offset.storage.file.filename={folder}/offsets\n"
        )

    def start(self, *files: Path, spark_starts: bool = True) -> WorkerProcess:
        if spark_starts:
            self.start_spark()
        log = self.folder / f"log-{len(self._started)}"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    PROGRAM,
                    str(self.folder / "worker.properties"),
                    str(self.folder / "spark"),
                    *map(str, files),
                ],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, log.read_text()
        self._started.append(WorkerProcess(process, ConnectClient(url), log))
        return self._started[-1]

    def start_spark(self) -> None:
        """Let the data plane of all workers here come up."""
        (self.folder / "spark").touch()

    def clean(self) -> None:
        for worker in self._started:
            worker.client.close()
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait(60)
            if worker.process.stdout:
                worker.process.stdout.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.clean()


def test_rest_answers_before_spark_does(place: Place) -> None:
    worker = place.start(spark_starts=False)
    assert not worker.client.is_healthy()
    worker.client.create("sink", CONFIG)
    assert worker.client.status("sink").state == "UNASSIGNED"
    place.start_spark()
    worker.wait_ready()
    deadline = time.monotonic() + 60
    while worker.client.status("sink").state != "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_every_action_is_done_when_it_is_answered(place: Place) -> None:
    worker = place.start()
    worker.wait_ready()
    client = worker.client
    client.create("sink", CONFIG)
    steps: list[tuple[Callable[[], None], str]] = [
        (lambda: client.pause("sink"), "PAUSED"),
        (lambda: client.resume("sink"), "RUNNING"),
        (lambda: client.restart("sink"), "RUNNING"),
        (lambda: client.stop("sink"), "STOPPED"),
        (lambda: client.resume("sink"), "RUNNING"),
    ]
    for act, state in steps:
        act()
        assert client.status("sink").state == state
    client.delete("sink")
    assert client.names() == []


def test_the_client_raises_our_errors(place: Place) -> None:
    client = place.start().client
    client.create("sink", CONFIG)
    with pytest.raises(AlreadyExistsError, match="already exists"):
        client.create("sink", CONFIG)
    with pytest.raises(NotFoundError, match="No status found for connector no"):
        client.status("no")
    with pytest.raises(ConfigError, match="Value must be at least 1"):
        client.put_config("sink", {**CONFIG, "tasks.max": "0"})
    assert client.validate("IcebergSink", {**CONFIG, "name": "x"})["error_count"] == 0
    assert client.server()["kafka_cluster_id"] is None


def test_states_and_files_after_a_restart(place: Place) -> None:
    file = place.folder / "from-file.json"
    file.write_text(json.dumps({"name": "from-file", "config": CONFIG}))
    worker = place.start(file)
    worker.wait_ready()
    for name in ("paused", "stopped"):
        worker.client.create(name, CONFIG)
    worker.client.pause("paused")
    worker.client.stop("stopped")
    assert worker.end() == 0
    file.write_text(json.dumps({"name": "from-file", "config": {**CONFIG, "tasks.max": "1"}}))
    again = place.start(file)
    again.wait_ready()
    deadline = time.monotonic() + 60
    wanted = {"from-file": "RUNNING", "paused": "PAUSED", "stopped": "STOPPED"}
    while {view.name: view.state for view in again.client.overview()} != wanted:
        assert time.monotonic() < deadline, again.client.overview()
        time.sleep(0.02)
    assert again.client.config("from-file")["tasks.max"] == "1"


def test_states_survive_a_kill(place: Place) -> None:
    worker = place.start()
    worker.wait_ready()
    worker.client.create("sink", CONFIG)
    worker.client.pause("sink")
    assert worker.end(signal.SIGKILL) == -signal.SIGKILL
    again = place.start()
    again.wait_ready()
    assert [(view.name, view.state) for view in again.client.overview()] == [("sink", "PAUSED")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("spark_starts", [True, False])
def test_a_signal_ends_the_worker_whether_spark_has_started_or_never_will(
    place: Place, number: int, spark_starts: bool
) -> None:
    worker = place.start(spark_starts=spark_starts)
    worker.client.create("sink", CONFIG)
    assert worker.end(number) == 0
    assert "worker stopped" in worker.log.read_text()


def test_no_secret_is_logged(place: Place) -> None:
    worker = place.start()
    worker.client.create("sink", CONFIG)
    worker.end()
    assert "[hidden]" in worker.log.read_text()
    assert "hush-hush" not in worker.log.read_text()


def test_the_live_table_as_json_and_text(place: Place) -> None:
    worker = place.start()
    worker.wait_ready()
    worker.client.create("sink", {**CONFIG, "my.note": "x"})
    runner = CliRunner()
    text = runner.invoke(connectors, ["--url", worker.client.url])
    assert text.exit_code == 0
    assert "sink" in text.output
    assert "RUNNING" in text.output
    assert "sink: warning: 'my.note' is not a known configuration" in text.output
    machine = runner.invoke(connectors, ["-o", "json"], env={"ICESTREAM_URL": worker.client.url})
    assert json.loads(machine.output)[0]["progress"]["rows"] == 0


def test_nobody_at_the_address_is_one_sentence() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
    with (
        ConnectClient(f"http://127.0.0.1:{port}") as client,
        pytest.raises(PreconditionError, match="no worker answers at http"),
    ):
        client.names()


def test_a_foreign_server_is_one_sentence(tmp_path: Path) -> None:
    with ConnectClient("nonsense") as client, pytest.raises(IcestreamError, match="check the address"):
        client.names()


def test_a_taken_port_is_one_sentence() -> None:
    with (
        listen("127.0.0.1", 0) as taken,
        pytest.raises(PreconditionError, match="is taken; stop what uses it"),
    ):
        listen("127.0.0.1", taken.getsockname()[1])


def test_the_command_refuses_a_broken_file_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text("bootstrap.server=x\n")
    done = subprocess.run(
        [sys.executable, "-m", "icestream.cli.main", "standalone", str(tmp_path / "worker.properties")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 1
    assert "did you mean 'bootstrap.servers'?" in done.stderr
    assert "Traceback" not in done.stderr
