"""Turns of FileStreamSink's job: a real file and its journal, over a topic and a consumer group in memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from icestream.api.batch import Rejected, Slice
from icestream.api.errors import FatalError, RecordRejected, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.file.line_file import LineFile
from icestream.jobs.file_sink_job import FileSinkManager
from icestream.jobs.file_sink_lines import chunk_lines
from icestream.jobs.job import job_from
from icestream.kafka.chunk import Chunk
from icestream.kafka.topics import GroupOffset, TopicFacts
from icestream.pipeline.record_path import RecordSettings, record_path_from

JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


@dataclass(frozen=True)
class FakeMessage:
    at: int
    content: bytes | None

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return None

    def offset(self) -> int:
        return self.at

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def __len__(self) -> int:
        return len(self.content or b"")


@dataclass
class Kafka:
    """A cluster in memory: it is the source's facts, the reader and the channel."""

    topics: dict[str, list[bytes | None]] = field(default_factory=dict)
    first: int = 0
    group: dict[Partition, int] = field(default_factory=dict)
    notes: dict[Partition, str] = field(default_factory=dict)
    letters: list[Rejected] = field(default_factory=list)
    publishes: list[str] = field(default_factory=list)
    fails_to_publish: bool = False
    publishes_half: bool = False
    """Kafka goes away after the first letter of several."""
    channels: int = 0
    chunk_rows: int = 1000

    def open_channel(self) -> Kafka:
        self.channels += 1
        return self

    def cluster_id(self) -> str:
        return "cluster"

    def matching(self, pattern: str) -> list[str]:
        return [name for name in self.topics if name.startswith(pattern.removesuffix(".*"))]

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        return {name: TopicFacts(name, 1) for name in names if name in self.topics}

    def ends(self, partitions: Iterable[Partition]) -> Offsets:
        return Offsets({partition: len(self.topics[partition.topic]) for partition in partitions})

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets:
        return Offsets(dict.fromkeys(partitions, self.first))

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]:
        assert group == "connect-sink"
        return {p: GroupOffset(self.group[p], self.notes.get(p, "")) for p in partitions if p in self.group}

    def move_by_hand(self, partition: Partition, offset: int) -> None:
        self.group[partition] = offset
        self.notes.pop(partition, None)

    def reset_by_hand(self) -> None:
        self.group.clear()
        self.notes.clear()

    def read(self, piece: Slice, chunk_rows: int) -> Iterator[Chunk]:
        content = self.topics[piece.partition.topic]
        if piece.start < self.first:
            raise SourceUnavailable("removed by retention")
        for start in range(piece.start, piece.until, self.chunk_rows):
            until = min(start + self.chunk_rows, piece.until)
            messages: Sequence[Any] = [FakeMessage(at, content[at]) for at in range(start, until)]
            yield Chunk.of(piece.partition, cast("Any", messages))

    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[object], offsets: Offsets
    ) -> None:
        if self.fails_to_publish and any(offsets[p] == len(self.topics[p.topic]) for p in offsets):
            self.fails_to_publish = False
            raise SourceUnavailable("no answer")
        if self.publishes_half and len(rejected) > 1:
            self.publishes_half = False
            first = rejected[0]
            self.publish(commit, [first], [], Offsets({first.partition: first.offset + 1}))
            raise SourceUnavailable("no answer")
        self.letters += rejected
        self.publishes.append(commit)
        self.group.update(offsets.positions)
        self.notes.update(dict.fromkeys(offsets, f"icestream:{commit}"))

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class World:
    def __init__(self, folder: Path, **settings: str) -> None:
        self.kafka = Kafka({"t": []})
        self.file = folder / "out.txt"
        self.now = 0.0
        self.config: Mapping[str, str] = {
            "connector.class": "FileStreamSink",
            "topics": "t",
            **JSON,
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        self.manager = self.restarted()

    def restarted(self) -> FileSinkManager:
        path = record_path_from(RecordSettings.of(self.config))
        self.manager = FileSinkManager(
            job_from("sink", self.config),
            self.kafka,
            self.kafka,
            lambda chunk: chunk_lines(path, chunk),
            lambda: LineFile(self.file, "sink"),
            self.kafka.open_channel,
            lambda: self.now,
            lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        )
        return self.manager

    def drain(self) -> None:
        while self.manager.tick() == 0.0:
            pass

    def lines(self) -> list[bytes]:
        return self.file.read_bytes().splitlines() if self.file.exists() else []


P = Partition("t", 0)


def test_a_manager_that_opens_a_channel_again_asks_how_far_others_came(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b'"a"']
    world.drain()
    world.kafka.topics["t"] += [b'"b"']
    plain, world.kafka.ends = world.kafka.ends, _no_answer  # type: ignore[method-assign]
    with pytest.raises(SourceUnavailable):
        world.manager.tick()
    # Another manager, whose file is elsewhere, has had the second line meanwhile.
    world.kafka.ends = plain  # type: ignore[method-assign]
    world.kafka.group[P], world.kafka.notes[P] = 2, "icestream:of-another"
    world.drain()
    assert world.lines() == [b"a"]


def _no_answer(partitions: Iterable[Partition]) -> Offsets:
    raise SourceUnavailable("no answer")


def test_lines_land_and_the_group_follows(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b'"a"', None, b'{"b": 1}']
    world.drain()
    assert world.lines() == [b"a", b"null", b"{b=1}"]
    assert world.kafka.group == {P: 3}
    assert (world.manager.progress.topics, world.manager.progress.rows) == (("t",), 3)


def test_a_file_that_cannot_be_written_fails_before_kafka_is_asked(tmp_path: Path) -> None:
    world = World(tmp_path / "nowhere")
    world.kafka.topics.clear()
    with pytest.raises(FatalError, match="nowhere"):
        world.manager.tick()
    assert world.kafka.channels == 0


def test_a_batch_is_no_larger_than_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icestream.jobs.file_sink_job._BYTES", 20)
    world = World(tmp_path, topics="t,u", errors__tolerance="all")
    world.kafka.chunk_rows = 2
    world.kafka.topics = {"t": [b"1234567890"] * 5 + [b"{"], "u": [b"2", b"3"]}
    world.manager.tick()
    assert (len(world.lines()), world.kafka.group) == (2, {P: 2, Partition("u", 0): 0})
    world.drain()
    assert world.lines() == [b"1234567890"] * 5 + [b"2", b"3"]
    assert world.kafka.group == {P: 6, Partition("u", 0): 2}
    assert (world.manager.progress.batches, world.manager.progress.lag) == (3, 0)


def test_topics_that_come_later_are_read(tmp_path: Path) -> None:
    world = World(tmp_path, topics__regex="t.*", topics="")
    world.kafka.topics.clear()
    world.drain()
    world.kafka.topics["t1"] = [b"1"]
    world.drain()
    world.kafka.topics["t2"] = [b"2"]
    world.now += 10
    world.drain()
    world.drain()
    assert world.lines() == [b"1", b"2"]


def test_when_kafka_misses_a_batch_it_is_told_again_and_nothing_is_written_twice(tmp_path: Path) -> None:
    world = World(tmp_path, errors__tolerance="all", errors__deadletterqueue__topic__name="letters")
    world.kafka.topics["t"] = [b"1", b"{", b"2"]
    world.kafka.fails_to_publish = True
    with pytest.raises(SourceUnavailable):
        world.drain()
    world.restarted().tick()
    world.drain()
    assert world.lines() == [b"1", b"2"]
    assert [(letter.offset, letter.value) for letter in world.kafka.letters] == [(1, b"{")]
    assert world.kafka.group == {P: 3}


def test_letters_that_came_half_way_are_sent_from_there_on(tmp_path: Path) -> None:
    world = World(tmp_path, errors__tolerance="all", errors__deadletterqueue__topic__name="letters")
    world.kafka.topics["t"] = [b"1", b"{", b"2", b"{{"]
    world.kafka.publishes_half = True
    with pytest.raises(SourceUnavailable):
        world.drain()
    assert world.kafka.group == {P: 2}
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2"]
    assert [letter.offset for letter in world.kafka.letters] == [1, 3]
    assert world.kafka.group == {P: 4}


def test_a_batch_that_kafka_misses_and_no_longer_has_is_told_all_the_same(tmp_path: Path) -> None:
    world = World(tmp_path, errors__tolerance="all", errors__deadletterqueue__topic__name="letters")
    world.kafka.topics["t"] = [b"{", b"1", b"{", b"2"]
    fail_to_publish(world)
    world.kafka.first = 2
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2"]
    assert [letter.offset for letter in world.kafka.letters] == [2]
    assert world.kafka.group == {P: 4}


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_group_that_was_moved_by_hand_decides(tmp_path: Path, is_settled: bool) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b"1", b"2"]
    world.drain()
    world.kafka.topics["t"].append(b"3")
    if is_settled:
        world.drain()
    else:
        world.kafka.fails_to_publish = True
        with pytest.raises(SourceUnavailable):
            world.drain()
    world.kafka.move_by_hand(P, 1)
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2", b"3", b"2", b"3"]


