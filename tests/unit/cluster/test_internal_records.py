"""What is written to the internal topics."""

from __future__ import annotations

from icestream.api.status import State
from icestream.cluster.stores.internal_records import PublishedStatus, status_event, status_record


def test_a_trace_with_bytes_that_are_no_text_is_published() -> None:
    status = PublishedStatus("sink", None, State.FAILED, "w:1", 1, trace="no file 'a\udcffb'")
    told = status_event(*status_record(status))
    assert isinstance(told, PublishedStatus) and told.trace == "no file 'a?b'"
