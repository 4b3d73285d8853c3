"""The wheel in an environment of its own runs the demo to its proof, and starts workers by the commands of
Kafka Connect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from icestream import __version__
from icestream.embedded.home import home
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from tests.docs_commands import ROOT
from tests.packages.conftest import Dist, Installed

PATIENCE: Final = 240.0
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


def files_of(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: one.CRC for one in archive.infolist() if not one.filename.endswith("RECORD")}


def test_the_wheel_has_every_file_of_the_package(dist: Dist) -> None:
    within = [file for file in (ROOT / "icestream").rglob("*") if file.is_file()]
    expected = {str(file.relative_to(ROOT)) for file in within if "__pycache__" not in file.parts}
    assert expected - set(files_of(dist.wheel)) == set()
    assert any(name.endswith(".js") for name in files_of(dist.wheel))


def test_the_sdist_builds_the_wheel_that_the_tree_builds(dist: Dist, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    (direct,) = tmp_path.glob("*.whl")
    assert files_of(direct) == files_of(dist.wheel)
    with tarfile.open(dist.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "scripts/check-release"} <= names


def test_the_package_knows_its_version_and_lacks_nothing(installed: Installed, tmp_path: Path) -> None:
    def said(*command: str) -> str:
        ran = subprocess.run(
            command, cwd=tmp_path, env=installed.environ, capture_output=True, text=True, timeout=PATIENCE
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    assert said(installed.command("icestream"), "--version") == f"icestream {__version__}\n"
    metadata = "import importlib.metadata as m, icestream; print(m.version('icestream'), icestream.__file__)"
    version, place = said(installed.command("python"), "-c", metadata).split()
    assert version == __version__
    assert place.startswith(str(installed.prefix))
    said(installed.command("python"), "-m", "pip", "check")


def test_the_demo_ends_with_the_proof(installed: Installed, tmp_path: Path) -> None:
    own = tmp_path / "home"
    own.mkdir()
    (home() / "jars").mkdir(parents=True, exist_ok=True)
    (own / "jars").symlink_to(home() / "jars")
    ran = subprocess.run(
        [installed.command("icestream"), "demo", "--records", "3000", "--bad", "9"],
        cwd=tmp_path,
        env={**installed.environ, "ICESTREAM_HOME": str(own)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert ran.stdout.count("None missing, none twice.") == 3


class Worker:
    """A worker that a start command has started, asked by REST."""

    def __init__(self, port: int, log: Path) -> None:
        self._url, self._log = f"http://127.0.0.1:{port}", log

    def wait(self, holds: Callable[[httpx.Client], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as client:
            while True:
                try:
                    if holds(client):
                        return
                except httpx.HTTPError:
                    pass
                assert time.monotonic() < deadline, self._log.read_text() if self._log.exists() else "no log"
                time.sleep(0.3)

    def is_healthy(self, client: httpx.Client) -> bool:
        return client.get("/health").status_code == 200


@pytest.fixture
def stop() -> Iterator[list[int]]:
    """Process ids to end with the test, each the leader of a session of its own."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and not _is_gone(pid):
            time.sleep(0.1)


def _is_gone(pid: int) -> bool:
    try:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return True
    except ChildProcessError:
        pass
    return not Path(f"/proc/{pid}").exists()


def standalone_files(folder: Path, broker: Broker, port: int, name: str) -> None:
    config = folder / "config"
    config.mkdir()
    (config / "connect-standalone.properties").write_text(
        f"bootstrap.servers={broker.bootstrap}\nkey.converter={JSON}\nvalue.converter={JSON}\n"
        f"offset.storage.file.filename={folder}/connect.offsets\nlisteners=http://127.0.0.1:{port}\n"
        "icestream.file.connectors.enabled=true\n"
    )
    (config / "source-connector.properties").write_text(
        f"name={name}\nconnector.class=FileStreamSource\nfile={folder}/in.txt\ntopic={name}\n"
    )
    (folder / "in.txt").write_text("one\ntwo\n")


def test_the_standalone_command_of_kafka_starts_a_worker_with_its_connectors(
    installed: Installed, broker: Broker, tmp_path: Path, stop: list[int]
) -> None:
    port = free_port()
    standalone_files(tmp_path, broker, port, "wheel-source")
    command = "connect-standalone.sh config/connect-standalone.properties config/source-connector.properties"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command.split(), cwd=tmp_path, env=installed.environ, stdout=log, stderr=log
        )
    stop.append(process.pid)
    worker = Worker(port, tmp_path / "log")
    worker.wait(
        lambda client: client.get("/connectors/wheel-source/status").json()["connector"]["state"] == "RUNNING"
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0


def test_a_daemon_runs_on_after_its_start_command(
    installed: Installed, broker: Broker, tmp_path: Path, stop: list[int]
) -> None:
    port = free_port()
    standalone_files(tmp_path, broker, port, "wheel-daemon")
    command = (
        "connect-standalone -daemon config/connect-standalone.properties config/source-connector.properties"
    )
    ran = subprocess.run(
        command.split(),
        cwd=tmp_path,
        env={**installed.environ, "LOG_DIR": str(tmp_path / "logs of it")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    (pid,) = re.findall(r"pid (\d+)", ran.stdout)
    stop.append(int(pid))
    worker = Worker(port, tmp_path / "logs of it" / "connectStandalone.out")
    worker.wait(worker.is_healthy)


@pytest.mark.parametrize("command", ["connect-distributed", "connect-distributed.sh"])
def test_the_distributed_command_of_kafka_starts_a_member_of_the_group(
    command: str, installed: Installed, broker: Broker, tmp_path: Path, stop: list[int]
) -> None:
    port, group = free_port(), f"{command.replace('.', '-')}-of-the-wheel"
    topics = "".join(
        f"{kind}.storage.topic={group}-{kind}\n{kind}.storage.replication.factor=1\n"
        for kind in ("config", "offset", "status")
    )
    (tmp_path / "connect-distributed.properties").write_text(
        f"bootstrap.servers={broker.bootstrap}\ngroup.id={group}\nkey.converter={JSON}\nvalue.converter={JSON}\n"
        f"{topics}listeners=http://127.0.0.1:{port}\nrest.advertised.host.name=127.0.0.1\n"
    )
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [command, "connect-distributed.properties"],
            cwd=tmp_path,
            env=installed.environ,
            stdout=log,
            stderr=log,
        )
    stop.append(process.pid)
    worker = Worker(port, tmp_path / "log")
    worker.wait(lambda client: worker.is_healthy(client) and client.get("/connectors").json() == [])
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0
