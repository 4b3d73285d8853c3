"""A cluster of Kafka Connect is taken over on the same topics, and handed back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.conftest import StartWorker
from tests.cluster.workers import WorkerProcess, call, eventually

pytestmark = [pytest.mark.slow, pytest.mark.network]


class Lines:
    """A file that a source copies to a topic, and the files that sinks copy it to."""

    def __init__(self, folder: Path, topic: str) -> None:
        self.folder = folder
        self.topic = topic
        self.written: list[str] = []
        self.file = folder / "in.txt"

    def write(self, *lines: str) -> None:
        with self.file.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.written += lines

    def source(self) -> dict[str, str]:
        return {"connector.class": "FileStreamSource", "file": str(self.file), "topic": self.topic}

    def sink(self, name: str) -> dict[str, str]:
        return {"connector.class": "FileStreamSink", "file": str(self.folder / name), "topics": self.topic}

    def copied(self, name: str) -> list[str]:
        return (self.folder / name).read_text().splitlines()

    def wait_for_copy(self, name: str, worker: WorkerProcess) -> None:
        eventually(
            lambda: len(self.copied(name)) >= len(self.written),
            lambda: f"{name} has {self.copied(name)[-3:]}: {worker.text()}",
        )
        assert self.copied(name) == self.written


def states(worker: WorkerProcess) -> dict[str, Any]:
    shown = call(worker.url, "GET", "/connectors?expand=status&expand=info")
    return {
        name: (
            both["status"]["connector"]["state"],
            [task["state"] for task in both["status"]["tasks"]],
            both["info"]["config"],
            both["info"]["type"],
        )
        for name, both in shown.items()
    }


def wait_for_states(worker: WorkerProcess, wanted: dict[str, Any]) -> None:
    eventually(lambda: states(worker) == wanted, lambda: f"{states(worker)} is not {wanted}: {worker.text()}")


def offsets(worker: WorkerProcess, name: str) -> Sequence[Any]:
    return list(call(worker.url, "GET", f"/connectors/{name}/offsets")["offsets"])


def test_taken_over_and_handed_back(
    start_worker: StartWorker, broker: Broker, group: str, tmp_path: Path
) -> None:
    lines = Lines(tmp_path, f"{group}-lines")
    Topics({"bootstrap.servers": broker.bootstrap}).create(lines.topic, 1, 1)
    lines.write("one", "two", "three")
    theirs = start_worker(real=True)
    call(theirs.url, "POST", "/connectors", {"name": "source", "config": lines.source()})
    call(theirs.url, "POST", "/connectors", {"name": "sink", "config": lines.sink("out.txt")})
    paused = {"name": "paused", "initial_state": "PAUSED", "config": lines.sink("paused.txt")}
    call(theirs.url, "POST", "/connectors", paused)
    call(theirs.url, "POST", "/connectors", {"name": "stopped", "config": lines.sink("stopped.txt")})
    lines.wait_for_copy("out.txt", theirs)
    call(theirs.url, "PUT", "/connectors/stopped/stop")
    wanted = {
        "source": ("RUNNING", ["RUNNING"], {**lines.source(), "name": "source"}, "source"),
        "sink": ("RUNNING", ["RUNNING"], {**lines.sink("out.txt"), "name": "sink"}, "sink"),
        "stopped": ("STOPPED", [], {**lines.sink("stopped.txt"), "name": "stopped"}, "sink"),
    }
    eventually(lambda: {name: states(theirs)[name] for name in wanted} == wanted, lambda: str(states(theirs)))
    eventually(lambda: offsets(theirs, "source") and offsets(theirs, "sink"), theirs.text)
    known = {name: offsets(theirs, name) for name in ("source", "sink")}
    theirs.stop()

    ours = start_worker()
    eventually(
        lambda: {n: states(ours)[n] for n in wanted} == wanted, lambda: f"{states(ours)} {ours.text()}"
    )
    assert states(ours)["paused"][0] == "PAUSED"
    assert {name: offsets(ours, name) for name in known} == known
    lines.write("four", "five")
    lines.wait_for_copy("out.txt", ours)
    renamed = {**lines.sink("renamed.txt"), "name": "stopped"}
    call(ours.url, "PUT", "/connectors/stopped/config", renamed)
    call(ours.url, "DELETE", "/connectors/stopped/offsets")
    call(ours.url, "PUT", "/connectors/stopped/resume")
    lines.wait_for_copy("renamed.txt", ours)
    call(ours.url, "DELETE", "/connectors/paused")
    call(ours.url, "PUT", "/connectors/sink/pause")
    eventually(lambda: states(ours)["sink"][0] == "PAUSED", ours.text)
    reached = offsets(ours, "source")
    ours.stop()

    theirs.start()
    eventually(theirs.is_ready, theirs.text)
    wanted = {
        "source": ("RUNNING", ["RUNNING"], {**lines.source(), "name": "source"}, "source"),
        "sink": ("PAUSED", ["PAUSED"], {**lines.sink("out.txt"), "name": "sink"}, "sink"),
        "stopped": ("RUNNING", ["RUNNING"], renamed, "sink"),
    }
    wait_for_states(theirs, wanted)
    assert offsets(theirs, "source") == reached
    lines.write("six")
    lines.wait_for_copy("renamed.txt", theirs)
    call(theirs.url, "PUT", "/connectors/sink/resume")
    lines.wait_for_copy("out.txt", theirs)


def test_the_two_kinds_never_work_in_one_group(start_worker: StartWorker) -> None:
    theirs = start_worker(real=True)
    ours = start_worker(waits=False)
    eventually(lambda: "members that are not Icestream workers" in ours.text(), ours.text)
    assert theirs.is_ready()
