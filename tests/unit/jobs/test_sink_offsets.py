"""The offsets of sinks, as far as they are had without Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import SourceIds, checkpoint_after
from icestream.api.errors import FatalError
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.file.sink import FileSink, LineFile
from icestream.jobs.sink_offsets import SinkOffsets

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
    checkpoint = checkpoint_after(None, batch, {P: Counts(3, 3)}, SourceIds("c", {"t": "i"}))
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
