"""The parts of the demo on one machine: broker, topics, tables, worker, connectors. Started and stopped by
`demo`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from icestream.api.errors import PreconditionError
from icestream.client import ConnectClient
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded import kafka
from icestream.embedded.home import home
from icestream.embedded.minio_tables import CONTROL_TOPIC, LOG_TABLES, LogTable, sqlite_catalog
from icestream.embedded.ports import free_port, is_free
from icestream.embedded.process import Process, spawn, start_mark
from icestream.kafka.topics import Topics

_WORKER_SECONDS = 90.0
_REST_PORT = 8083


@dataclass(frozen=True)
class Stack:
    folder: Path
    bootstrap: str
    url: str

    @property
    def catalog(self) -> dict[str, str]:
        return sqlite_catalog(str(self.folder))

    def config(self, log: LogTable) -> dict[str, str]:
        return log.connector_config(self.catalog)

    def kept_log(self) -> Path:
        """A copy of the worker's log that stays when everything else is removed."""
        return Path(shutil.copy(_log(self.folder), home() / "demo-worker.log"))


@contextmanager
def running_stack() -> Iterator[Stack]:
    """Everything up and ready; everything gone afterwards, whatever happens."""
    folder = home() / "demo"
    end_leftovers(folder)
    with ExitStack() as undo:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        note_process(folder, "demo", Process(os.getpid(), start_mark(os.getpid()) or ""))
        broker = undo.enter_context(kafka.running_broker(folder / "kafka"))
        stack = Stack(folder, broker.bootstrap, f"http://127.0.0.1:{_port()}")
        _create_topics(stack)
        for log in LOG_TABLES:
            with open_catalog(stack.config(log)) as catalog:
                log.create(catalog)
        undo.callback(_end, _start_worker(stack))
        _create_connectors(stack)
        yield stack


def note_process(folder: Path, name: str, process: Process) -> None:
    """Remember a process of the demo, for `end_leftovers` of the next one."""
    (folder / f"{name}.pid").write_text(f"{process.pid} {process.started}")


def end_leftovers(folder: Path) -> None:
    """End what a demo left behind that was killed. One that still runs is an error."""
    demo, worker = (_noted_process(folder, name) for name in ("demo", "worker"))
    if demo is not None and demo.is_alive():
        raise PreconditionError(f"a demo is running in {folder}; end it first: kill {demo.pid}")
    if worker is not None:
        _end(worker)
    kafka.stop(folder / "kafka")


def _noted_process(folder: Path, name: str) -> Process | None:
    try:
        pid, _, started = (folder / f"{name}.pid").read_text().partition(" ")
        return Process(int(pid), started)
    except (OSError, ValueError):
        return None


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A closed terminal and `kill` end the block as Ctrl-C does: everything that it started is stopped."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _port() -> int:
    return _REST_PORT if is_free(_REST_PORT) else free_port()


def _create_topics(stack: Stack) -> None:
    topics = Topics({"bootstrap.servers": stack.bootstrap})
    for log in LOG_TABLES:
        topics.create(log.topic, 3, 1)
    topics.create(CONTROL_TOPIC, 1, 1)


def _start_worker(stack: Stack) -> Process:
    properties = stack.folder / "worker.properties"
    lines = {
        "bootstrap.servers": stack.bootstrap,
        "listeners": stack.url,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": str(stack.folder / "offsets"),
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    command = [sys.executable, "-m", "icestream.cli.main", "standalone", str(properties)]
    log = _log(stack.folder)
    worker = spawn(command, output=log, die_with_parent=True)
    note_process(stack.folder, "worker", worker)
    deadline = time.monotonic() + _WORKER_SECONDS
    cluster = Topics({"bootstrap.servers": stack.bootstrap}).cluster_id()
    with ConnectClient(stack.url) as client:
        while not _is_worker_of(cluster, client):
            if not worker.is_alive() or time.monotonic() > deadline:
                _end(worker)
                raise PreconditionError(f"the worker did not start; the end of its log: {_last_line(log)}")
            time.sleep(0.1)
    return worker


def _log(folder: Path) -> Path:
    return folder / "worker.log"


def _is_worker_of(cluster: str, client: ConnectClient) -> bool:
    """Whether the demo's own worker is ready: another one may have taken the port meanwhile."""
    return client.is_healthy() and client.server().get("kafka_cluster_id") == cluster


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "(none)"


def _create_connectors(stack: Stack) -> None:
    with ConnectClient(stack.url) as client:
        for log in LOG_TABLES:
            client.create(log.connector, stack.config(log))


def _end(worker: Process) -> None:
    worker.send(signal.SIGTERM)
    if not worker.wait(15):
        worker.send(signal.SIGKILL)
        worker.wait(5)
