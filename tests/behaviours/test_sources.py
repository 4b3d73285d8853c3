"""What every source connector does, whoever wrote it: those of the tests' toys pass, too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from icestream.api.errors import BadOffsets, SourceUnavailable
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import Source, SourceBatch, SourcePlugin
from icestream.jobs.offsets.formats import entries_of, offset_records
from icestream.jobs.sources.manager import SourceJob, SourceManager
from icestream.jobs.sources.records import source_path_from
from icestream.kafka.bulk_producer import OutgoingColumns
from tests.source_examples import EXAMPLES, Sent, SourceExample, by_place, source_plugin


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> SourceExample:
    return EXAMPLES[request.param](tmp_path, "t")


@pytest.fixture
def plugin(example: SourceExample, toys: None) -> SourcePlugin:
    return source_plugin(example.config["connector.class"])


class Reader:
    """The tasks of a connector, with offsets that are stored and read as Kafka Connect does."""

    def __init__(self, plugin: SourcePlugin, example: SourceExample, most: int = 2) -> None:
        self._path = source_path_from(example.config)
        self._example = example
        self.tasks = plugin.tasks(example.config, most)
        self.sources: list[Source] = [plugin.open(task) for task in self.tasks]
        self.stored: dict[bytes, bytes | None] = {}
        self.found: dict[str, list[Sent]] = {place: [] for place in example.expected()}

    def seek(self) -> None:
        for source in self.sources:
            source.seek(entries_of("c", self.stored.items()))

    def read(self, limit: int) -> bool:
        """One batch of each task, if it has one. Whether any had."""
        batches = [batch for source in self.sources if (batch := source.read(limit)) is not None]
        for batch in batches:
            assert 0 < len(batch) <= limit
            self.stored |= dict(offset_records("c", batch.after))
            for sent in self.records(batch):
                self.found[self._example.place_of(sent)].append(sent)
        return bool(batches)

    def records(self, batch: SourceBatch) -> list[Sent]:
        converted = self._path.convert(batch.records)
        assert not converted.failed
        (outgoing,) = converted.outgoing
        assert outgoing.topic == "t"
        return list(zip(outgoing.keys or [None] * len(outgoing), outgoing.values, strict=True))

    def close(self) -> None:
        for source in self.sources:
            source.close()


@pytest.mark.parametrize("most", [1, 2, 5])
def test_its_tasks_share_what_there_is(plugin: SourcePlugin, example: SourceExample, most: int) -> None:
    reader = Reader(plugin, example, most)
    assert min(most, example.tasks) <= len(reader.tasks) <= most
    reader.seek()
    while reader.read(1000):
        pass
    assert reader.found == example.expected()
    assert sorted(entries_of("c", reader.stored.items()), key=str) == sorted(example.ends(), key=str)
    reader.close()


@pytest.mark.parametrize("seed", range(5))
def test_it_goes_on_from_its_stored_offsets_after_any_batch(
    plugin: SourcePlugin, example: SourceExample, seed: int
) -> None:
    chance = random.Random(seed)
    reader = Reader(plugin, example)
    reader.seek()
    while reader.read(chance.randrange(1, 400)):
        if chance.random() < 0.3:
            again = Reader(plugin, example)
            again.stored, again.found = reader.stored, reader.found
            reader.close()
            reader = again
            reader.seek()
        elif chance.random() < 0.5:
            reader.seek()
    assert reader.found == example.expected()
    reader.close()


def test_the_same_offsets_and_limit_yield_the_same_records(
    plugin: SourcePlugin, example: SourceExample
) -> None:
    reader = Reader(plugin, example)
    reader.seek()
    reader.read(70)
    for source in reader.sources:
        seen = []
        for _ in range(2):
            reader.seek()
            batch = source.read(30)
            assert batch is not None
            seen.append((reader.records(batch), batch.after))
        assert seen[0] == seen[1]
    reader.close()


def test_offsets_of_other_partitions_do_not_matter(plugin: SourcePlugin, example: SourceExample) -> None:
    reader = Reader(plugin, example)
    reader.stored = dict(
        offset_records("c", [OffsetEntry({"somebody": "else's"}, {"position": 5, "next": 5})])
    )
    reader.seek()
    while reader.read(1000):
        pass
    assert reader.found == example.expected()
    reader.close()


def test_at_its_end_it_has_nothing_and_later_only_what_is_new(
    plugin: SourcePlugin, example: SourceExample
) -> None:
    reader = Reader(plugin, example)
    reader.seek()
    while reader.read(1000):
        pass
    assert not reader.read(1000)
    reader.close()
    example.grow()
    again = Reader(plugin, example)
    again.stored, again.found = reader.stored, reader.found
    again.seek()
    while again.read(1000):
        pass
    assert again.found == example.expected()
    again.close()
    again.close()


def test_offsets_by_hand_are_taken_if_they_make_sense(plugin: SourcePlugin, example: SourceExample) -> None:
    (place, *_) = example.expected()
    moved = example.offset_of(place, 3)
    plugin.check_offsets(example.config, [moved, OffsetEntry(moved.partition, None)])
    for wrong in (OffsetEntry(moved.partition, {"no": "such key"}), OffsetEntry({"no": "key"}, moved.offset)):
        with pytest.raises(BadOffsets):
            plugin.check_offsets(example.config, [wrong])


@dataclass
class Kafka:
    """Transactions that fail at any step, now and then."""

    chance: random.Random
    records: list[Sent] = field(default_factory=list)
    offsets: dict[bytes, bytes | None] = field(default_factory=dict)

    def meet(self) -> None:
        if self.chance.random() < 0.2:
            raise SourceUnavailable("now and then")


class Writer:
    has_room = True

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._sent: list[Sent] = []

    def stored(self) -> list[OffsetEntry]:
        self._kafka.meet()
        return entries_of("c", self._kafka.offsets.items())

    def send(self, outgoing: OutgoingColumns) -> None:
        self._kafka.meet()
        self._sent += zip(outgoing.keys or [None] * len(outgoing), outgoing.values, strict=True)

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        self._kafka.meet()
        self._kafka.records += self._sent
        self._kafka.offsets |= dict(offset_records("c", entries))
        self._sent = []
        self._kafka.meet()
        return True

    def close(self) -> None: ...

    def abandon(self) -> None: ...


@pytest.mark.parametrize("seed", range(3))
def test_each_record_is_sent_once_though_every_step_may_fail(
    plugin: SourcePlugin, example: SourceExample, seed: int
) -> None:
    kafka = Kafka(random.Random(seed))
    manager = SourceManager(
        SourceJob("c", commit_seconds=0.0, tolerates_all=False, logs_rejects=False),
        [plugin.open(task) for task in plugin.tasks(example.config, 2)],
        source_path_from(example.config),
        lambda: Writer(kafka),
    )
    pause = 0.0
    while pause == 0.0:
        try:
            pause = manager.tick()
        except SourceUnavailable:
            pause = 0.0
    manager.close()
    assert by_place(example, kafka.records) == example.expected()
