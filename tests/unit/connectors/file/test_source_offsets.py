"""What FileStreamSource may be told by hand."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry
from icestream.connectors.file.source_offsets import refuse_bad_offsets

FILE = {"file": "/tmp/f"}


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({"filename": "f"}, {}, "contain the key 'position'"),
        ({"filename": "f"}, {"position": "1"}, "expected to be a Long value"),
        ({"filename": "f"}, {"position": 1.5}, "expected to be a Long value"),
        ({"filename": "f"}, {"position": True}, "expected to be a Long value"),
        ({"filename": "f"}, {"position": -1}, "non-negative"),
        ({"other": "f"}, {"position": 1}, "contain the key 'filename'"),
        (None, {"position": 1}, "cannot be null"),
        ({"filename": []}, {"position": 1}, "field filename contains ARRAY"),
        ({"filename": "f"}, {"position": {}}, "field position contains MAP"),
    ],
)
def test_offsets_that_make_no_sense_are_refused(partition: Any, offset: Any, message: str) -> None:
    with pytest.raises(BadOffsets, match=message):
        refuse_bad_offsets(FILE, [OffsetEntry(partition, offset)])


def test_good_ones_pass_and_anything_may_be_removed() -> None:
    refuse_bad_offsets(
        FILE, [OffsetEntry({"filename": "other"}, {"position": 0}), OffsetEntry({"x": 1}, None)]
    )
    with pytest.raises(BadOffsets, match="stdin is used"):
        refuse_bad_offsets({}, [])
