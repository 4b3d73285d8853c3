"""Jobs in processes of their own, in a cluster: a source, whose process is killed, then its worker."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, call, eventually
from tests.crashes.pipeline import values

pytestmark = [pytest.mark.slow, pytest.mark.crashes]


def process_of(worker: WorkerProcess) -> int:
    return int(re.findall(r"[|\[]lines\] runs in process (\d+)", worker.log.read_text())[-1])


def test_a_source_in_a_process_sends_each_line_once_whoever_is_killed(
    broker: Broker, start_worker: StartWorker, tmp_path: Path, group: str
) -> None:
    topic, file = f"{group}-lines", tmp_path / "in.txt"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 1, 1)
    string = "org.apache.kafka.connect.storage.StringConverter"
    settings = {"icestream_job_manager": "process", "exactly_once_source_support": "enabled"}
    workers = [start_worker(**settings), start_worker(**settings)]
    config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "value.converter": string,
    }
    written: list[str] = []

    def write(count: int) -> None:
        lines = [f"line {number}" for number in range(len(written), len(written) + count)]
        with file.open("a") as out:
            out.writelines(f"{line}\n" for line in lines)
        written.extend(lines)

    def wait_for_lines() -> None:
        def is_there() -> bool:
            return [value.decode() for value in values(broker.bootstrap, topic, 1)] == written

        eventually(is_there, lambda: "\n".join(worker.text() for worker in workers))

    def owner() -> WorkerProcess:
        def look() -> WorkerProcess | None:
            found = [one for one in workers if one.process is not None]
            told = call(found[0].url, "GET", "/connectors/lines/status")["connector"]
            running = told["worker_id"] if told["state"] == "RUNNING" else ""
            return next((one for one in found if one.address == running), None)

        found: WorkerProcess = eventually(look, lambda: "\n".join(worker.text() for worker in workers))
        return found

    write(100)
    call(workers[0].url, "POST", "/connectors", {"name": "lines", "config": config})
    wait_for_lines()
    first = owner()
    os.kill(process_of(first), signal.SIGKILL)
    write(100)
    wait_for_lines()

    write(100)
    first.kill()
    wait_for_lines()
    assert owner() is not first
    write(10)
    wait_for_lines()
