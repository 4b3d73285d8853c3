"""Dead letters are sent again at most once, and at last all of them, whenever `dlq replay` dies."""

from __future__ import annotations

import itertools
import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from icestream.api.batch import Rejected
from icestream.api.offsets import NOTHING, Partition
from icestream.embedded.kafka import Broker
from icestream.jobs.publishing.publisher import dead_letter
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Transactions
from tests.crashes.faults import Fault
from tests.crashes.pipeline import PATIENCE, values
from tests.crashes.processes import JobProcess, wait_for

_LETTERS = 1_200
_CONNECTOR = "sink"
_NUMBERS = itertools.count(1)


def _reason(value: bytes) -> str:
    return "of seven" if value.endswith(b"7") else "of others"


class Replays:
    """A queue with letters of one topic, and the processes that send them again."""

    def __init__(self, broker: Broker, folder: Path, name: str) -> None:
        self.bootstrap, self.folder, self.topic, self.queue = broker.bootstrap, folder, name, f"{name}-dlq"
        self.started: list[JobProcess] = []
        topics = Topics({"bootstrap.servers": broker.bootstrap})
        topics.create(name, 2, 1)
        topics.create(self.queue, 1, 1)
        self.sent = [b"letter-%d" % number for number in range(_LETTERS)]
        target = DeadLetterSettings(self.queue, 1, with_context=True)
        rejected = [
            Rejected(Partition(name, at % 2), at, "TRANSFORMATION", _reason(value), value=value)
            for at, value in enumerate(self.sent)
        ]
        transactions = Transactions({"bootstrap.servers": broker.bootstrap}, f"fill-{name}", name)
        last = transactions.write([dead_letter(one, target, _CONNECTOR) for one in rejected], NOTHING, "")
        transactions.close()
        place = Partition(self.queue, 0)
        # Kafka shows a transaction to readers a moment after it told the writer of its end.
        wait_for(lambda: topics.ends([place])[place] > last or None, PATIENCE, lambda: "no letters")
        config = {
            "name": _CONNECTOR,
            "config": {
                "connector.class": "FileStreamSink",
                "topics": name,
                "errors.deadletterqueue.topic.name": self.queue,
            },
        }
        (folder / "sink.json").write_text(json.dumps(config))

    def start(self, *faults: Fault, reason: str | None = None) -> JobProcess:
        file = self.folder / f"replay-{len(self.started)}.json"
        arguments = ["dlq", "replay", _CONNECTOR, "--config", str(self.folder / "sink.json")]
        arguments += ["--bootstrap-servers", self.bootstrap, *(["--reason", reason] if reason else [])]
        file.write_text(
            json.dumps(
                {"arguments": arguments, "faults": [[one.point, one.action, one.turn] for one in faults]}
            )
        )
        process = JobProcess(file.with_suffix(".log"), ["-m", "tests.crashes.replay_process", str(file)])
        self.started.append(process)
        return process

    def finish(self, process: JobProcess, code: int = 0) -> str:
        ended = wait_for(process.process.poll, PATIENCE, lambda: f"it runs on:\n{process.text}")
        assert ended == code, process.text
        return process.text

    def arrived(self, count: int = _LETTERS) -> Counter[bytes]:
        """All records of the topic, once there are so many."""

        def look() -> Counter[bytes] | None:
            found = Counter(values(self.bootstrap, self.topic, 2))
            return found if found.total() >= count else None

        return wait_for(look, PATIENCE, lambda: f"fewer than {count} records came")


@pytest.fixture
def replays(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Replays:
    made = Replays(broker, tmp_path, f"replayed-{next(_NUMBERS)}")
    request.addfinalizer(lambda: [process.kill() for process in made.started])
    return made


@pytest.mark.parametrize(
    "fault",
    [
        Fault("begun", "kill", 1),
        Fault("delivered", "kill", 1),
        Fault("delivered", "kill", 2),
        Fault("done", "kill", 2),
        Fault("delivered", "kill", 4),
        Fault("done", "kill", 4),
    ],
    ids=lambda fault: f"{fault.point}-{fault.turn}",
)
def test_a_replay_that_is_killed_goes_on_where_it_was(replays: Replays, fault: Fault) -> None:
    replays.finish(replays.start(fault), -signal.SIGKILL)
    said = replays.finish(replays.start())
    assert "letters" in said
    assert replays.arrived() == Counter(replays.sent)
    assert "0 dead letters would be sent, 1,200 were sent before" in replays.finish(replays.start())
    assert replays.arrived() == Counter(replays.sent)


def test_a_selection_that_is_killed_and_then_the_rest(replays: Replays) -> None:
    chosen = Counter(value for value in replays.sent if value.endswith(b"7"))
    replays.finish(replays.start(Fault("delivered", "kill", 2), reason="of seven"), -signal.SIGKILL)
    replays.finish(replays.start(reason="of seven"))
    assert replays.arrived(chosen.total()) == chosen
    replays.finish(replays.start())
    assert replays.arrived() == Counter(replays.sent)


def test_of_two_replays_the_older_ends_and_nothing_is_sent_twice(replays: Replays) -> None:
    older = replays.start(Fault("delivered", "stop", 3))
    older.wait_text("# delivered\n# done\n# begun\n# delivered\n# done\n# begun\n# delivered")
    replays.finish(replays.start())
    older.process.send_signal(signal.SIGCONT)
    assert "another replay of queue" in replays.finish(older, 1)
    assert replays.arrived() == Counter(replays.sent)
