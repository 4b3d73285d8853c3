"""A distributed worker with file connectors and the toy source, killed at random: no record lost or twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icestream.api.errors import NotReadyError
from icestream.client import ConnectClient
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from icestream.kafka.topics import Topics
from tests.crashes.processes import JobProcess, wait_for
from tests.crashes.test_sources import committed
from tests.source_examples import CounterExample, by_place

_KILLS = 4
_STRING = "org.apache.kafka.connect.storage.StringConverter"


@contextmanager
def growing(text: Path) -> Iterator[None]:
    """Appends lines, some in two pieces, until the end of the block."""
    chance = random.Random(7)
    ends = threading.Event()

    def write() -> None:
        number = 0
        with text.open("ab", buffering=0) as file:
            while not ends.is_set():
                lines = b"".join(b"line %d\n" % (number + one) for one in range(chance.randrange(1, 400)))
                number += lines.count(b"\n")
                cut = chance.randrange(len(lines))
                file.write(lines[:cut])
                time.sleep(0.005)
                file.write(lines[cut:])
                time.sleep(0.005)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def create(client: ConnectClient, name: str, config: dict[str, str]) -> None:
    def tried() -> bool | None:
        try:
            client.create(name, config)
        except NotReadyError:
            # The group has no leader yet, or is about to have another.
            return None
        return True

    wait_for(tried, 180, lambda: f"'{name}' could not be created")


def test_a_worker_that_is_killed_again_and_again_copies_everything_once(
    broker: Broker, tmp_path: Path, toys: None
) -> None:
    text, copy, topic = tmp_path / "in.txt", tmp_path / "out.txt", "file-worker"
    counter = CounterExample(tmp_path, "file-worker-counts", until=10_000)
    for name in (topic, counter.config["topic"]):
        Topics({"bootstrap.servers": broker.bootstrap}).create(name, 1, 1)
    port = free_port()
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "file-worker",
        "exactly.once.source.support": "enabled",
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": _STRING,
        "value.converter": _STRING,
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "icestream.file.connectors.enabled": "true",
        **{f"{kind}.storage.topic": f"file-worker-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    }
    properties = tmp_path / "worker.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    client = ConnectClient(f"http://127.0.0.1:{port}")

    def started(number: int) -> JobProcess:
        command = ["-m", "icestream.cli.main", "distributed", str(properties)]
        process = JobProcess(tmp_path / f"worker-{number}.log", command)
        process.wait(lambda: True if client.is_healthy() else None, "not healthy")
        return process

    chance = random.Random(5)
    worker = started(0)
    try:
        with growing(text):
            create(client, "in", {"connector.class": "FileStreamSource", "file": str(text), "topic": topic})
            create(client, "count", counter.config)
            create(client, "out", {"connector.class": "FileStreamSink", "file": str(copy), "topics": topic})
            for number in range(1, _KILLS + 1):
                before = copy.stat().st_size if copy.exists() else 0
                worker.wait(
                    lambda size=before: True if copy.exists() and copy.stat().st_size > size else None,  # type: ignore[misc]
                    "nothing is copied",
                )
                time.sleep(chance.random() * 1.5)
                worker.kill()
                worker = started(number)
        wait_for(
            lambda: True if copy.stat().st_size >= text.stat().st_size else None,
            240,
            lambda: f"{copy.stat().st_size} of {text.stat().st_size} bytes\n{worker.text[-5000:]}",
        )
        assert copy.read_bytes() == text.read_bytes()
        assert [value for _, value in committed(broker, topic)] == text.read_bytes().splitlines()
        everything = sum(map(len, counter.expected().values()))
        wait_for(
            lambda: True if len(committed(broker, counter.config["topic"])) >= everything else None,
            240,
            lambda: worker.text[-5000:],
        )
        assert by_place(counter, committed(broker, counter.config["topic"])) == counter.expected()
    finally:
        worker.kill()
