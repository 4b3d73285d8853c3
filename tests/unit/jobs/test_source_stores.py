"""Where the offsets of a source connector are, by what worker and connector say."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.jobs.source_stores import SourcePlace, file_store

DISTRIBUTED = {"group.id": "g", "offset.storage.topic": "offsets"}


def test_a_standalone_worker_has_a_file(tmp_path: Path) -> None:
    place = SourcePlace(
        {"offset.storage.file.filename": str(tmp_path / "f"), "exactly.once.source.support": "enabled"}, {}
    )
    assert not place.is_exactly_once, "a standalone worker never is, as in Java"
    assert place.store().read("c") == []
    with pytest.raises(ConfigError, match=r"'offset\.storage\.file\.filename' is not set"):
        file_store({})


def test_a_distributed_worker_has_a_topic_and_a_connector_may_have_its_own() -> None:
    assert SourcePlace(DISTRIBUTED, {}).topic == "offsets"
    place = SourcePlace(
        {**DISTRIBUTED, "exactly.once.source.support": "ENABLED"}, {"offsets.storage.topic": "own"}
    )
    assert (place.topic, place.workers_topic) == ("own", "offsets")
    assert place.is_exactly_once
    assert place.transactional_id("c") == "g-c-0"
    assert not SourcePlace({**DISTRIBUTED, "exactly.once.source.support": "preparing"}, {}).is_exactly_once
