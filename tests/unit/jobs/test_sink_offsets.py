"""The offsets of sinks, as far as they are had without Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import TopicIds, checkpoint_after
from icestream.api.errors import FatalError
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.file.sink import FileSink, LineFile
from icestream.jobs.offsets import checkpoint_offsets
from icestream.jobs.offsets.checkpoint_offsets import CheckpointOffsetStore
from icestream.jobs.offsets.group_offsets import ConnectorKafka
from icestream.jobs.offsets.sink_offsets import SinkOffsets
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.kafka.topics import GroupOffset
from tests.unit.jobs.managed_sink import FakeSink, World

P = Partition("t", 0)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[FileSink]:
    sinks: list[FileSink] = []
    monkeypatch.setattr(FileSink, "close", lambda sink: sinks.append(sink))
    return sinks


@pytest.mark.parametrize("is_strange", [False, True])
def test_a_sink_that_was_asked_for_offsets_is_closed(
    tmp_path: Path, closed: list[FileSink], is_strange: bool
) -> None:
    path = tmp_path / "out.txt"
    batch = Batch("first", Offsets({P: 0}), Offsets({P: 3}))
    checkpoint = checkpoint_after(None, batch, {P: Counts(3, 3)}, TopicIds("c", {"t": "i"}))
    LineFile(path, "x").commit(Commit(checkpoint, None, None, Staged([b"1\n2\n3\n"], 3)))
    config = {"connector.class": "FileStreamSink", "topics": "t", "file": str(path)}
    admin = SinkOffsets({"bootstrap.servers": "127.0.0.1:1"})
    if is_strange:
        (tmp_path / ".out.txt.icestream").write_text("{}")
        with pytest.raises(FatalError):
            admin.read("x", config)
    else:
        assert [entry.offset for entry in admin.read("x", config)] == [{"kafka_offset": 3}]
    assert len(closed) == 1


def test_what_another_tool_has_moved_is_not_taken_for_missing_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World({0: 10, 1: 10}, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
    world.table.follows_group = True
    world.runner.bad = {(0, 8)}
    world.tick()
    zero, one = Partition("t", 0), Partition("t", 1)
    world.kafka.group[zero] = GroupOffset(5, "")
    fake: Any = world.kafka
    fake.prove = lambda partition: None
    monkeypatch.setattr(checkpoint_offsets, "KafkaPublisher", lambda job, settings: fake)
    monkeypatch.setattr(checkpoint_offsets, "InWorkerRunner", lambda kafka, records: world.runner)
    monkeypatch.setattr(checkpoint_offsets, "create_missing_topics", lambda job, events, topics: None)
    kafka = ConnectorKafka(["t"], None, fake, {}, {})
    CheckpointOffsetStore(kafka, world.job, {}, FakeSink(world.tables), world.tables).alter({one: 3})
    assert world.kafka.group[zero] == GroupOffset(5, "")
    world.manager = world.new_manager()
    world.tick(10.0)
    # Of the first partition five again, and of the second seven.
    assert world.table.checkpoint is not None
    assert world.table.checkpoint.totals.read == 32
    # Once for each time that it was read.
    assert [record.offset for _, letters, _, _ in world.kafka.published for record in letters] == [8, 8]
