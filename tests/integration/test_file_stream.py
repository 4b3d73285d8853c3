"""FileStreamSource and FileStreamSink: Kafka's quickstart, and the real Kafka Connect beside ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from icestream.api.offset_admin import OffsetEntry
from icestream.client import ConnectClient
from icestream.embedded import launch
from icestream.embedded.java import java
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from icestream.jobs.offsets.source_offsets import OffsetFile
from icestream.kafka.topics import Topics
from tests.java_libraries import fetch

pytestmark = [pytest.mark.slow, pytest.mark.network]

# The keys and values of the files that Kafka ships for its quickstart.
WORKER = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.file.filename": "/tmp/connect.offsets",
    "offset.flush.interval.ms": "10000",
    "plugin.path": "libs/connect-file-4.3.1.jar",
}
SOURCE = {
    "name": "local-file-source",
    "connector.class": "FileStreamSource",
    "tasks.max": "1",
    "file": "test.txt",
    "topic": "connect-test",
}
SINK = {
    "name": "local-file-sink",
    "connector.class": "FileStreamSink",
    "tasks.max": "1",
    "file": "test.sink.txt",
    "topics": "connect-test",
}
ODD_LINES = (
    b'plain\nwith "quotes" and \\ and / \n\ttab\x01\x1f\x7f\n\ncarriage\r\nold mac\rlast of them\r\n'
    + "ünïcode 漢字 🙂\n".encode()
    + b"not \xff utf-8 \xe2\x82\n"
)


def eventually(holds: Callable[[], bool], otherwise: Callable[[], str], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.1)


def properties(path: Path, settings: Mapping[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


class Side:
    """A standalone worker, ours or the real one, in a folder of its own connectors' files."""

    def __init__(self, folder: Path, broker: Broker, command: Sequence[str]) -> None:
        self.folder = folder
        self._bootstrap = broker.bootstrap
        self._command = command

    @contextmanager
    def running(
        self, *connectors: Mapping[str, str], offsets: str = "connect.offsets"
    ) -> Iterator[ConnectClient]:
        """The worker with these connectors; it is told to stop at the end, so that it saves its offsets."""
        port = free_port()
        self.log = self.folder / f"{port}.log"
        worker = {
            **WORKER,
            "bootstrap.servers": self._bootstrap,
            "offset.storage.file.filename": offsets,
            "listeners": f"http://127.0.0.1:{port}",
        }
        files = [properties(self.folder / f"{one['name']}.properties", one) for one in connectors]
        worker_file = properties(self.folder / f"worker-{port}.properties", worker)
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, launch.__file__, str(os.getpid()), *self._command, worker_file, *files],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            client = ConnectClient(f"http://127.0.0.1:{port}")
            eventually(lambda: client.is_healthy() or process.poll() is not None, self.log.read_text)
            assert process.poll() is None, self.log.read_text()
            self.process = process
            yield client
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(90)
            finally:
                process.kill()
                process.wait()


def ours(folder: Path, broker: Broker) -> Side:
    return Side(folder, broker, [sys.executable, "-m", "icestream.cli.main", "standalone"])


def theirs(folder: Path, broker: Broker) -> Side:
    library = fetch("kafka-connect-files")
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    return Side(folder, broker, [java(), *options, "-cp", f"{library}/*", main])


def values(broker: Broker, topic: str) -> list[bytes | None]:
    """The committed values of a topic, by partition."""
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    facts = topics.describe([topic])
    if topic not in facts:
        return []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    found: list[bytes | None] = []
    try:
        for number in range(facts[topic].partitions):
            consumer.assign([TopicPartition(topic, number, 0)])
            while True:
                message = consumer.poll(60)
                assert message is not None
                if message.error() is not None:
                    break
                assert message.key() is None
                found.append(cast("bytes | None", message.value()))
    finally:
        consumer.close()
    return found


def create(broker: Broker, topic: str) -> None:
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 1, 1)


