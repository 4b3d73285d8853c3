"""The same bad records through the real Kafka Connect and through ours: the same dead letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.cluster.workers import JSON, WorkerProcess, call, eventually

pytestmark = [pytest.mark.slow, pytest.mark.network]

_MESSAGES = ("__connect.errors.exception.message", "__connect.errors.exception.stacktrace")
_UNREADABLE = b"failed due to serialization error: "
_TIME = 1_700_000_000_000
Header = tuple[str, bytes | None]
_RECORDS: tuple[tuple[bytes | None, bytes | None, list[Header]], ...] = (
    (b'"k"', b'{"n":"1"}', []),
    (b"{no key", b'{"n":"2"}', [("mine", b'"kept"'), ("mine", None)]),
    (b'"k"', b"{no value", [("__connect.errors.stage", b'"of an earlier queue"')]),
    (b'"k"', b"\xff\xfe", []),
    (b'"k"', b'{"n":"3"}', [("bad", b"{no header")]),
    (None, b'{"n":"many"}', []),
    (b'"k"', b'{"n":[1]}', []),
    (b'"k"', b"{no value either", [("bad", b"{no header")]),
    (b'"k"', b'{"n":"4"}', []),
)
_CONFIG = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "tasks.max": "1",
    "key.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
    "header.converter": JSON,
    "header.converter.schemas.enable": "false",
    "transforms": "c",
    "transforms.c.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.c.spec": "n:int32",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
}


def _letters(bootstrap: str, topic: str, count: int) -> list[Message]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "letters", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found: list[Message] = []
        while len(found) < count and (message := consumer.poll(90)) is not None:
            assert message.error() is None
            found.append(message)
        return found
    finally:
        consumer.close()


def _told(letter: Message) -> tuple[Any, ...]:
    """All of a letter but the stack below the first line."""
    headers = [
        (name, _message(value) if name in _MESSAGES else value) for name, value in letter.headers() or []
    ]
    return letter.timestamp()[1], letter.key(), letter.value(), headers


def _message(text: bytes | None) -> bytes | None:
    """Ours goes on where Kafka Connect ends, with what it only says below: what is wrong with the bytes."""
    first, found, _ = (text or b"").partition(b"\n")[0].partition(_UNREADABLE)
    return first + found


def _run(worker: WorkerProcess, bootstrap: str, folder: Path, topic: str, **more: str) -> list[Message]:
    queue = f"{topic}-{worker.name}"
    file = folder / f"{worker.name}.txt"
    config = {**_CONFIG, "topics": topic, "file": str(file), "errors.deadletterqueue.topic.name": queue}
    call(worker.url, "POST", "/connectors", {"name": "rejecting", "config": {**config, **more}})
    eventually(lambda: file.exists() and len(file.read_bytes().splitlines()) == 2, lambda: worker.text())
    return _letters(bootstrap, queue, len(_RECORDS) - 2)


def test_dead_letters_are_those_of_kafka_connect(
    start_worker: Callable[..., WorkerProcess], broker: Broker, tmp_path: Path, group: str
) -> None:
    topic = f"{group}-bad"
    Topics({"bootstrap.servers": broker.bootstrap}).create(topic, 1, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value, headers in _RECORDS:
        producer.produce(topic, value, key, headers=headers, timestamp=_TIME)
    assert producer.flush(30) == 0
    real = start_worker(real=True)
    own_group = {"consumer.override.group.id": f"{group}-theirs"}
    theirs = _run(real, broker.bootstrap, tmp_path, topic, **own_group)
    real.kill()
    own_topics = {f"{kind}_storage_topic": f"{group}-our-{kind}" for kind in ("config", "offset", "status")}
    ours = _run(start_worker(group_id=f"{group}-ours", **own_topics), broker.bootstrap, tmp_path, topic)
    assert [_told(letter) for letter in ours] == [_told(letter) for letter in theirs]
    assert len(ours) == len(_RECORDS) - 2
