"""`icestream dlq`: dead letters of a real broker as a table, and their way back to their topics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from icestream.api.batch import Rejected
from icestream.api.errors import BadFilter, NotFoundError
from icestream.api.offsets import NOTHING, Partition
from icestream.cli import main
from icestream.embedded.kafka import Broker
from icestream.jobs.letters import desk as desk_module
from icestream.jobs.letters.desk import LetterDesk, ReplayProgress
from icestream.jobs.letters.replay import Request
from icestream.jobs.publishing.dead_letters import DeadLetterFilter
from icestream.jobs.publishing.publisher import dead_letter, without_value
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions
from tests.integration.local_job import World

_TIME = 1_763_200_000_000
"""2025-11-15 09:46:40"""


def eventually(holds: Callable[[], bool]) -> None:
    """Kafka shows a transaction to readers a moment after it told the writer of its end."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


@dataclass
class Queue:
    """A topic with two partitions, its connector and its dead letter queue."""

    broker: Broker
    folder: Path
    name: str
    capsys: pytest.CaptureFixture[str]

    @property
    def topics(self) -> Topics:
        return Topics({"bootstrap.servers": self.broker.bootstrap})

    @property
    def queue(self) -> str:
        return f"{self.name}-dlq"

    def create(self) -> Queue:
        self.topics.create(self.name, 2, 1)
        self.configure(**{"errors.deadletterqueue.topic.name": self.queue})
        return self

    def configure(self, **config: str) -> None:
        content = {"name": "sink", "config": {"connector.class": "FileStreamSink", **config}}
        (self.folder / "sink.json").write_text(json.dumps(content))

    def fill(
        self,
        *rejected: Rejected,
        connector: str = "sink",
        with_context: bool = True,
        made: Callable[[Rejected, DeadLetterSettings, str], Outgoing] = dead_letter,
    ) -> None:
        if self.queue not in self.topics.describe([self.queue]):
            self.topics.create(self.queue, 1, 1)
        target = DeadLetterSettings(self.queue, 1, with_context)
        transactions = Transactions({"bootstrap.servers": self.broker.bootstrap}, "fill", "fill")
        last = transactions.write([made(one, target, connector) for one in rejected], NOTHING, "")
        transactions.close()
        place = Partition(self.queue, 0)
        eventually(lambda: self.topics.ends([place])[place] > last)

    def rejected(self, offset: int, reason: str, value: bytes | None = b"{", **more: Any) -> Rejected:
        facts = {"stage": "VALUE_CONVERTER", "key": b"key", "timestamp_ms": _TIME + offset * 1000, **more}
        return Rejected(Partition(self.name, offset % 2), offset, reason=reason, value=value, **facts)

    def run(self, *arguments: str) -> str:
        """What a command prints; its complaint, if it fails."""
        config = str(self.folder / "sink.json")
        code = main.run(["dlq", *arguments, "--config", config, "--bootstrap-servers", self.broker.bootstrap])
        said = self.capsys.readouterr()
        assert code == (1 if said.err else 0), said
        return said.err or said.out

    def show(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("show", "sink", "-o", "json", *arguments))
        return found

    def arrived(self, count: int, topic: str | None = None) -> list[Message]:
        """All records of a topic, once there are so many."""
        eventually(lambda: len(self._read(topic or self.name)) >= count)
        return self._read(topic or self.name)

    def _read(self, name: str) -> list[Message]:
        partitions = [Partition(name, at) for at in range(self.topics.describe([name])[name].partitions)]
        ends = self.topics.ends(partitions)
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "looker",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(name, p.number, 0) for p in partitions if ends[p]])
        left, found = len([p for p in partitions if ends[p]]), []
        while left:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is None:
                found.append(message)
            else:
                left -= 1
        consumer.close()
        return found


