"""A source job's turns, over a source and an outlet that fail when told to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from icestream.api.errors import IcestreamError, PreconditionError, RecordRejected, SourceUnavailable
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourceSlice
from icestream.jobs.source_job import SourceJob, SourceManager
from icestream.jobs.source_records import source_path_from
from icestream.kafka.bulk_producer import Outgoing

LINES = [f"line {number}" for number in range(10)]


class ListSource:
    """Lines of a list; its offset is an index."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0
        self.is_closed = False

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        self.at = next((entry.offset["at"] for entry in offsets if entry.offset), 0)

    def read(self, limit: int) -> SourceSlice | None:
        part = self.lines[self.at : self.at + limit]
        if not part:
            return None
        self.at += len(part)
        return SourceSlice("t", pa.array(part), OffsetEntry({"list": 1}, {"at": self.at}))

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Kafka:
    """What outlets have made durable; the next call of a name in `failing` raises."""

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


class FakeOutlet:
    has_room = True

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        kafka.opened += 1

    def stored(self) -> list[OffsetEntry]:
        return self._kafka.offsets

    def send(self, outgoing: Outgoing) -> None:
        self._kafka.meet("send")
        self._kafka.sent += outgoing.values

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        self._kafka.meet("commit")
        if self._kafka.is_silent:
            return False
        self._kafka.offsets = list(entries)
        return True

    def close(self) -> None: ...

    def abandon(self) -> None:
        self._kafka.abandoned += 1


class World:
    def __init__(self, *, tolerates_all: bool = False, **settings: str) -> None:
        self.kafka = Kafka()
        self.source = ListSource(LINES)
        self.now = 0.0
        self.created: list[str] = []

        config = {"value__converter": "StringConverter", **settings}
        path = source_path_from({key.replace("__", "."): value for key, value in config.items()})
        self.manager = SourceManager(
            SourceJob("job", 4, 60.0, tolerates_all, False),
            self.source,
            lambda found: path.ready(found, 0),
            self.created.append,
            lambda: FakeOutlet(self.kafka),
            lambda: self.now,
            lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        )

    def drain(self) -> None:
        while self.manager.tick() == 0.0:
            pass


def at(position: int) -> list[OffsetEntry]:
    return [OffsetEntry({"list": 1}, {"at": position})]


def test_records_are_sent_in_slices_and_the_offset_follows_when_the_source_is_at_its_end() -> None:
    world = World()
    world.manager.tick()
    assert (len(world.kafka.sent), world.kafka.offsets) == (4, [])
    world.drain()
    assert world.kafka.sent == [line.encode() for line in LINES]
    assert world.kafka.offsets == at(10)
    assert world.created == ["t"]
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
    assert world.source.is_closed


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
    assert "the last offset was not saved" in caplog.text
    assert (world.kafka.abandoned, world.source.is_closed) == (1, True)


def sent_by(**settings: str) -> list[Outgoing]:
    config = {"value__converter": "StringConverter", **settings}
    path = source_path_from({key.replace("__", "."): value for key, value in config.items()})
    found = SourceSlice("t", pa.array(["a", "b", "c"]), OffsetEntry({}, {}))
    return path.ready(found, 1_763_222_400_000).outgoing


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
        transforms__header__value__literal="[1,2]",
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
    assert sent.headers == [(("n", b"[1,2]"),)] * 3


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
