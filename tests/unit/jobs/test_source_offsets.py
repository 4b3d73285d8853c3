"""Where the offsets of a source connector are, by what worker and connector say; the file of a standalone
worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError, PreconditionError
from icestream.api.offset_admin import OffsetEntry
from icestream.jobs.offsets.formats import serialized
from icestream.jobs.offsets.source_offsets import OffsetFile, OffsetLocation

DISTRIBUTED = {"group.id": "g", "offset.storage.topic": "offsets"}
SERIALIZED = serialized({b"k1": b"v1", b"k2": None})


def test_a_standalone_worker_has_a_file(tmp_path: Path) -> None:
    worker = {"offset.storage.file.filename": str(tmp_path / "f"), "exactly.once.source.support": "enabled"}
    location = OffsetLocation("c", worker, {})
    assert not location.is_exactly_once, "a standalone worker never is, as in Java"
    assert location.store().read() == []
    with pytest.raises(ConfigError, match=r"'offset\.storage\.file\.filename' is not set"):
        OffsetLocation("c", {}, {}).store()


def test_a_distributed_worker_has_a_topic_and_a_connector_may_have_its_own() -> None:
    assert OffsetLocation("c", DISTRIBUTED, {}).topic == "offsets"
    exactly_once = {**DISTRIBUTED, "exactly.once.source.support": "ENABLED"}
    location = OffsetLocation("c", exactly_once, {"offsets.storage.topic": "own"})
    assert (location.topic, location.workers_topic) == ("own", "offsets")
    assert location.is_exactly_once
    assert location.transactional_id == "g-c-0"
    preparing = {**DISTRIBUTED, "exactly.once.source.support": "preparing"}
    assert not OffsetLocation("c", preparing, {}).is_exactly_once


def test_many_entries_survive_and_none_removes(tmp_path: Path) -> None:
    files = [OffsetFile(name, tmp_path / "offsets") for name in ("c0", "c1")]
    for number in range(100):
        files[number % 2].write([OffsetEntry({"filename": f"/ü/{number}"}, {"position": number})])
    files[1].write([OffsetEntry({"filename": f"/ü/{number}"}, None) for number in range(3, 100, 2)])
    assert len(OffsetFile("c0", tmp_path / "offsets").read()) == 50
    assert OffsetFile("c1", tmp_path / "offsets").read() == [
        OffsetEntry({"filename": "/ü/1"}, {"position": 1})
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["offsets"]


def test_no_file_and_an_empty_one_have_no_offsets(tmp_path: Path) -> None:
    assert OffsetFile("c", tmp_path / "offsets").read() == []
    (tmp_path / "offsets").touch()
    assert OffsetFile("c", tmp_path / "offsets").read() == []


@pytest.mark.parametrize(
    "content", [b"x", SERIALIZED[:-20], SERIALIZED.replace(b"HashMap", b"TreeMap"), b"\xac\xed\x00\x05sr"]
)
def test_any_other_file_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "offsets").write_bytes(content)
    with pytest.raises(PreconditionError, match="offsets does not hold offsets of Kafka Connect"):
        OffsetFile("c", tmp_path / "offsets").read()