@pytest.fixture
def queue(
    broker: Broker, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> Queue:
    return Queue(broker, tmp_path, request.node.name.removeprefix("test_")[:60], capsys).create()


def test_letters_are_shown_with_where_they_are_from_and_why(queue: Queue) -> None:
    queue.fill(
        queue.rejected(0, "it is\nbad", b'{"amount": oops'),
        queue.rejected(3, "no id", b"\xff" * 100, stage="TASK_PUT", key=None),
    )
    queue.fill(queue.rejected(9, "of somebody else"), connector="other")
    queue.fill(queue.rejected(5, "nobody will know", b"plain"), with_context=False)
    lines = queue.run("show", "sink").splitlines()
    titles = "topic partition offset stage error time key value replayed"
    row = f'{queue.name} 0 0 VALUE_CONVERTER it is bad 2025-11-15 09:46:40 key {{"amount": oops no'
    assert [" ".join(line.split()) for line in lines[:2]] == [titles, row]
    assert len(lines) == 5
    assert "…" in lines[2]
    assert lines[4].startswith("1 of them do not say where they are from, and why; later ones do with")
    assert lines[3].split() == ["-", "-", "-", "-", "-", "2025-11-15", "09:46:45", "key", "plain", "no"]
    first, second, third = queue.show()
    assert first == {
        "topic": queue.name,
        "partition": 0,
        "offset": 0,
        "stage": "VALUE_CONVERTER",
        "class": "org.apache.kafka.connect.sink.SinkTask",
        "exception": "org.apache.kafka.connect.errors.DataException",
        "reason": "it is\nbad",
        "time": "2025-11-15T09:46:40+00:00",
        "key": "key",
        "value": '{"amount": oops',
        "replayed": False,
        "queue": {"topic": queue.queue, "partition": 0, "offset": 0},
    }
    assert (second["key"], second["value_base64"][:8]) == (None, "////////")
    assert (third["topic"], third["reason"]) == (None, None)
    assert [letter["offset"] for letter in queue.show("--stage", "TASK_PUT")] == [3]
    assert [letter["value"] for letter in queue.show("--limit", "1")] == ["plain"]
    assert "the newest 1 of 3" in queue.run("show", "sink", "--limit", "1")
    assert "no dead letters" in queue.run("show", "sink", "--offset", "77")


def test_letters_go_back_to_their_partitions_as_they_were(queue: Queue) -> None:
    own = [("trace", b"\x00\xff"), ("none", None), ("__connect.errors.topic", b"of an older letter")]
    queue.fill(queue.rejected(0, "bad", b"\xfe", headers=own), queue.rejected(1, "bad", None, key=None))
    assert queue.run("replay", "sink", "--dry-run") == f"2 dead letters would be sent to {queue.name}\n"
    assert queue.arrived(0) == []
    assert queue.run("replay", "sink") == f"2 dead letters sent to {queue.name}\n"
    found = sorted(queue.arrived(2), key=lambda message: message.partition() or 0)
    assert [(one.partition(), one.key(), one.value(), one.timestamp()[1]) for one in found] == [
        (0, b"key", b"\xfe", _TIME),
        (1, None, None, _TIME + 1000),
    ]
    assert found[0].headers() == own
    assert found[1].headers() is None
    assert queue.run("replay", "sink") == "0 dead letters would be sent, 2 were sent before\n"
    assert [letter["replayed"] for letter in queue.show()] == [True, True]
    queue.fill(queue.rejected(2, "bad again"))
    assert queue.run("replay", "sink") == f"1 dead letters sent to {queue.name}, 2 were sent before\n"
    assert [letter["offset"] for letter in queue.show("--not-replayed")] == []
    assert len(queue.arrived(3)) == 3


def test_selections_in_any_order_send_nothing_twice(queue: Queue) -> None:
    queue.fill(*(queue.rejected(at, "even" if at % 2 == 0 else "odd", b"%d" % at) for at in range(10)))
    assert queue.run("replay", "sink", "--reason", "ODD", "--limit", "2").startswith("2 dead letters")
    assert queue.run("replay", "sink", "--since", "2025-11-15T09:46:43").startswith("6 dead letters")
    assert queue.run("replay", "sink").startswith("2 dead letters")
    assert sorted(int(message.value() or b"") for message in queue.arrived(10)) == list(range(10))


def test_a_queue_created_anew_has_other_letters(queue: Queue) -> None:
    queue.fill(queue.rejected(0, "bad", b"first"))
    queue.run("replay", "sink")
    queue.topics.delete(queue.queue)
    queue.fill(queue.rejected(1, "bad", b"second"))
    assert queue.run("replay", "sink").startswith("1 dead letters sent")
    assert {message.value() for message in queue.arrived(2)} == {b"first", b"second"}


def test_letters_without_context_need_a_topic(queue: Queue) -> None:
    queue.fill(queue.rejected(0, "bad", b"told"))
    queue.fill(queue.rejected(1, "bad", b"plain"), with_context=False)
    assert queue.run("replay", "sink") == (
        "icestream: 1 of 2 dead letters do not say which topic they are from (no "
        "__connect.errors.topic header: errors.deadletterqueue.context.headers.enable was false); "
        "say where they belong with --to-topic, or leave them out with --skip-unsendable\n"
    )
    again = f"{queue.name}-again"
    missing = queue.run("replay", "sink", "--to-topic", again)
    assert missing.startswith(f"icestream: topic '{again}' does not exist")
    queue.topics.create(again, 3, 1)
    assert queue.run("replay", "sink", "--skip-unsendable").startswith("1 dead letters")
    assert queue.run("replay", "sink", "--to-topic", again).startswith("1 dead letters")
    assert [message.value() for message in queue.arrived(1, again)] == [b"plain"]
    assert [message.value() for message in queue.arrived(1)] == [b"told"]


def test_a_topic_as_java_clients_choose_its_partitions(queue: Queue) -> None:
    """Where a Java producer puts the keys a, b, c of a topic with three partitions."""
    queue.fill(*(queue.rejected(at, "bad", key=key) for at, key in enumerate((b"a", b"b", b"c"))))
    queue.topics.create(f"{queue.name}-3", 3, 1)
    queue.run("replay", "sink", "--to-topic", f"{queue.name}-3")
    found = {message.key(): message.partition() for message in queue.arrived(3, f"{queue.name}-3")}
    java = Producer({"bootstrap.servers": queue.broker.bootstrap, "partitioner": "murmur2_random"})
    queue.topics.create(f"{queue.name}-j", 3, 1)
    for key in found:
        java.produce(f"{queue.name}-j", b"x", key)
    assert java.flush(30) == 0
    assert found == {message.key(): message.partition() for message in queue.arrived(3, f"{queue.name}-j")}


def test_what_cannot_be_is_said_before_anything_is_sent(queue: Queue) -> None:
    assert queue.run("show", "sink").endswith(f"topic '{queue.queue}' does not exist yet\n")
    queue.fill(queue.rejected(0, "bad"), Rejected(Partition(queue.name, 7), 1, "TASK_PUT", "bad"))
    assert queue.run("replay", "sink") == (
        f"icestream: topic '{queue.name}' has 2 partitions, but a dead letter is from partition 7; let the "
        f"keys decide with --to-topic {queue.name}\n"
    )
    assert "is the dead letter queue itself" in queue.run("replay", "sink", "--to-topic", queue.queue)
    assert queue.arrived(0) == []
    queue.configure(topics=queue.name)
    assert queue.run("show", "sink") == (
        "icestream: connector 'sink' has no dead letter queue; set errors.tolerance=all and "
        "errors.deadletterqueue.topic.name\n"
    )


def test_records_land_once_after_the_fix_and_the_books_balance(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cast = {
        "transforms": "c",
        "transforms.c.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.c.spec": "amount:float64",
    }
    world = World(broker, tmp_path, options=dict(cast))
    world.produce({"id": number, "amount": "oops" if number % 10 == 3 else "1.5"} for number in range(100))
    world.drain()
    assert len(world.ids()) == 90
    assert {letter.context["stage"] for letter in world.letters()} == {"TRANSFORMATION"}
    world.options["transforms.c.type"] = "org.apache.kafka.connect.transforms.ReplaceField$Value"
    world.options["transforms.c.exclude"] = "amount"
    world.options.pop("transforms.c.spec")
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": world.name, "config": world.config}))
    settings = ["--config", str(file), "--bootstrap-servers", broker.bootstrap]
    assert main.run(["dlq", "replay", world.name, "--reason", "oops", *settings]) == 0
    assert capsys.readouterr().out == f"10 dead letters sent to {world.name}\n"
    world.wait_settled(world.name)
    world.drain()
    assert world.ids() == list(range(100))
    assert main.run(["verify", world.name, "--deep", *settings]) == 0
    assert "100 in the table, 10 in the dead letter queue. None missing" in capsys.readouterr().out


def test_letters_that_were_too_large_for_their_queue_are_shown_and_not_sent(queue: Queue) -> None:
    queue.fill(queue.rejected(0, "bad"))
    queue.fill(queue.rejected(1, "bad and large", b"{" * 5_000), made=without_value)
    assert [(letter["reason"], letter["value"]) for letter in queue.show()] == [
        ("bad", "{"),
        ("bad and large", None),
    ]
    assert "1 of 2 dead letters lack the value of their record" in queue.run("replay", "sink")
    assert queue.run("replay", "sink", "--skip-unsendable").startswith("1 dead letters sent")


def test_the_desk_reads_the_newest_first_and_goes_on_from_its_cursor(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the console asks: some at a time, from the end of the queue."""
    monkeypatch.setattr(desk_module, "_STRIDE", 2)
    monkeypatch.setattr(desk_module, "_MOST_READ", 4)
    queue.fill(*(queue.rejected(number, f"value {number} is bad") for number in range(7)))
    queue.fill(queue.rejected(7, "of somebody else"), connector="other")
    config = {"errors.deadletterqueue.topic.name": queue.queue}
    desk = LetterDesk({"bootstrap.servers": queue.broker.bootstrap})
    looks = [desk.page("sink", config, DeadLetterFilter(), None)]
    while (cursor := looks[-1].cursor) is not None:
        looks.append(desk.page("sink", config, DeadLetterFilter(), cursor))
    assert len(looks) > 1
    assert [letter.origin_offset for look in looks for letter, _ in look.letters] == [6, 5, 4, 3, 2, 1, 0]
    letter, replayed = desk.letter("sink", config, 0, 3)
    assert (letter.origin_offset, replayed) == (3, False)
    with pytest.raises(NotFoundError, match="no dead letter of connector 'sink' at offset 99"):
        desk.letter("sink", config, 0, 99)
    with pytest.raises(BadFilter, match="is no place in a dead letter queue"):
        desk.page("sink", config, DeadLetterFilter(), "0:x")


def test_the_desk_replays_in_the_background_and_each_at_most_once(queue: Queue) -> None:
    queue.fill(*(queue.rejected(number, f"value {number} is bad") for number in range(4)))
    config = {"errors.deadletterqueue.topic.name": queue.queue}
    desk = LetterDesk({"bootstrap.servers": queue.broker.bootstrap})
    assert desk.progress("sink") is None
    assert desk.replay("sink", config, Request()).total == 4
    eventually(lambda: desk.progress("sink") == ReplayProgress(4, 4, is_over=True))
    assert len(queue.arrived(4)) == 4
    assert desk.replay("sink", config, Request()) == ReplayProgress(0, is_over=True)
    assert all(replayed for _, replayed in desk.page("sink", config, DeadLetterFilter(), None).letters)