def test_the_quickstart_runs_unchanged_and_without_spark(broker: Broker, tmp_path: Path) -> None:
    text, copy = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    text.write_bytes(b"foo\nbar\nunfinish")
    side = ours(tmp_path, broker)

    def copied(*lines: bytes) -> Callable[[], bool]:
        # The broker gives a new topic three partitions: lines may change places.
        return lambda: copy.exists() and sorted(copy.read_bytes().splitlines()) == sorted(lines)

    with side.running(SOURCE, SINK) as client:
        eventually(copied(b"foo", b"bar"), side.log.read_text)
        with text.open("ab") as file:
            file.write(b"ed\nlast\n")
        eventually(copied(b"foo", b"bar", b"unfinished", b"last"), side.log.read_text)
        assert sorted(client.names()) == ["local-file-sink", "local-file-source"]
        children = psutil.Process(side.process.pid).children(recursive=True)
        assert not [child for child in children if "java" in child.name()]
    envelope = b'{"schema":{"type":"string","optional":false},"payload":"%s"}'
    assert sorted(value or b"" for value in values(broker, "connect-test")) == sorted(
        envelope % line for line in (b"foo", b"bar", b"unfinished", b"last")
    )
    stored = OffsetFile("local-file-source", tmp_path / "connect.offsets").read()
    assert stored == [OffsetEntry({"filename": "test.txt"}, {"position": text.stat().st_size})]

    with text.open("ab") as file:
        file.write(b"after the restart\n")
    again = ours(tmp_path, broker)
    with again.running():
        eventually(copied(b"foo", b"bar", b"unfinished", b"last", b"after the restart"), again.log.read_text)


def test_records_and_lines_are_those_of_the_real_one(broker: Broker, tmp_path: Path) -> None:
    """Odd lines to Kafka by both sides; odd values from Kafka by both sides, and across."""
    (tmp_path / "odd.txt").write_bytes(ODD_LINES)
    schemaless = {"value.converter": WORKER["value.converter"], "value.converter.schemas.enable": "false"}
    strings = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    kinds: dict[str, Mapping[str, str]] = {"schemas": {}, "schemaless": schemaless, "strings": strings}
    for side in ("ours", "theirs"):
        for kind in kinds:
            create(broker, f"{side}-{kind}")
    produce_odd_values(broker)

    def connectors(side: str, other: str) -> list[dict[str, str]]:
        sources = [
            {**SOURCE, **more, "name": f"{side}-in-{kind}", "file": "odd.txt", "topic": f"{side}-{kind}"}
            for kind, more in kinds.items()
        ]
        topics = {"lines": f"{other}-schemas", "values": "odd-values", "documents": "odd-documents"}
        converters = {"lines": {}, "values": {}, "documents": schemaless}
        sinks = [
            {
                **SINK,
                **converters[kind],
                "name": f"{side}-out-{kind}",
                "file": f"{side}-{kind}.txt",
                "topics": topic,
            }
            for kind, topic in topics.items()
        ]
        return sources + sinks

    def is_done(side: str, other: str) -> bool:
        sizes = {kind: len(values(broker, f"{side}-{kind}")) for kind in kinds}
        files = {kind: tmp_path / f"{side}-{kind}.txt" for kind in ("lines", "values", "documents")}
        counts = {
            kind: file.read_bytes().count(b"\n") if file.exists() else 0 for kind, file in files.items()
        }
        wanted = {"lines": len(values(broker, f"{other}-schemas")), "values": len(ODD_VALUES)}
        return set(sizes.values()) == {9} and counts == {**wanted, "documents": len(ODD_DOCUMENTS)}

    first, second = theirs(tmp_path, broker), ours(tmp_path, broker)
    with (
        first.running(*connectors("theirs", "ours"), offsets="theirs.offsets"),
        second.running(*connectors("ours", "theirs"), offsets="ours.offsets"),
    ):
        eventually(
            lambda: is_done("ours", "theirs") and is_done("theirs", "ours"),
            lambda: f"{first.log.read_text()[-3000:]}\n{second.log.read_text()[-6000:]}",
        )
    for kind in kinds:
        assert values(broker, f"ours-{kind}") == values(broker, f"theirs-{kind}")
    for kind in ("lines", "values", "documents"):
        assert (tmp_path / f"ours-{kind}.txt").read_bytes() == (tmp_path / f"theirs-{kind}.txt").read_bytes()


