"""A source manager's turns, over sources and a writer that fail when told to."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from icestream.api.config import Config
from icestream.api.errors import (
    FatalError,
    IcestreamError,
    OriginUnavailable,
    PreconditionError,
    RecordRejected,
    SourceUnavailable,
    is_destination_outage,
)
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourceBatch, SourcePlugin
from icestream.jobs.sources.manager import SourceJob, SourceManager, source_manager
from icestream.jobs.sources.records import source_path_from
from icestream.kafka.bulk_producer import OutgoingColumns
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.schema import STRING

LINES = [f"line {number}" for number in range(10)]
NOW_MS = 1_763_222_400_000


def strings(lines: Sequence[str], first_row: int = 0, **facts: object) -> Records:
    return Records(
        **{  # type: ignore[arg-type]
            "rows": np.arange(first_row, first_row + len(lines)),
            "topic": "t",
            "partitions": None,
            "timestamps": pa.array([NOW_MS] * len(lines), pa.int64()),
            "key": None,
            "value": Column(pa.array(lines), STRING),
            **facts,
        }
    )


class ListSource:
    """Lines of a list, at most four at a time; its offset is an index. Raises `error` once, if it has one."""

    def __init__(self, lines: Sequence[str], number: int = 1) -> None:
        self.lines = lines
        self.number = number
        self.at = 0
        self.error: Exception | None = None
        self.is_closed = False
        self.together: threading.Barrier | None = None

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        self.fail()
        stored = {entry.partition["list"]: entry.offset for entry in offsets}
        self.at = (stored.get(self.number) or {"at": 0})["at"]

    def read(self, limit: int) -> SourceBatch | None:
        if self.together is not None:
            self.together.wait(60)
        self.fail()
        part = self.lines[self.at : self.at + min(limit, 4)]
        if not part:
            return None
        self.at += len(part)
        return SourceBatch([strings(part)], [OffsetEntry({"list": self.number}, {"at": self.at})])

    def close(self) -> None:
        self.is_closed = True

    def fail(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


@dataclass
class Kafka:
    """What writers have made durable; the next call of a name in `failing` raises."""

    error: type[IcestreamError] = SourceUnavailable
    sent: list[bytes | None] = field(default_factory=list)
    offsets: list[OffsetEntry] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    is_silent: bool = False
    opened: int = 0
    abandoned: int = 0

    def meet(self, name: str) -> None:
        if name in self.failing:
            self.failing.remove(name)
            raise self.error(name)


class FakeWriter:
    has_room = True

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        kafka.opened += 1

    def stored(self) -> list[OffsetEntry]:
        return self._kafka.offsets

    def send(self, outgoing: OutgoingColumns) -> None:
        self._kafka.meet("send")
        self._kafka.sent += outgoing.values

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        self._kafka.meet("commit")
        if self._kafka.is_silent:
            return False
        changed = [entry.partition for entry in entries]
        self._kafka.offsets = [
            *(entry for entry in self._kafka.offsets if entry.partition not in changed),
            *entries,
        ]
        return True

    def close(self) -> None: ...

    def abandon(self) -> None:
        self._kafka.abandoned += 1


class World:
    def __init__(
        self, *sources: ListSource, tolerates_all: bool = False, commit_seconds: float = 60.0, **settings: str
    ) -> None:
        self.kafka = Kafka()
        self.sources = sources or (ListSource(LINES),)
        self.now = 0.0
        config = {"value__converter": "StringConverter", **settings}
        self.manager = SourceManager(
            SourceJob("job", commit_seconds, tolerates_all, False),
            self.sources,
            source_path_from({key.replace("__", "."): value for key, value in config.items()}),
            lambda: FakeWriter(self.kafka),
            clock=lambda: self.now,
            wall=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        )

    def drain(self) -> None:
        while self.manager.tick() == 0.0:
            pass


def at(position: int) -> list[OffsetEntry]:
    return [OffsetEntry({"list": 1}, {"at": position})]


def test_records_are_sent_in_batches_and_the_offset_follows_when_the_source_is_at_its_end() -> None:
    world = World()
    world.manager.tick()
    assert (len(world.kafka.sent), world.kafka.offsets) == (4, [])
    world.drain()
    assert world.kafka.sent == [line.encode() for line in LINES]
    assert world.kafka.offsets == at(10)
    assert world.manager.progress.topics == ("t",)
    assert (world.manager.progress.rows, world.manager.progress.batches) == (10, 1)


def test_the_offset_is_saved_every_interval() -> None:
    world = World()
    world.manager.tick()
    world.now = 60.0
    world.manager.tick()
    assert world.kafka.offsets == at(8)


@pytest.mark.parametrize("point", ["send", "commit"])
def test_after_a_failure_it_goes_on_from_the_stored_offset(point: str) -> None:
    world = World()
    world.now = -60.0
    world.manager.tick()
    world.now = 0.0
    world.manager.tick()
    assert world.kafka.offsets == at(8)
    world.kafka.failing.append(point)
    with pytest.raises(SourceUnavailable):
        world.drain()
    world.drain()
    assert world.kafka.opened == 2
    assert world.kafka.offsets == at(10)
    assert set(world.kafka.sent) == {line.encode() for line in LINES}


def test_what_a_source_reads_is_told_apart_from_kafka() -> None:
    """Only the former opens the circuit breaker of the database."""
    world = World()
    world.sources[0].error = SourceUnavailable("the database is away")
    with pytest.raises(OriginUnavailable, match=r"^the database is away$") as told:
        world.manager.tick()
    assert is_destination_outage(told.value)
    world.manager.tick()
    world.kafka.failing.append("send")
    with pytest.raises(SourceUnavailable) as told_of_kafka:
        world.drain()
    assert not is_destination_outage(told_of_kafka.value)


def test_while_kafka_is_silent_nothing_is_given_up() -> None:
    world = World()
    world.kafka.is_silent = True
    world.drain()
    assert world.manager.progress.warnings
    world.kafka.is_silent = False
    world.manager.tick()
    assert world.kafka.offsets == at(10)
    assert world.kafka.opened == 1
    assert world.manager.progress.warnings == ()


def test_the_end_of_the_job_saves_the_offset() -> None:
    world = World()
    world.manager.tick()
    world.manager.close()
    assert world.kafka.offsets == at(4)
    assert world.sources[0].is_closed


def test_what_the_converter_refuses_fails_the_job_or_is_counted() -> None:
    strict = World(value__converter="ByteArrayConverter")
    refused = r"Invalid schema type for ByteArrayConverter: STRING \(VALUE_CONVERTER\); change the converter"
    with pytest.raises(RecordRejected, match=refused):
        strict.manager.tick()
    assert strict.kafka.offsets == []
    tolerant = World(value__converter="ByteArrayConverter", tolerates_all=True)
    tolerant.drain()
    assert tolerant.kafka.sent == []
    assert tolerant.kafka.offsets == at(10)
    assert tolerant.manager.progress.rejected == 10


@pytest.mark.parametrize("error", [SourceUnavailable, PreconditionError])
def test_an_offset_that_cannot_be_saved_at_the_end_is_only_told(
    error: type[IcestreamError], caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.manager.tick()
    world.kafka.error, world.kafka.failing = error, ["commit"]
    world.manager.close()
    assert "the last offsets were not saved" in caplog.text
    assert (world.kafka.abandoned, world.sources[0].is_closed) == (1, True)


def sent_by(*groups: Records, **settings: str) -> list[OutgoingColumns]:
    config = {"value__converter": "StringConverter", **settings}
    path = source_path_from({key.replace("__", "."): value for key, value in config.items()})
    return path.convert(groups or [strings(["a", "b", "c"])]).outgoing


TRANSFORMS = "org.apache.kafka.connect.transforms."


def test_transforms_and_converters_make_the_record() -> None:
    (sent,) = sent_by(
        transforms="hoist,key,header,route",
        transforms__hoist__type=f"{TRANSFORMS}HoistField$Value",
        transforms__hoist__field="line",
        transforms__key__type=f"{TRANSFORMS}ValueToKey",
        transforms__key__fields="line",
        transforms__header__type=f"{TRANSFORMS}InsertHeader",
        transforms__header__header="n",
        transforms__header__value__literal="12",
        transforms__route__type=f"{TRANSFORMS}RegexRouter",
        transforms__route__regex="t",
        transforms__route__replacement="u",
        key__converter="JsonConverter",
        key__converter__schemas__enable="false",
        value__converter="JsonConverter",
        value__converter__schemas__enable="false",
    )
    assert sent.topic == "u"
    assert sent.values == [b'{"line":"a"}', b'{"line":"b"}', b'{"line":"c"}']
    assert sent.keys == [b'{"line":"a"}', b'{"line":"b"}', b'{"line":"c"}']
    assert sent.headers == [[("n", b"12")]] * 3
    assert (sent.timestamps, sent.partitions) == ([NOW_MS] * 3, None)


def test_groups_of_one_topic_are_sent_in_the_order_of_their_rows() -> None:
    keyed = strings(["b", "d"], key=Column(pa.array(["x", "y"]), STRING), rows=np.array([1, 3]))
    placed = strings(["a", "c"], rows=np.array([0, 2]), partitions=np.array([5, 6]))
    other = strings(["e"], first_row=4, topic="u")
    first, second = sent_by(keyed, placed, other, key__converter="StringConverter")
    assert (first.topic, first.values) == ("t", [b"a", b"b", b"c", b"d"])
    assert first.keys == [None, b"x", None, b"y"]
    assert first.partitions == [5, -1, 6, -1]
    assert (second.topic, second.values) == ("u", [b"e"])


def test_records_that_a_transform_drops_are_not_sent() -> None:
    dropped = sent_by(transforms="no", transforms__no__type=f"{TRANSFORMS}Filter")
    assert dropped == []


def test_what_a_transform_refuses_fails_the_job() -> None:
    world = World(
        transforms="extract",
        transforms__extract__type=f"{TRANSFORMS}ExtractField$Value",
        transforms__extract__field="x",
    )
    with pytest.raises(RecordRejected, match=r"\(TRANSFORMATION\); change the converter or the transform"):
        world.manager.tick()


def two_tasks() -> World:
    return World(ListSource(LINES[:3], 0), ListSource(LINES[3:], 1), commit_seconds=0.0)


def test_the_tasks_of_a_connector_share_a_commit() -> None:
    world = two_tasks()
    world.manager.tick()
    assert world.kafka.sent == [line.encode() for line in LINES[:7]]
    assert world.kafka.offsets == [OffsetEntry({"list": 0}, {"at": 3}), OffsetEntry({"list": 1}, {"at": 4})]
    assert world.manager.progress.batches == 1
    world.drain()
    assert world.kafka.sent == [line.encode() for line in LINES]
    assert world.kafka.offsets == [OffsetEntry({"list": 0}, {"at": 3}), OffsetEntry({"list": 1}, {"at": 7})]


def test_tasks_read_at_the_same_time() -> None:
    world = two_tasks()
    barrier = threading.Barrier(2)
    for source in world.sources:
        source.together = barrier
    world.manager.tick()
    assert len(world.kafka.sent) == 7


@pytest.mark.parametrize("error", [SourceUnavailable("the disk is away"), FatalError("the disk is away")])
def test_a_task_that_fails_is_named_and_what_the_others_read_is_saved(error: IcestreamError) -> None:
    world = two_tasks()
    world.manager.tick()
    world.sources[0].error = error
    with pytest.raises(type(error), match="task 0: the disk is away"):
        world.manager.tick()
    assert world.kafka.offsets[-1] == OffsetEntry({"list": 1}, {"at": 7})
    world.drain()
    assert world.kafka.sent == [line.encode() for line in LINES]
    assert world.kafka.opened == 2


def test_the_error_that_cannot_be_waited_out_comes_first() -> None:
    world = two_tasks()
    world.manager.tick()
    world.sources[0].error, world.sources[1].error = SourceUnavailable("later"), FatalError("never")
    with pytest.raises(FatalError, match="task 1: never"):
        world.manager.tick()


def test_a_task_that_cannot_begin_is_named() -> None:
    world = two_tasks()
    world.sources[1].error = SourceUnavailable("no such folder")
    with pytest.raises(SourceUnavailable, match="task 1: no such folder"):
        world.manager.tick()
    assert world.kafka.abandoned == 1
    world.drain()
    assert world.kafka.sent == [line.encode() for line in LINES]


def test_an_error_that_is_not_ours_keeps_its_words_and_names_the_task() -> None:
    world = two_tasks()
    world.sources[1].error = OSError(5, "input/output error")
    with pytest.raises(OSError, match="input/output error") as raised:
        world.manager.tick()
    assert raised.value.__notes__ == ["in task 1 of connector 'job'"]


class ThreeTasks(SourcePlugin):
    def tasks(self, config: Config, most: int) -> Sequence[Config]:
        return [config] * 3

    def open(self, task: Config) -> ListSource:
        return ListSource(LINES)


def test_a_connector_that_makes_more_tasks_than_it_may_is_refused() -> None:
    config = {"connector.class": "x", "tasks.max": "2"}
    with pytest.raises(FatalError, match=r"the connector made 3 tasks, more than tasks\.max=2"):
        source_manager("job", ThreeTasks(), config, {})
    source_manager("job", ThreeTasks(), {**config, "tasks.max": "3"}, {}).close()
