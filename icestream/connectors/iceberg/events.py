"""The control-topic events, in the bytes of Iceberg's Kafka Connect.

A record is two magic bytes, the schema as JSON with its length in front, and the datum. Only the events that
a commit publishes are here; docs/exactly-once.md tells when.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_MAGIC: Final = b"\xc2\x01"
_NAMESPACE: Final = "org.apache.iceberg.connect.events"

_UUID: Final = "uuid_fixed"
_MOMENT: Final = {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}


@dataclass(frozen=True)
class TableReference:
    """A table as the control topic names it."""

    catalog: str
    namespace: Sequence[str]
    name: str
    uuid: uuid.UUID | None


@dataclass(frozen=True)
class StartCommit:
    commit_id: uuid.UUID


@dataclass(frozen=True)
class CommitToTable:
    commit_id: uuid.UUID
    table: TableReference
    snapshot_id: int | None
    valid_through: dt.datetime | None


@dataclass(frozen=True)
class CommitComplete:
    commit_id: uuid.UUID
    valid_through: dt.datetime | None


Payload = StartCommit | CommitToTable | CommitComplete


@dataclass(frozen=True)
class Event:
    """The envelope around every payload."""

    id: uuid.UUID
    timestamp: dt.datetime
    group: str
    payload: Payload


def encoded(event: Event) -> bytes:
    schema, type_id, body = _payload(event.payload)
    envelope = _record(
        "Event",
        [
            _field(
                "id",
                {"type": "fixed", "name": _UUID, "namespace": "", "size": 16, "logicalType": "uuid"},
                10500,
            ),
            _field("type", "int", 10501),
            _field("timestamp", _MOMENT, 10502),
            _field("group_id", "string", 10503),
            _field("payload", schema, 10504),
        ],
        namespace=_NAMESPACE,
    )
    text = json.dumps(envelope, separators=(",", ":")).encode()
    datum = event.id.bytes + _long(type_id) + _moment(event.timestamp) + _string(event.group) + body
    return _MAGIC + len(text).to_bytes(2, "big") + text + datum


def _payload(payload: Payload) -> tuple[dict[str, Any], int, bytes]:
    """Schema, type id and datum."""
    if isinstance(payload, StartCommit):
        return _record("StartCommit", [_field("commit_id", _UUID, 10200)]), 0, payload.commit_id.bytes
    if isinstance(payload, CommitToTable):
        schema = _record(
            "CommitToTable",
            [
                _field("commit_id", _UUID, 10400),
                _field("table_reference", _table_schema(), 10401),
                _optional("snapshot_id", "long", 10402),
                _optional("valid_through_ts", _MOMENT, 10403),
            ],
        )
        snapshot = b"\x00" if payload.snapshot_id is None else b"\x02" + _long(payload.snapshot_id)
        body = (
            payload.commit_id.bytes + _table(payload.table) + snapshot + _maybe_moment(payload.valid_through)
        )
        return schema, 3, body
    schema = _record(
        "CommitComplete",
        [_field("commit_id", _UUID, 10000), _optional("valid_through_ts", _MOMENT, 10001)],
    )
    return schema, 4, payload.commit_id.bytes + _maybe_moment(payload.valid_through)


def _table_schema() -> dict[str, Any]:
    return _record(
        "TableReference",
        [
            _field("catalog", "string", 10600),
            _field("namespace", {"type": "array", "items": "string", "element-id": 10602}, 10601),
            _field("name", "string", 10603),
            _optional("table_uuid", _UUID, 10604),
        ],
    )


def _record(name: str, fields: list[dict[str, Any]], namespace: str | None = None) -> dict[str, Any]:
    place = {} if namespace is None else {"namespace": namespace}
    return {"type": "record", "name": name, **place, "fields": fields}


def _field(name: str, kind: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id}


def _optional(name: str, kind: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _table(table: TableReference) -> bytes:
    names = b"".join(_string(part) for part in table.namespace)
    namespace = _long(len(table.namespace)) + names + b"\x00" if table.namespace else b"\x00"
    identity = b"\x00" if table.uuid is None else b"\x02" + table.uuid.bytes
    return _string(table.catalog) + namespace + _string(table.name) + identity


def _long(value: int) -> bytes:
    """Avro's zigzag, seven bits at a time."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _string(text: str) -> bytes:
    data = text.encode()
    return _long(len(data)) + data


def _moment(moment: dt.datetime) -> bytes:
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return _long(since // dt.timedelta(microseconds=1))


def _maybe_moment(moment: dt.datetime | None) -> bytes:
    return b"\x00" if moment is None else b"\x02" + _moment(moment)
