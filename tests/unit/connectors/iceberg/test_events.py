"""Our bytes against those that the Java classes wrote for the same events."""

import datetime as dt
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from icestream.connectors.iceberg.events import (
    CommitComplete,
    CommitToTable,
    Event,
    Payload,
    StartCommit,
    TableReference,
    encoded,
)

GOLDEN = json.loads((Path(__file__).parent / "golden_events.json").read_text())


def moment(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None


def payload_of(event: dict[str, Any]) -> Payload:
    body = event["payload"]
    commit = uuid.UUID(body["commit_id"])
    if event["type"] == "START_COMMIT":
        return StartCommit(commit)
    if event["type"] == "COMMIT_COMPLETE":
        return CommitComplete(commit, moment(body["valid_through_ts"]))
    table = body["table_reference"]
    reference = TableReference(
        table["catalog"], table["namespace"], table["name"], uuid.UUID(table["table_uuid"])
    )
    return CommitToTable(commit, reference, body["snapshot_id"], moment(body["valid_through_ts"]))


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_an_event_has_the_bytes_that_java_writes(name: str) -> None:
    event = GOLDEN[name]["event"]
    timestamp = moment(event["timestamp"])
    assert timestamp is not None
    ours = encoded(Event(uuid.UUID(event["id"]), timestamp, event["group_id"], payload_of(event)))
    assert ours.hex() == GOLDEN[name]["bytes"]
