"""Names and contents that are not what they look like."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from icestream.api.offsets import Partition
from icestream.connectors.s3.commits.audit import _row_offsets
from icestream.connectors.s3.commits.metadata import about
from icestream.connectors.s3.layout import layout_of
from icestream.connectors.s3.names import ObjectNames
from icestream.connectors.s3.stores.store import ObjectFacts

SOURCE = Partition("events", 0)
_FORMATS = "io.confluent.connect.s3.format."


class OneObject:
    def read(self, key: str) -> bytes:
        return b'{\n "id": 1\n}\n{"id": 2}\n'


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ({"format.class": f"{_FORMATS}bytearray.ByteArrayFormat", "format.bytearray.extension": ".json"}, 2),
        ({"format.class": f"{_FORMATS}json.JsonFormat"}, 0),
    ],
    ids=["bytes", "JSON"],
)
def test_nobody_counts_bare_bytes_by_their_lines(more: dict[str, str], known: int) -> None:
    """JSON as it came, whose objects are called `.json`: records may have several lines."""
    layout = layout_of({"flush.size": 2, "partitioner.class": _PARTITIONER, **more})
    facts = about("job", "batch", SOURCE, np.array([0, 1]), is_value=True)
    one = ObjectFacts("topics/events/events+0+0000000000.json", 26, "", dt.datetime.now(dt.UTC), facts)
    store: Any = OneObject()
    found = _row_offsets(store, [one], layout)
    assert sum(len(layer) for layers in found.layers.values() for layer in layers) == known


_PARTITIONER = "io.confluent.connect.storage.partitioner.DefaultPartitioner"


def test_a_topic_whose_files_no_folder_can_have_is_refused_before_anything_is_committed() -> None:
    names = ObjectNames(longest_step=255)
    topic = "t" * 240
    refusal = names.refusal(names.folder(topic, "partition=0"), topic, ".json")
    assert refusal is not None and "more than 255 bytes" in refusal
    assert ObjectNames().refusal(names.folder(topic, "partition=0"), topic, ".json") is None
    assert names.refusal(names.folder("t" * 200, "partition=0"), "t" * 200, ".json") is None


@pytest.mark.parametrize("value", ["a/.icestream/b", "1/events+0+0000000000.json"])
def test_a_value_that_takes_the_place_of_a_file_is_refused_where_files_are(value: str) -> None:
    """Its object could never be completed, nor any after it."""
    names = ObjectNames(longest_step=255)
    folder = names.folder("events", f"f={value}")
    assert "a name for files" in (names.refusal(folder, "events", ".json") or "")
    assert ObjectNames().refusal(folder, "events", ".json") is None