def test_a_group_that_was_forgotten_reads_all_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b"1", b"2"]
    world.drain()
    world.kafka.reset_by_hand()
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2", b"1", b"2"]


def fail_to_publish(world: World) -> None:
    """What is in the topic lands in the file, and Kafka does not hear of it."""
    world.kafka.fails_to_publish = True
    with pytest.raises(SourceUnavailable):
        world.drain()


@pytest.mark.parametrize("begins_at", ["earliest", "latest"])
def test_a_reset_before_kafka_has_heard_of_the_first_batch_is_kept(tmp_path: Path, begins_at: str) -> None:
    world = World(tmp_path, consumer__override__auto__offset__reset=begins_at)
    world.manager.tick()
    world.kafka.topics["t"] = [b"1", b"2"]
    fail_to_publish(world)
    world.kafka.reset_by_hand()
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2"] * (2 if begins_at == "earliest" else 1)
    world.kafka.topics["t"].append(b"3")
    world.drain()
    assert world.lines()[-2:] == [b"2", b"3"]


def test_an_offset_set_by_hand_to_where_an_untold_batch_began_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b"1"]
    world.drain()
    world.kafka.topics["t"].append(b"2")
    fail_to_publish(world)
    world.kafka.move_by_hand(P, 1)
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2", b"2"]


