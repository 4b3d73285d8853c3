"""Whoever is measured, as a process under a meter: a worker of ours with one connector, or a plain loop."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import Any, Protocol

from bench.sides import Side, ours
from bench.usage import TreeMeter
from bench.worker import RunFailed, running_worker
from icestream.embedded.process import spawn

NAME = "bench"


class Running(Protocol):
    meter: TreeMeter

    def begin(self) -> None:
        """The clock runs from here."""

    def check(self) -> None:
        """Raises RunFailed if it has ended or failed."""


class Ours:
    """A worker that is healthy; its connector is created by `begin`."""

    def __init__(self, worker: Any, config: Mapping[str, str]) -> None:
        self._worker, self._config = worker, config
        self.meter: TreeMeter = worker.meter

    def begin(self) -> None:
        self._worker.create(NAME, self._config)

    def check(self) -> None:
        self._worker.check(NAME)


class Peer:
    """A loop that is started by `begin`: what it needs is a second for Python's imports."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._process = spawn(command, output=log, die_with_parent=True)
        self._log = log
        self.meter = TreeMeter(self._process.pid)

    def begin(self) -> None: ...

    def check(self) -> None:
        if not self._process.is_alive() and "Traceback" in (told := self._log.read_text(errors="replace")):
            raise RunFailed(f"the plain loop ended: {told[-500:]}")

    def stop(self) -> None:
        self._process.send(SIGKILL)
        self._process.wait(10)


def exactly_once() -> Side:
    """A worker of a cluster, on which rows and offsets of a source are one transaction."""
    side = ours()
    topics = {f"{kind}.storage.topic": f"bench-{kind}" for kind in ("config", "offset", "status")}
    single = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return replace(
        side,
        command=lambda properties: [side.command(properties)[0], "distributed", str(properties)],
        worker={
            **side.worker,
            **topics,
            **single,
            "group.id": "bench",
            "exactly.once.source.support": "enabled",
        },
    )


@contextmanager
def running_ours(
    folder: Path, bootstrap: str, config: Mapping[str, str], side: Side | None = None
) -> Iterator[Running]:
    with running_worker(side or ours(), folder, bootstrap) as worker:
        yield Ours(worker, config)


@contextmanager
def running_peer(folder: Path, loop: str, given: Mapping[str, Any]) -> Iterator[Running]:
    command = [sys.executable, "-m", "bench.sinks.peers", loop, json.dumps(given)]
    peer = Peer(command, folder / "peer.log")
    try:
        with peer.meter:
            yield peer
    finally:
        peer.stop()