# Maps of one key: nothing of ours imitates the order of a Java HashMap.
ODD_VALUES: Sequence[tuple[object, object]] = (
    ({"type": "int32", "optional": False}, 7),
    ({"type": "double", "optional": False}, 1e7),
    ({"type": "double", "optional": False}, 0.00012),
    ({"type": "float", "optional": False}, 1.1),
    ({"type": "boolean", "optional": False}, True),
    ({"type": "string", "optional": True}, None),
    ({"type": "array", "optional": False, "items": {"type": "int64", "optional": True}}, [1, None, 3]),
    (
        {
            "type": "map",
            "optional": False,
            "keys": {"type": "string", "optional": False},
            "values": {"type": "double", "optional": False},
        },
        {"a rather long key": 100.0},
    ),
    (
        {
            "type": "struct",
            "optional": False,
            "fields": [
                {"field": "id", "type": "int64", "optional": False},
                {"field": "none", "type": "string", "optional": True},
                {"field": "name", "type": "string", "optional": True},
                {"field": "given", "type": "int32", "optional": False, "default": 5},
                {
                    "field": "deep",
                    "type": "struct",
                    "optional": True,
                    "fields": [{"field": "x", "type": "boolean", "optional": False}],
                },
            ],
        },
        {"id": 1, "none": None, "name": "n", "deep": {"x": False}},
    ),
    (
        {
            "type": "bytes",
            "optional": False,
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2"},
        },
        "BNI=",
    ),
    ({"type": "int32", "optional": False, "name": "org.apache.kafka.connect.data.Date", "version": 1}, 19000),
    (None, {"a": 1}),
)
ODD_DOCUMENTS = (
    b'"text"',
    b"1",
    b"-1.5",
    b"1e22",
    b"123456789.125",
    b"0.0009",
    b"100000000000",
    b"true",
    b"null",
    b"[]",
    b"{}",
    b'[1, "a", null, [2.0, {"k": []}]]',
    '{"ü": {"漢字": {"🙂": null}}}'.encode(),
)


def produce_odd_values(broker: Broker) -> None:
    for topic in ("odd-values", "odd-documents"):
        create(broker, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for schema, payload in ODD_VALUES:
        producer.produce("odd-values", json.dumps({"schema": schema, "payload": payload}).encode())
    for document in ODD_DOCUMENTS:
        producer.produce("odd-documents", document)
    assert producer.flush(30) == 0


def test_offsets_of_source_and_sink_are_handed_back_and_forth(broker: Broker, tmp_path: Path) -> None:
    text, copy = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    create(broker, "handed")
    source = {**SOURCE, "topic": "handed", "name": "handed-in"}
    sink = {**SINK, "topics": "handed", "name": "handed-out"}
    text.write_bytes(b"")
    for turn, make in enumerate((theirs, ours, theirs, ours)):
        with text.open("ab") as file:
            file.writelines(b"%d line %d\n" % (turn, number) for number in range(50))
        side = make(tmp_path, broker)
        with side.running(source, sink):
            eventually(
                lambda: copy.exists() and copy.stat().st_size >= text.stat().st_size, side.log.read_text
            )
        (tmp_path / "connect.offsets.icestream.json").unlink(missing_ok=True)
    payloads = [json.loads(value or b"")["payload"].encode() for value in values(broker, "handed")]
    assert payloads == text.read_bytes().splitlines()
    assert copy.read_bytes() == text.read_bytes()
