"""`kill -9` between every two steps of the file sink: no line is lost or repeated."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from icestream.api.offset_admin import OffsetEntry
from icestream.embedded.kafka import Broker
from icestream.jobs.offsets_admin import offset_admin
from icestream.kafka.topics import Topics
from tests.crashes.processes import Fault, JobProcess

_NUMBERS = itertools.count(1)

Start = Callable[..., "FileJobProcess"]


class FileJobProcess(JobProcess):
    def __init__(
        self,
        folder: Path,
        name: str,
        config: dict[str, str],
        worker: dict[str, str],
        faults: Sequence[Fault] = (),
    ) -> None:
        number = len(list(folder.glob("job-*.log")))
        spec = folder / f"job-{number}.json"
        content = {
            "name": name,
            "config": config,
            "worker": worker,
            "is_source": "Source" in config["connector.class"],
            "faults": [[fault.point, fault.action, fault.turn] for fault in faults],
        }
        spec.write_text(json.dumps(content))
        super().__init__(folder / f"job-{number}.log", ["-m", "tests.crashes.file_job_process", str(spec)])

    def kills_itself(self) -> None:
        self.wait(lambda: True if self.process.poll() == -9 else None, "it did not kill itself")

    def drains(self) -> None:
        self.wait_text("# drained")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[FileJobProcess] = []

    def begin(*arguments: object, **named: object) -> FileJobProcess:
        process = FileJobProcess(tmp_path, *arguments, **named)  # type: ignore[arg-type]
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"file-{next(_NUMBERS)}"
    Topics({"bootstrap.servers": broker.bootstrap}).create(name, 1, 1)
    return name


def committed(broker: Broker, topic: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    found: list[bytes] = []
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(message.value() or b"")
    finally:
        consumer.close()
    return found


def source_config(file: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "batch.size": "50",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


@pytest.mark.parametrize(
    ("point", "turn"),
    [
        ("anchored", 1),
        *itertools.product(["read", "journaled", "half written", "written", "appended", "published"], [1, 2]),
    ],
)
def test_a_sink_that_is_killed_repeats_and_loses_nothing(
    broker: Broker, topic: str, tmp_path: Path, start: Start, point: str, turn: int
) -> None:
    text, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    copy.write_bytes(b"was here before\n")
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    source = source_config(text, topic)
    sink = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(copy),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-letters",
    }
    text.write_bytes(b"1\nbad {\n2\n")
    feeder = start(topic, source, worker)
    feeder.wait(lambda: True if len(committed(broker, topic)) == 3 else None, "not fed")
    job = start(f"{topic}-sink", sink, worker, faults=[Fault(point, "kill", turn)])
    if turn == 2:
        job.wait(lambda: True if copy.read_bytes().endswith(b"2\n") else None, "no lines")
        with text.open("ab") as file:
            file.write(b"3\nbad }\n4\n")
    job.kills_itself()
    with text.open("ab") as file:
        file.write(b"5\n")
    feeder.wait(
        lambda: True if len(committed(broker, topic)) == len(text.read_bytes().splitlines()) else None,
        "not fed",
    )
    start(f"{topic}-sink", sink, worker).drains()
    lines = text.read_bytes().splitlines()
    good, bad = [line for line in lines if b"bad" not in line], [line for line in lines if b"bad" in line]
    assert copy.read_bytes().splitlines() == [b"was here before", *good]
    assert committed(broker, f"{topic}-letters") == bad


@pytest.mark.parametrize("is_reset", [True, False])
def test_offsets_moved_by_hand_win_over_a_batch_that_kafka_has_not_heard_of(
    broker: Broker, topic: str, tmp_path: Path, start: Start, is_reset: bool
) -> None:
    text, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    sink = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(copy),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    text.write_bytes(b"1\n2\n")
    start(topic, source_config(text, topic), worker).drains()
    start(f"{topic}-sink", sink, worker, faults=[Fault("appended", "kill", 1)]).kills_itself()
    assert copy.read_bytes() == b"1\n2\n"
    admin = offset_admin(worker)
    if is_reset:
        admin.reset(f"{topic}-sink", sink)
    else:
        partition = {"kafka_topic": topic, "kafka_partition": 0}
        admin.alter(f"{topic}-sink", sink, [OffsetEntry(partition, {"kafka_offset": 0})])
    start(f"{topic}-sink", sink, worker).drains()
    assert copy.read_bytes() == b"1\n2\n1\n2\n"
