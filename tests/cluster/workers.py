"""Workers of a cluster as processes: ours, and the real Kafka Connect's on the same topics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from icestream.embedded import launch
from icestream.embedded.java import java
from icestream.embedded.ports import free_port
from tests.java_libraries import fetch

KAFKA = "4.3.1"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PATIENCE = 240.0
_TAKEN: list[int] = []


@dataclass
class WorkerProcess:
    """A worker that answers at `url`. It dies with the tests at the latest."""

    name: str
    folder: Path
    command: Callable[[Path], Sequence[str]]
    properties: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.properties["listeners"]

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        file = self.folder / f"{self.name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, launch.__file__, str(os.getpid()), *self.command(file)],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=30, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def send(self, number: signal.Signals) -> None:
        """To the worker and everything it started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self._reap()

    def _reap(self) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
        self.process = None

    def text(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""


def call(url: str, verb: str, path: str, body: Any = None, *, expect: Sequence[int] = ()) -> Any:
    """The body of an answer; a request that comes during a rebalance is repeated, as a client would."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = httpx.request(verb, f"{url}{path}", json=body, timeout=120, trust_env=False)
        if answer.status_code != 409 or 409 in expect or time.monotonic() > deadline:
            break
        time.sleep(0.3)
    assert answer.status_code in (expect or (200, 201, 202, 204)), (
        verb,
        path,
        answer.status_code,
        answer.text,
    )
    return answer.json() if answer.content else None


def eventually(check: Callable[[], Any], otherwise: Callable[[], str], seconds: float = PATIENCE) -> Any:
    """What `check` returns once it is true; it may fail until then."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := check():
                return found
        except (httpx.HTTPError, AssertionError, KeyError, FileNotFoundError):
            pass
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.2)


def cluster_properties(bootstrap: str, group: str, **more: str) -> dict[str, str]:
    """A worker's properties, the same for both kinds; each worker has its own port."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "listeners": f"http://127.0.0.1:{_own_port()}",
        "key.converter": JSON,
        "value.converter": JSON,
        **{
            f"{kind}.storage.{key}": value
            for kind in ("offset", "config", "status")
            for key, value in (("topic", f"{group}-{kind}"), ("replication.factor", "1"))
        },
        "offset.flush.interval.ms": "500",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
        "icestream.file.connectors.enabled": "true",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def _own_port() -> int:
    """A port that no worker of these tests has, even one that is dead for the moment."""
    port = free_port(avoid=_TAKEN)
    _TAKEN.append(port)
    return port


def ours(name: str, folder: Path, properties: Mapping[str, str]) -> WorkerProcess:
    def command(file: Path) -> list[str]:
        return [sys.executable, "-m", "icestream.cli.main", "distributed", str(file)]

    return WorkerProcess(name, folder, command, properties)


def theirs(name: str, folder: Path, properties: Mapping[str, str]) -> WorkerProcess:
    """The real Kafka Connect, with its file connectors."""
    library = real_connect_jars()

    def command(file: Path) -> list[str]:
        return [
            java(),
            "-Xmx256m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *("-cp", f"{library}/*"),
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(file),
        ]

    return WorkerProcess(name, folder, command, properties)


def real_connect_jars() -> Path:
    return fetch("kafka-connect-files")
