"""Source offsets in Kafka: the records of the real Kafka Connect and ours, and offsets moved by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from icestream.api.errors import BadOffsets, PreconditionError
from icestream.api.offset_admin import OffsetEntry
from icestream.client import ConnectClient
from icestream.embedded import launch
from icestream.embedded.java import java
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from icestream.jobs.build import offset_admin
from icestream.jobs.sources.manager import source_manager
from icestream.kafka.topics import Topics
from tests.integration.test_file_stream import WORKER, create, properties, values
from tests.java_libraries import fetch
from tests.source_examples import source_plugin

pytestmark = [pytest.mark.slow, pytest.mark.network]

DISTRIBUTED = {
    **{key: value for key, value in WORKER.items() if not key.startswith("offset.")},
    "group.id": "connect-cluster",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "1000",
}


@pytest.fixture(params=["disabled", "enabled"])
def worker(broker: Broker, request: pytest.FixtureRequest) -> dict[str, str]:
    return {
        **DISTRIBUTED,
        "bootstrap.servers": broker.bootstrap,
        "exactly.once.source.support": request.param,
        "group.id": f"group-{request.param}",
        "offset.storage.topic": f"offsets-{request.param}",
    }


def source(file: Path, topic: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def run(name: str, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
    manager = source_manager(name, source_plugin(config["connector.class"]), config, worker)
    try:
        while manager.tick() == 0.0:
            pass
    finally:
        manager.close()


def records(broker: Broker, topic: str) -> set[tuple[int, bytes, bytes | None]]:
    """Partition, key and value of all committed records."""
    partitions = Topics({"bootstrap.servers": broker.bootstrap}).describe([topic])[topic].partitions
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "test", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: set[tuple[int, bytes, bytes | None]] = set()
    ended = 0
    try:
        while ended < partitions:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is None:
                found.add((message.partition() or 0, message.key() or b"", message.value()))
            else:
                ended += 1
    finally:
        consumer.close()
    return found


def test_offsets_are_read_moved_and_forgotten(broker: Broker, worker: dict[str, str], tmp_path: Path) -> None:
    mode = worker["exactly.once.source.support"]
    name, topic = f"moved-{mode}", f"moved-{mode}"
    create(broker, topic)
    text = tmp_path / "lines.txt"
    text.write_bytes(b"one\ntwo\nthree\n")
    config = source(text, topic)
    admin = offset_admin(worker)
    assert admin.read(name, config) == []
    run(name, config, worker)
    here = {"filename": str(text)}
    assert admin.read(name, config) == [OffsetEntry(here, {"position": 14})]

    assert admin.alter(name, config, [OffsetEntry(here, {"position": 4})]).endswith("altered successfully")
    run(name, config, worker)
    assert values(broker, topic) == [b"one", b"two", b"three", b"two", b"three"]
    with pytest.raises(BadOffsets, match="non-negative"):
        admin.alter(name, config, [OffsetEntry(here, {"position": -4})])
    assert admin.reset(name, config).endswith("reset successfully")
    assert admin.read(name, config) == []
    assert admin.reset(name, config).endswith("reset successfully")
    run(name, config, worker)
    assert values(broker, topic)[5:] == [b"one", b"two", b"three"]


def test_a_connector_may_keep_its_offsets_apart(
    broker: Broker, worker: dict[str, str], tmp_path: Path
) -> None:
    mode = worker["exactly.once.source.support"]
    topic, own = f"apart-{mode}", f"own-offsets-{mode}"
    create(broker, topic)
    text = tmp_path / "lines.txt"
    text.write_bytes(b"one\n")
    shared = source(text, topic)
    run(topic, shared, worker)
    config = source(text, topic, offsets_storage_topic=own)
    text.write_bytes(b"one\ntwo\n")
    run(topic, config, worker)
    assert values(broker, topic) == [b"one", b"two"], "what the worker's topic knows is not read again"
    assert {record[2] for record in records(broker, own)} == {b'{"position":8}'}
    admin = offset_admin(worker)
    assert admin.read(topic, shared) == admin.read(topic, config), "the worker's topic follows"
    if mode == "disabled":
        admin.reset(topic, config)
        assert admin.read(topic, config) == admin.read(topic, shared) == []


def test_topics_are_created_as_the_connector_says(
    broker: Broker, worker: dict[str, str], tmp_path: Path
) -> None:
    mode = worker["exactly.once.source.support"]
    text = tmp_path / "lines.txt"
    text.write_bytes(b"one\n")
    more = {"topic.creation.default.partitions": "5", "topic.creation.default.replication.factor": "-1"}
    run(f"made-{mode}", {**source(text, f"made-{mode}"), **more}, worker)
    topics = Topics({"bootstrap.servers": broker.bootstrap})
    assert topics.describe([f"made-{mode}"])[f"made-{mode}"].partitions == 5
    assert topics.describe([worker["offset.storage.topic"]])[worker["offset.storage.topic"]].partitions == 25


def test_too_few_brokers_for_the_offsets_topic_are_told(broker: Broker, tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    text.write_bytes(b"one\n")
    worker = {
        **DISTRIBUTED,
        "bootstrap.servers": broker.bootstrap,
        "offset.storage.topic": "too-many",
        "offset.storage.replication.factor": "3",
    }
    with pytest.raises(PreconditionError, match="'too-many' should have 3 replicas, but there are 1 broker"):
        run("few", source(text, "few"), worker)


@contextmanager
def real_worker(folder: Path, settings: Mapping[str, str]) -> Iterator[ConnectClient]:
    """A distributed worker of the real Kafka Connect."""
    library = fetch("kafka-connect-files")
    port = free_port()
    file = properties(
        folder / "distributed.properties", {**settings, "listeners": f"http://127.0.0.1:{port}"}
    )
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    log = folder / "distributed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, launch.__file__, str(os.getpid())),
                *(java(), *options, "-cp", f"{library}/*", main, file),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    client = ConnectClient(f"http://127.0.0.1:{port}")
    try:
        wait(client.is_healthy, log)
        yield client
    finally:
        process.terminate()
        try:
            process.wait(90)
        finally:
            process.kill()
            process.wait()


def wait(holds: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline, log.read_text()[-5000:]
        time.sleep(0.2)


def test_the_real_one_writes_the_same_offsets_and_goes_on_after_ours(
    broker: Broker, worker: dict[str, str], tmp_path: Path
) -> None:
    mode = worker["exactly.once.source.support"]
    topic = f"real-{mode}"
    create(broker, topic)
    text = tmp_path / "lines.txt"
    text.write_bytes(b"one\ntwo\n")
    config = source(text, topic)
    real = {
        **worker,
        "config.storage.topic": f"configs-{mode}",
        "status.storage.topic": f"status-{mode}",
    }
    run(topic, config, worker)
    key = f'["{topic}",{{"filename":"{text}"}}]'.encode()
    (ours,) = [record for record in records(broker, worker["offset.storage.topic"]) if record[1] == key]
    assert ours[2] == b'{"position":8}'
    with text.open("ab") as file:
        file.write(b"three\n")

    log = tmp_path / "distributed.log"
    with real_worker(tmp_path, real) as client:
        client.create(topic, config)
        wait(lambda: len(values(broker, topic)) >= 3, log)
    assert values(broker, topic) == [b"one", b"two", b"three"], "it went on where ours had stopped"
    theirs = [record for record in records(broker, worker["offset.storage.topic"]) if record[1] == key]
    assert (ours[0], key, b'{"position":14}') in theirs, "the same key, in the same partition"
    with text.open("ab") as file:
        file.write(b"four\n")
    run(topic, config, worker)
    assert values(broker, topic) == [b"one", b"two", b"three", b"four"]
