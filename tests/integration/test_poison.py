"""Records that hurt: what fits lands, what does not becomes a dead letter with its reason, in bounded memory.

Config in, table and dead letter queue out: a real broker, a real table, the job manager and what a Spark task
does, without Spark around it.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from confluent_kafka import Producer
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, ListType, LongType, MapType, NestedField, StringType, StructType

from icestream.api.batch import Batch, Taken
from icestream.api.errors import RecordRejected
from icestream.embedded.kafka import Broker, running_broker
from icestream.embedded.minio_tables import sqlite_catalog
from icestream.jobs.build_iceberg import job_manager
from icestream.jobs.letters import Letter, LetterBox
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.pipeline.plan import Plan, TableTask
from icestream.pipeline.record_path import RecordSettings
from icestream.pipeline.run import SparkRunner
from icestream.pipeline.worker import SliceWork
from icestream.sinks.iceberg.catalogs import open_catalog

JSON = "org.apache.kafka.connect.json.JsonConverter"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "text", StringType()),
    NestedField(3, "amount", DoubleType()),
)
MEGABYTE = 2**20
_NUMBERS = itertools.count(1)
_LARGE = {"max.message.bytes": str(16 * MEGABYTE)}


@dataclass
class InThisProcess:
    """A BatchRunner that is one task."""

    kafka: Mapping[str, str]
    records: RecordSettings
    overflows: int = 0

    def run(self, batch: Batch, tables: Sequence[TableTask], *, evolves: bool, stages: bool = True) -> Taken:
        plan = Plan(self.kafka, self.records, tables, [batch.slices()], evolves, stages)
        taken = SliceWork(plan, 0).run(batch.slices())
        self.overflows += taken.overflow
        return taken


@dataclass
class World:
    """A topic with one partition, its connector and its table."""

    broker: Broker
    folder: Path
    schema: Schema = SCHEMA
    name: str = field(default_factory=lambda: f"poison-{next(_NUMBERS)}")
    options: dict[str, str] = field(default_factory=dict)
    overflows: int = 0

    def __post_init__(self) -> None:
        self.topics.create(self.name, 1, 1, _LARGE)
        self.catalog.create_namespace_if_not_exists("ns")
        self.catalog.create_table(f"ns.{self.name}", self.schema)

    @property
    def settings(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    @property
    def topics(self) -> Topics:
        return Topics(self.settings)

    @property
    def catalog(self) -> Catalog:
        return open_catalog(sqlite_catalog(str(self.folder)))

    @property
    def config(self) -> dict[str, str]:
        return {
            "connector.class": "IcebergSinkConnector",
            "topics": self.name,
            "tasks.max": "1",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            "iceberg.tables": f"ns.{self.name}",
            "iceberg.control.commit.interval-ms": "1000",
            **sqlite_catalog(str(self.folder)),
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.name}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
            **self.options,
        }

    def produce(self, values: Iterable[Any]) -> None:
        """Bytes as they are, all else as JSON."""
        producer = Producer(
            {**self.settings, "message.max.bytes": 16 * MEGABYTE, "linger.ms": 20, "compression.type": "lz4"}
        )
        for value in values:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            while True:
                try:
                    producer.produce(self.name, body)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def drain(self) -> None:
        """Run the job until nothing waits."""
        runner = InThisProcess(self.settings, RecordSettings.of(self.config))
        manager = job_manager(self.name, self.config, self.settings, cast(SparkRunner, runner))
        deadline = time.monotonic() + 300
        try:
            while not (manager.tick() and manager.progress.lag == 0):
                assert time.monotonic() < deadline, manager.progress
        finally:
            self.overflows = runner.overflows
            manager.close()

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.catalog.load_table(f"ns.{self.name}").scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])

    def ids(self) -> list[int]:
        column = self.catalog.load_table(f"ns.{self.name}").scan(selected_fields=("id",)).to_arrow()["id"]
        return sorted(column.to_pylist())

    def letters(self) -> list[Letter]:
        reader = SliceReader(self.settings)
        try:
            return list(LetterBox(f"{self.name}-dlq", self.name, self.topics, reader).letters())
        finally:
            reader.close()

    def reasons(self) -> dict[int, tuple[str, str]]:
        """Offset → stage and reason of each letter."""
        return {
            letter.origin_offset or 0: (letter.context["stage"], letter.context["exception.message"])
            for letter in self.letters()
        }


MakeWorld = Callable[..., World]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("poison") / "kafka") as running:
        yield running


@pytest.fixture
def make_world(broker: Broker, tmp_path: Path) -> MakeWorld:
    def make(schema: Schema = SCHEMA, **options: str) -> World:
        return World(broker, tmp_path, schema, options={k.replace("__", "."): v for k, v in options.items()})

    return make


@contextmanager
def memory_grows_by_at_most(limit: int) -> Iterator[None]:
    process, done = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    peak = [before]

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    assert peak[0] - before < limit, f"{(peak[0] - before) // MEGABYTE} MB"


def _good(ids: Iterable[int]) -> Iterator[bytes]:
    return (b'{"id":%d,"text":"record number %d","amount":0.5}' % (number, number) for number in ids)


@pytest.mark.slow
def test_one_bad_record_in_a_million(make_world: MakeWorld) -> None:
    world, bad = make_world(), b'{"id":654321,"text":"not closed'
    world.produce(bad if number == 654_321 else value for number, value in enumerate(_good(range(1_000_000))))
    world.drain()
    assert world.ids() == [*range(654_321), *range(654_322, 1_000_000)]
    (letter,) = world.letters()
    assert (letter.value, letter.origin_offset, letter.context["stage"]) == (bad, 654_321, "VALUE_CONVERTER")
    assert letter.context["class.name"] == JSON


@pytest.mark.slow
def test_all_records_bad(make_world: MakeWorld) -> None:
    """More than a driver should hold: the batch is cut until its dead letters fit."""
    world, padding = make_world(), b"x" * 300
    world.produce(b'{"id":%d,"text":"%s' % (number, padding) for number in range(300_000))
    with memory_grows_by_at_most(600 * MEGABYTE):
        world.drain()
    assert world.overflows > 0
    assert world.ids() == []
    assert [letter.origin_offset for letter in world.letters()] == list(range(300_000))


def test_the_first_bad_record_is_named_when_none_is_tolerated(make_world: MakeWorld) -> None:
    world = make_world(errors__tolerance="none")
    world.produce([{"id": 0}, {"id": 1}, b'{"id":', {"id": 3}, b"}"])
    with pytest.raises(RecordRejected, match=rf"topic '{world.name}', partition 0, offset 2: .*VALUE_CONV"):
        world.drain()
    assert world.ids() == [0, 1]
    assert world.letters() == []


def test_records_of_ten_megabytes(make_world: MakeWorld) -> None:
    world, long = make_world(), b"x" * (10 * MEGABYTE)
    good, bad = b'{"id":1,"text":"%s"}' % long, b'{"id":2,"text":"%s' % long
    misfit = b'{"id":"%s"}' % long
    world.produce([{"id": 0}, good, bad, misfit, {"id": 4}])
    with memory_grows_by_at_most(700 * MEGABYTE):
        world.drain()
    assert [(row["id"], len(row["text"] or "")) for row in world.rows()] == [(0, 0), (1, len(long)), (4, 0)]
    assert [letter.value for letter in world.letters()] == [bad, misfit]
    stages = {offset: (stage, len(reason) < 5_000) for offset, (stage, reason) in world.reasons().items()}
    assert stages == {2: ("VALUE_CONVERTER", True), 3: ("TASK_PUT", True)}


def test_bytes_that_are_no_utf_8(make_world: MakeWorld) -> None:
    world = make_world()
    bad = [
        b'{"id":1,"text":"\xff"}',
        b'{"id":1,"t\xffxt":"a name"}',
        b'{"id":1,"text":"half a pair \xed\xa0\x80"}',
        b'{"id":1,"text":"overlong \xc0\xaf"}',
        b'{"id":1,"unknown":"\xff"}',
        b'\xef\xbb\xbf{"id":1}',
        b"\x00",
    ]
    fine = b'{"id":7,"text":"\\ud83d\\ude00 \xf0\x9f\x98\x80 a\\u0000b"}'
    world.produce([*bad, fine, {"id": 8}])
    world.drain()
    assert [(row["id"], row["text"]) for row in world.rows()] == [(7, "😀 😀 a\x00b"), (8, None)]
    assert [letter.value for letter in world.letters()] == bad
    assert {stage for stage, _ in world.reasons().values()} == {"VALUE_CONVERTER"}


def test_of_equal_keys_the_last_counts(make_world: MakeWorld) -> None:
    world = make_world()
    world.produce(
        [
            b'{"id":0,"id":1,"text":"a","text":"b"}',
            b'{"text":"a","id":2,"text":null}',
            b'{"id":3,"text":{"x":[1]},"text":"z"}',
            b'{"id":"x","id":4}',
            b'{"id":5,"id":"x"}',
        ]
    )
    world.drain()
    assert [(row["id"], row["text"]) for row in world.rows()] == [(1, "b"), (2, None), (3, "z"), (4, None)]
    assert list(world.reasons()) == [4]


def _lists(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def _objects(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_ten_thousand_levels(make_world: MakeWorld) -> None:
    world, deep = make_world(), 10_000
    bad = [
        b'{"id":1,"unknown":%s}' % _lists(deep),
        b'{"id":1,"unknown":%s}' % _objects(deep),
        b'{"id":1,"text":%s}' % _lists(deep),
        _lists(deep),
        _objects(deep),
        b"[" * deep,
        b'{"a":' * deep,
    ]
    world.produce([{"id": 0}, *bad, b'{"id":8,"unknown":%s}' % _lists(900), {"id": 9}])
    world.drain()
    assert world.ids() == [0, 8, 9]
    assert [letter.value for letter in world.letters()] == bad
    assert all("nesting depth" in reason for _, reason in world.reasons().values())


def test_numbers_that_are_none_and_those_that_are_too_large(make_world: MakeWorld) -> None:
    world = make_world()
    bad = [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"1" + b"0" * 400, b"1e99999999999", b".5", b"+1"]
    good = {b"1e308": 1e308, b"1e-400": 0.0, b"1" + b"0" * 30: 1e30, b"-0.0": -0.0, b"5e-324": 5e-324}
    ids = [b"9223372036854775808", b"1" + b"0" * 30, b"1e30", b"NaN"]
    world.produce([b'{"id":-1,"amount":%s}' % text for text in bad])
    world.produce([b'{"id":%d,"amount":%s}' % (number, text) for number, text in enumerate(good)])
    world.produce([b'{"id":%s}' % text for text in [*ids, b"9223372036854775807"]])
    world.drain()
    amounts = [*((number, value) for number, value in enumerate(good.values())), (2**63 - 1, None)]
    assert [(row["id"], row["amount"]) for row in world.rows()] == amounts
    assert len(world.letters()) == len(bad) + len(ids)
    too_large = len(bad) + len(good)
    assert world.reasons()[too_large] == (
        "TASK_PUT",
        "field 'id' is 9223372036854775808, which does not fit a column of type int64",
    )


def test_a_million_distinct_keys(make_world: MakeWorld) -> None:
    """In a map column, and in fields that the table does not have, whole and spread over records."""
    schema = Schema(
        *SCHEMA.fields,
        NestedField(4, "counts", MapType(5, StringType(), 6, LongType(), value_required=False)),
    )
    world, many = make_world(schema), 1_000_000
    keys = b",".join(b'"key-%d":%d' % (number, number) for number in range(many // 2))
    spread = (
        b'{"id":%d,%s}' % (number, b",".join(b'"new-%d-%d":1' % (number, at) for at in range(100)))
        for number in range(2, 5_002)
    )
    world.produce([b'{"id":0,"counts":{%s}}' % keys, b'{"id":1,"unknown":{%s}}' % keys, *spread])
    with memory_grows_by_at_most(1_000 * MEGABYTE):
        world.drain()
    assert world.ids() == list(range(5_002))
    table = world.catalog.load_table(f"ns.{world.name}")
    counts = dict(table.scan("id == 0").to_arrow()["counts"].to_pylist()[0])
    assert len(counts) == many // 2
    assert counts["key-77"] == 77
    assert world.letters() == []


_MIXED = [1, "t", "5", {"a": 1}, {"a": "x"}, {"b": 2}, [1], ["x"], None, True]
_FITS = {
    "number": [1, None, 5, None, None, None, None, None, None, None],
    "word": ["1", "t", "5", '{"a":1}', '{"a":"x"}', '{"b":2}', "[1]", '["x"]', None, "true"],
    "object": [None, None, None, {"a": 1}, None, {"a": None}, None, None, None, None],
    "items": [None, None, None, None, None, None, [1], None, None, None],
}


@pytest.mark.parametrize("name", list(_FITS))
def test_a_field_whose_type_differs_between_the_records_of_a_batch(make_world: MakeWorld, name: str) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "number", LongType()),
        NestedField(3, "word", StringType()),
        NestedField(4, "object", StructType(NestedField(5, "a", LongType()))),
        NestedField(6, "items", ListType(7, LongType(), element_required=False)),
    )
    world = make_world(schema)
    world.produce({"id": number, name: value} for number, value in enumerate(_MIXED))
    world.drain()
    landed = {row["id"]: row[name] for row in world.rows()}
    reasons = world.reasons()
    assert landed == {
        number: fit for number, fit in enumerate(_FITS[name]) if fit is not None or _MIXED[number] is None
    }
    assert sorted([*landed, *reasons]) == list(range(len(_MIXED)))
    assert all(f"field '{name}" in reason and "does not fit" in reason for _, reason in reasons.values())
    assert {stage for stage, _ in reasons.values()} <= {"TASK_PUT"}


def test_a_new_field_whose_type_differs_between_the_records_of_a_batch(make_world: MakeWorld) -> None:
    world = make_world(**{"iceberg.tables.evolve-schema-enabled": "true"})
    world.produce({"id": number, "new": value} for number, value in enumerate(_MIXED))
    world.drain()
    assert [row["new"] for row in world.rows()] == _FITS["word"]
    assert world.letters() == []


def test_values_that_are_no_objects(make_world: MakeWorld) -> None:
    world = make_world()
    bad = [b"1", b'"x"', b"[]", b'[{"id":1}]', b"true", b"{}", b'{"id":null}']
    world.produce([*bad, {"id": 7}])
    world.drain()
    assert world.ids() == [7]
    assert [letter.value for letter in world.letters()] == bad
    assert {stage for stage, _ in world.reasons().values()} == {"TASK_PUT"}
