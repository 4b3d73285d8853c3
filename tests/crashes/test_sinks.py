"""`kill -9` between every two steps of every sink: each record is there once, and each bad one a dead letter.

The sinks are those of `tests/behaviours/test_sinks.py`; here they run in processes of their own, with a real
broker. `test_kills.py` does the same to Iceberg on Spark, and to more of its inside.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Partition
from icestream.connectors.jdbc.connections import access_from, connection_to
from icestream.connectors.jdbc.dialects.base import execute
from icestream.embedded.kafka import Broker
from icestream.jobs.audits.audit import findings
from icestream.jobs.audits.audit_facts import gather
from icestream.jobs.build import offset_admin
from icestream.kafka.topics import Topics
from tests.behaviours.test_sinks import SERVERS, SUBJECTS, Subject, jdbc
from tests.crashes.pipeline import values
from tests.crashes.processes import Fault, JobProcess

_NUMBERS = itertools.count(1)
POINTS = [("planned", 1), ("staged", 2), ("committed", 1), ("committed", 2), ("closing", 2), ("published", 1)]
OF_S3 = [("entered", 1), ("entered", 2), ("half published", 2), ("completed", 2)]
REPLACED = ("s3-folder",)
"""Sinks that write rows that are read again under the names that they had."""
OF_DATABASES = [("merging", 2), ("merged", 1), ("merged", 2), ("ended", 1)]
OF_FILES = [("journaled", 2), ("half written", 1), ("half written", 2), ("written", 2)]
KINDS: Mapping[str, Callable[[Path], dict[str, str]]] = {
    "iceberg": lambda folder: {
        "connector.class": "IcebergSinkConnector",
        "iceberg.tables": "ns.t",
        "iceberg.control.commit.interval-ms": "100",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    },
    "delta": lambda folder: {
        "connector.class": "DeltaSinkConnector",
        "delta.tables": "ns.t",
        "delta.control.commit.interval-ms": "100",
        "delta.location": str(folder),
    },
    "file": lambda folder: {"connector.class": "FileStreamSink", "file": str(folder / "out.txt")},
    "s3-folder": lambda folder: {
        "connector.class": "S3SinkConnector",
        "store.url": f"file://{folder}",
        "s3.bucket.name": "lake",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "1000",
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "id",
        "icestream.s3.commit.interval.ms": "100",
    },
    "toy": lambda folder: {"connector.class": "JsonFolderSink", "folder": str(folder)},
}

JDBC = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "icestream.jdbc.commit.interval.ms": "100",
}
DATABASES = ("jdbc-postgresql", "jdbc-mariadb", "jdbc-sqlite")


@dataclass
class Job:
    """A topic, a sink, and the processes that run its job one after the other."""

    broker: Broker
    folder: Path
    config: dict[str, str]
    subject: Subject
    name: str = field(default_factory=lambda: f"sink-{next(_NUMBERS)}")
    sent: int = 0
    processes: list[JobProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        Topics(self.worker).create(self.name, 1, 1)
        self.config = {
            "topics": self.name,
            "tasks.max": "1",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.name}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
            **self.config,
        }

    @property
    def worker(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    def produce(self, count: int) -> None:
        """Records with the next ids, and after each of them one that is no JSON."""
        producer = Producer(self.worker)
        for number in range(self.sent, self.sent + count):
            producer.produce(self.name, json.dumps({"id": number, "text": "x"}).encode())
            producer.produce(self.name, b"bad %d" % number)
        assert producer.flush(60) == 0
        self.sent += count

    def start(self, faults: Sequence[Fault] = ()) -> JobProcess:
        number = len(self.processes)
        spec = self.folder / f"job-{number}.json"
        content = {"name": self.name, "config": self.config, "worker": self.worker}
        spec.write_text(json.dumps({**content, "faults": [[f.point, f.action, f.turn] for f in faults]}))
        log = self.folder / f"job-{number}.log"
        self.processes.append(JobProcess(log, ["-m", "tests.crashes.sink_process", str(spec)]))
        return self.processes[-1]

    def drain(self) -> None:
        process = self.start()
        process.wait_text("# drained")
        process.kill()

    def check(self) -> None:
        assert self.subject.visible() == list(range(self.sent))
        dead = values(self.broker.bootstrap, f"{self.name}-dlq", 1)
        assert sorted(dead) == sorted(b"bad %d" % number for number in range(self.sent))
        group = Topics(self.worker).group_offsets(f"connect-{self.name}", [Partition(self.name, 0)])
        assert group[Partition(self.name, 0)].next == 2 * self.sent
        for _, facts in gather(self.name, self.config, self.worker, deep=True):
            assert findings(facts).problems == []


def killed(process: JobProcess) -> None:
    process.wait(lambda: True if process.process.poll() == -9 else None, "it did not kill itself")


@pytest.fixture
def make(
    broker: Broker, tmp_path: Path, toys: None, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Job]]:
    made: list[Job] = []

    def job(kind: str) -> Job:
        target = tmp_path / "target"
        target.mkdir()
        if kind in SERVERS:
            subject = jdbc(request.getfixturevalue(SERVERS[kind]).settings, target)
        else:
            subject = SUBJECTS[kind](target)
        config = KINDS[kind](target) if kind in KINDS else {**JDBC, **subject.config}
        made.append(Job(broker, tmp_path, config, subject))
        return made[-1]

    yield job
    for one in made:
        for process in one.processes:
            process.kill()


@pytest.mark.parametrize(
    ("kind", "point", "turn"),
    [
        *((kind, *point) for kind in KINDS for point in POINTS),
        *(("jdbc-postgresql", *point) for point in (*POINTS[3:], *OF_DATABASES)),
        *(pytest.param("jdbc-postgresql", *point, marks=pytest.mark.long) for point in POINTS[:3]),
        *((kind, "merged", 2) for kind in DATABASES[1:]),
        *(
            pytest.param(kind, *point, marks=pytest.mark.long)
            for kind in DATABASES[1:]
            for point in (*POINTS, *OF_DATABASES)
        ),
        *(("file", *point) for point in OF_FILES),
        *(("s3-folder", *point) for point in OF_S3),
    ],
)
def test_a_sink_that_is_killed_repeats_and_loses_nothing(
    make: Callable[[str], Job], kind: str, point: str, turn: int
) -> None:
    job = make(kind)
    job.produce(5)
    process = job.start([Fault(point, "kill", turn)])
    if turn == 2:
        process.wait(lambda: job.subject.visible() or None, "nothing has landed")
        process.wait_text("# drained")
        job.produce(3)
    killed(process)
    job.produce(2)
    job.drain()
    job.check()


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        ("jdbc-postgresql", "committed"),
        *(
            pytest.param(kind, point, marks=pytest.mark.long)
            for kind in DATABASES
            for point in ("merged", "ended", "committed", "closing")
        ),
    ],
)
def test_a_row_that_the_database_refuses_is_one_dead_letter_whenever_the_job_dies(
    make: Callable[[str], Job], kind: str, point: str
) -> None:
    """Which rows it refused is stored with the commit: Kafka hears of them after the crash."""
    job = make(kind)
    access = access_from(job.config)
    with connection_to(access, "prepare a test") as connection:
        name = job.config["table.name.format"]
        execute(connection, f"CREATE UNIQUE INDEX u_{name} ON {name} (id)")
        execute(connection, f"INSERT INTO {name} (id) VALUES (3)")
        connection.commit()
    job.produce(5)
    killed(job.start([Fault(point, "kill", 1)]))
    job.drain()
    assert job.subject.visible() == [0, 1, 2, 3, 4]
    dead = sorted(values(job.broker.bootstrap, f"{job.name}-dlq", 1))
    assert dead == sorted([b"bad %d" % number for number in range(5)] + [b'{"id": 3, "text": "x"}'])


@pytest.mark.parametrize("kind", [*KINDS, "jdbc-postgresql"])
@pytest.mark.parametrize("is_reset", [True, False])
def test_offsets_moved_by_hand_win_over_a_batch_that_kafka_has_not_heard_of(
    make: Callable[[str], Job], kind: str, is_reset: bool
) -> None:
    job = make(kind)
    job.produce(2)
    killed(job.start([Fault("committed", "kill", 1)]))
    assert job.subject.visible() == [0, 1]
    admin = offset_admin(job.worker)
    if is_reset:
        admin.reset(job.name, job.config)
    else:
        partition = {"kafka_topic": job.name, "kafka_partition": 0}
        admin.alter(job.name, job.config, [OffsetEntry(partition, {"kafka_offset": 0})])
    job.drain()
    assert sorted(job.subject.visible()) == ([0, 1] if kind in REPLACED else [0, 0, 1, 1])


def test_offsets_moved_by_hand_count_also_if_the_file_was_removed(make: Callable[[str], Job]) -> None:
    """They were forgotten when the first commit found the journal of the old file."""
    job = make("file")
    job.produce(2)
    job.drain()
    Path(job.config["file"]).unlink()
    offset_admin(job.worker).reset(job.name, job.config)
    job.drain()
    assert job.subject.visible() == [0, 1]
