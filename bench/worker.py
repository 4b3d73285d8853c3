"""A Kafka Connect worker as a process under a meter, spoken to by REST only. The same code for both sides."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import psutil  # type: ignore[import-untyped]

from bench.sides import Side, properties_text, worker_properties
from bench.usage import TreeMeter
from icestream.embedded import ports
from icestream.embedded.process import Process, spawn

_READY_S: Final = 120.0
_STOP_S: Final = 30.0


class RunFailed(Exception):
    """A side did not do its work; the message says what it said."""


class Worker:
    def __init__(self, client: httpx.Client, process: Process, meter: TreeMeter, log: Path) -> None:
        self._client = client
        self._process = process
        self._log = log
        self.meter = meter

    def create(self, name: str, config: Mapping[str, str]) -> None:
        answer = self._client.post("/connectors", json={"name": name, "config": dict(config)})
        if answer.status_code != 201:
            raise RunFailed(f"the connector was refused with {answer.status_code}: {answer.text}")

    def check_alive(self) -> None:
        if not self._process.is_alive():
            raise RunFailed(f"the worker ended: {self._last_words()}")

    def check(self, name: str) -> None:
        """Raise if the worker has ended, or the connector or one of its tasks has failed."""
        self.check_alive()
        answer = self._client.get(f"/connectors/{name}/status")
        if answer.status_code == 200:
            failed = failures(answer.json())
            if failed:
                raise RunFailed(f"connector {name} failed: {failed[0]}")

    def wait_until_running(self, name: str) -> None:
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            self.check(name)
            if self._client.get(f"/connectors/{name}/status").json().get("tasks"):
                return
            time.sleep(0.1)
        raise RunFailed(f"connector {name} has no task after {_READY_S:.0f} s: {self._last_words()}")

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            if not self._process.is_alive():
                raise RunFailed(f"the worker ended while starting: {self._last_words()}")
            with suppress(httpx.TransportError):
                if self._client.get("/health").status_code == 200:
                    return
            time.sleep(0.1)
        raise RunFailed(f"the worker is not healthy after {_READY_S:.0f} s: {self._last_words()}")

    def stop(self) -> None:
        """End the worker in good order, then by force whatever is left of its processes."""
        self._process.send(signal.SIGTERM)
        self._process.wait(_STOP_S)
        deadline = time.monotonic() + _STOP_S
        while (left := self.meter.living()) and time.monotonic() < deadline:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.05)

    def _last_words(self) -> str:
        return " / ".join(self._log.read_text(errors="replace").splitlines()[-5:]) or "it said nothing"


def failures(status: Mapping[str, Any]) -> list[str]:
    """The traces of what has failed in a connector's status."""
    parts = [status["connector"], *status.get("tasks", [])]
    return [part.get("trace", "no trace") for part in parts if part["state"] == "FAILED"]


@contextmanager
def running_worker(side: Side, folder: Path, bootstrap: str) -> Iterator[Worker]:
    """A healthy worker without connectors. It ends with the block, or with this process at the latest."""
    port = ports.free_port()
    properties = folder / "worker.properties"
    settings = worker_properties(side, bootstrap=bootstrap, port=port, offsets=folder / "offsets")
    properties.write_text(properties_text(settings))
    log = folder / "worker.log"
    process = spawn(side.command(properties), output=log, die_with_parent=True)
    address = f"http://{ports.HOST}:{port}"
    with TreeMeter(process.pid) as meter, httpx.Client(base_url=address, timeout=60) as client:
        worker = Worker(client, process, meter, log)
        try:
            worker.wait_until_healthy()
            yield worker
        finally:
            worker.stop()
