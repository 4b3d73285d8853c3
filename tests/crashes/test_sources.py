"""`kill -9` between every two steps of a source connector on an exactly-once worker: no record is lost or
repeated, whichever connector it is."""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from icestream.embedded.kafka import Broker
from icestream.jobs.build import offset_admin
from icestream.kafka.topics import Topics
from tests.crashes.processes import Fault, JobProcess
from tests.source_examples import EXAMPLES, Sent, SourceExample, by_place

_NUMBERS = itertools.count(1)

Start = Callable[..., "SourceProcess"]


class SourceProcess(JobProcess):
    """A source's manager that does harm to itself: `source_process.py`."""

    def __init__(
        self,
        folder: Path,
        name: str,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        faults: Sequence[Fault] = (),
    ) -> None:
        number = len(list(folder.glob("source-*.log")))
        spec = folder / f"source-{number}.json"
        content = {
            "name": name,
            "config": config,
            "worker": worker,
            "faults": [[fault.point, fault.action, fault.turn] for fault in faults],
        }
        spec.write_text(json.dumps(content))
        super().__init__(folder / f"source-{number}.log", ["-m", "tests.crashes.source_process", str(spec)])

    def kills_itself(self) -> None:
        self.wait(lambda: True if self.process.poll() == -9 else None, "it did not kill itself")

    def drains(self) -> None:
        self.wait_text("# drained")


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"source-{next(_NUMBERS)}"
    Topics({"bootstrap.servers": broker.bootstrap}).create(name, 1, 1)
    return name


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, topic: str, tmp_path: Path, toys: None) -> SourceExample:
    return EXAMPLES[request.param](tmp_path, topic)


@pytest.fixture
def worker(broker: Broker) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "crashes",
        "offset.storage.topic": "crashes-offsets",
        "offset.storage.replication.factor": "1",
        "exactly.once.source.support": "enabled",
    }


@pytest.fixture
def start(example: SourceExample, worker: dict[str, str], topic: str, tmp_path: Path) -> Iterator[Start]:
    started: list[SourceProcess] = []

    def begin(*faults: Fault) -> SourceProcess:
        started.append(SourceProcess(tmp_path, topic, example.config, worker, faults))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


def committed(broker: Broker, topic: str) -> list[Sent]:
    """Keys and values of all committed records of a topic's only partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    found: list[Sent] = []
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append((message.key(), message.value()))
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize(
    ("point", "turn"),
    [("read", 1), ("read", 3), ("records sent", 2), ("sent", 1), ("sent", 4), ("committed", 3)],
)
def test_a_source_that_is_killed_repeats_and_loses_nothing(
    broker: Broker,
    topic: str,
    example: SourceExample,
    worker: dict[str, str],
    start: Start,
    point: str,
    turn: int,
) -> None:
    start(Fault(point, "kill", turn)).kills_itself()
    example.grow()
    start().drains()
    assert by_place(example, committed(broker, topic)) == example.expected()
    stored = offset_admin(worker).read(topic, example.config)
    assert sorted(stored, key=str) == sorted(example.ends(), key=str)


def test_a_source_that_was_replaced_writes_nothing_more(
    broker: Broker, topic: str, example: SourceExample, start: Start
) -> None:
    old = start(Fault("records sent", "stop", example.tasks + 1))
    old.wait(lambda: True if old.text.count("# records sent") > example.tasks else None, "not that far")
    assert "# committed" in old.text
    start().drains()
    old.process.send_signal(signal.SIGCONT)
    old.wait_text("Fenced")
    assert by_place(example, committed(broker, topic)) == example.expected()


def test_offsets_moved_by_hand_fence_a_source_that_is_still_alive(
    broker: Broker, topic: str, example: SourceExample, worker: dict[str, str], start: Start
) -> None:
    before = example.expected()
    old = start(Fault("records sent", "stop", example.tasks + 1))
    old.wait(lambda: True if old.text.count("# records sent") > example.tasks else None, "not that far")
    first = by_place(example, committed(broker, topic))
    admin = offset_admin(worker)
    place = next(iter(before))
    admin.alter(topic, example.config, [example.offset_of(place, 4)])
    old.process.send_signal(signal.SIGCONT)
    old.wait_text("Fenced")
    start().drains()
    again = {**before, place: [*first[place], *before[place][4:]]}
    assert by_place(example, committed(broker, topic)) == again
    admin.reset(topic, example.config)
    assert admin.read(topic, example.config) == []