def test_what_was_not_moved_by_hand_is_not_written_twice(tmp_path: Path) -> None:
    world = World(tmp_path, topics="t,u")
    world.kafka.topics = {"t": [b'"t0"', b'"t1"'], "u": [b'"u0"', b'"u1"']}
    fail_to_publish(world)
    world.kafka.move_by_hand(P, 1)
    world.restarted()
    world.drain()
    assert sorted(world.lines()) == [b"t0", b"t1", b"t1", b"u0", b"u1"]


def test_a_first_batch_of_a_late_beginner_that_kafka_misses_is_not_written_twice(tmp_path: Path) -> None:
    world = World(tmp_path, consumer__override__auto__offset__reset="latest")
    world.kafka.topics["t"] = [b"1"]
    world.drain()
    world.kafka.topics["t"].append(b"2")
    fail_to_publish(world)
    world.kafka.topics["t"].append(b"3")
    world.restarted()
    world.drain()
    assert world.lines() == [b"2", b"3"]


def test_the_first_bad_record_fails_the_job_after_what_precedes_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b"1", b"2", b"{", b"3"]
    with pytest.raises(RecordRejected, match=r"partition 0, offset 2: .*errors\.tolerance=all"):
        world.drain()
    assert world.lines() == [b"1", b"2"]
    assert world.kafka.group == {P: 2}


def test_bad_records_are_logged_as_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked = {"errors__tolerance": "all", "errors__log__enable": "true"}
    world = World(tmp_path, **asked)
    world.kafka.topics["t"] = [b"{secret"]
    world.drain()
    assert "Executing stage 'VALUE_CONVERTER'" in caplog.messages[-1]
    telling = World(tmp_path, **asked, errors__log__include__messages="true")
    telling.kafka.topics["t"] = [b"{secret"]
    telling.drain()
    assert "{topic='t', partition=0, offset=0, timestamp=" in caplog.messages[-1]
    assert "secret" not in caplog.text
    assert telling.manager.progress.rejected == 1


def test_offsets_that_the_topic_does_not_have_are_moved_to_its_beginning(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.kafka.topics["t"] = [b"0", b"1", b"2"]
    world.kafka.first = 1
    world.kafka.group[P] = 0
    world.drain()
    assert world.lines() == [b"1", b"2"]
    world.kafka.topics["t"] = [b"7", b"8"]
    world.restarted()
    world.drain()
    assert world.lines() == [b"1", b"2", b"8"]


def test_a_job_that_begins_late_reads_what_comes_after_its_start(tmp_path: Path) -> None:
    world = World(tmp_path, consumer__override__auto__offset__reset="latest")
    world.kafka.topics["t"] = [b"1"]
    world.drain()
    world.kafka.topics["t"].append(b"2")
    world.drain()
    assert world.lines() == [b"2"]


TRANSFORMS = "org.apache.kafka.connect.transforms."


def test_transforms_change_lines_and_drop_records(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        transforms="extract,drop",
        transforms__extract__type=f"{TRANSFORMS}ExtractField$Value",
        transforms__extract__field="a",
        transforms__drop__type=f"{TRANSFORMS}Filter",
        transforms__drop__predicate="gone",
        predicates="gone",
        predicates__gone__type=f"{TRANSFORMS}predicates.RecordIsTombstone",
    )
    world.kafka.topics["t"] = [b'{"a": 1}', None, b'{"a": "x"}', b'{"b": 1}', b'{"a": 2.5}']
    world.drain()
    assert world.lines() == [b"1", b"x", b"2.5"]
    assert world.kafka.group == {P: 5}


def test_every_stage_has_its_dead_letters(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="letters",
        transforms="extract",
        transforms__extract__type=f"{TRANSFORMS}ExtractField$Value",
        transforms__extract__field="a",
    )
    world.kafka.topics["t"] = [b"{", b'{"a": 1}', b'"no map"']
    world.drain()
    assert world.lines() == [b"1"]
    told = [(letter.offset, letter.stage, letter.class_name) for letter in world.kafka.letters]
    assert told == [
        (0, "VALUE_CONVERTER", "org.apache.kafka.connect.json.JsonConverter"),
        (2, "TRANSFORMATION", f"{TRANSFORMS}ExtractField$Value"),
    ]


def test_structs_are_printed_as_java_prints_them(tmp_path: Path) -> None:
    world = World(tmp_path, value__converter__schemas__enable="true")
    fields = b'[{"field":"a","type":"int32"},{"field":"b","type":"string","optional":true}]'
    schema = b'{"type":"struct","fields":%b}' % fields
    world.kafka.topics["t"] = [
        b'{"schema":%b,"payload":{"a":1,"b":"x"}}' % schema,
        b'{"schema":%b,"payload":{"a":2}}' % schema,
    ]
    world.drain()
    assert world.lines() == [b"Struct{a=1,b=x}", b"Struct{a=2}"]
