"""The control-topic events of Iceberg's Kafka Connect, in its bytes, both ways.

A record is two magic bytes, the schema as JSON with its length in front, and the datum. The sink writes those
that tell of a commit; the coordinator of Java workers reads the others. The schemas are in `event_schemas`.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.errors import FatalError
from icestream.api.nesting import read_json
from icestream.connectors.iceberg.coordinator import event_schemas
from icestream.connectors.iceberg.coordinator.avro_datum import AvroType, BadDatum, Cursor, avro_type
from icestream.connectors.iceberg.coordinator.event_schemas import MAPS, PartitionColumn

_MAGIC: Final = b"\xc2\x01"
_MOST_SCHEMA_BYTES: Final = 65_535
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class TableReference:
    """A table as the control topic names it."""

    catalog: str
    namespace: Sequence[str]
    name: str
    uuid: uuid.UUID | None

    @property
    def identifier(self) -> tuple[str, ...]:
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        return ".".join(self.identifier)


@dataclass(frozen=True)
class StartCommit:
    commit_id: uuid.UUID


@dataclass(frozen=True)
class WrittenFile:
    """A data or delete file that a worker has written, as its event describes it."""

    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    partition: tuple[Any, ...] = ()
    """In the order of the partition spec; dates and times as numbers, decimals and UUIDs as bytes."""
    spec_id: int | None = 0
    content: int | None = 0
    """0: data, 1: position deletes, 2: equality deletes."""
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: Sequence[int] | None = None
    equality_ids: Sequence[int] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


@dataclass(frozen=True)
class DataWritten:
    commit_id: uuid.UUID
    table: TableReference
    data_files: Sequence[WrittenFile] | None = ()
    delete_files: Sequence[WrittenFile] | None = ()
    partition_columns: Sequence[PartitionColumn] = ()


@dataclass(frozen=True)
class SourcePosition:
    """How far a worker has read a partition; without an offset it had no record of it."""

    topic: str
    partition: int
    offset: int | None
    timestamp: dt.datetime | None


@dataclass(frozen=True)
class DataComplete:
    commit_id: uuid.UUID
    assignments: Sequence[SourcePosition] | None


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


Payload = StartCommit | DataWritten | DataComplete | CommitToTable | CommitComplete
_TYPES: Final = (StartCommit, DataWritten, DataComplete, CommitToTable, CommitComplete)
"""In the order of their numbers."""


@dataclass(frozen=True)
class Event:
    """The envelope around every payload."""

    id: uuid.UUID
    timestamp: dt.datetime
    group: str
    payload: Payload


# -- to bytes --


def encoded(event: Event) -> bytes:
    payload = event.payload
    schema, value = _described(payload)
    text = _modified_utf8(json.dumps(schema, separators=(",", ":"), ensure_ascii=False))
    if len(text) > _MOST_SCHEMA_BYTES:
        raise FatalError(
            f"the schema of a {type(payload).__name__} event has {len(text):,} bytes, and the format has "
            f"room for {_MOST_SCHEMA_BYTES:,}: the table has too many partition columns; use fewer"
        )
    datum = {
        "id": event.id.bytes,
        "type": _TYPES.index(type(payload)),
        "timestamp": _micros(event.timestamp),
        "group_id": event.group,
        "payload": value,
    }
    return _MAGIC + len(text).to_bytes(2, "big") + text + _type_of(text).write(datum)


def _described(payload: Payload) -> tuple[Any, dict[str, Any]]:
    """The schema of the event, and the payload's value."""
    commit = {"commit_id": payload.commit_id.bytes}
    if isinstance(payload, StartCommit):
        return event_schemas.START_COMMIT, commit
    if isinstance(payload, DataWritten):
        columns = payload.partition_columns
        files = {
            "data_files": _listed(payload.data_files, columns),
            "delete_files": _listed(payload.delete_files, columns),
        }
        return (
            event_schemas.data_written(columns),
            {**commit, "table_reference": _reference_value(payload.table), **files},
        )
    if isinstance(payload, DataComplete):
        return event_schemas.DATA_COMPLETE, {**commit, "assignments": _assigned(payload.assignments)}
    through = {"valid_through_ts": _maybe_micros(payload.valid_through)}
    if isinstance(payload, CommitComplete):
        return event_schemas.COMMIT_COMPLETE, {**commit, **through}
    table = {"table_reference": _reference_value(payload.table), "snapshot_id": payload.snapshot_id}
    return event_schemas.COMMIT_TO_TABLE, {**commit, **table, **through}


def _reference_value(table: TableReference) -> dict[str, Any]:
    return {
        "catalog": table.catalog,
        "namespace": list(table.namespace),
        "name": table.name,
        "table_uuid": table.uuid.bytes if table.uuid else None,
    }


def _listed(
    files: Sequence[WrittenFile] | None, columns: Sequence[PartitionColumn]
) -> list[dict[str, Any]] | None:
    return None if files is None else [_file_value(file, columns) for file in files]


def _file_value(file: WrittenFile, columns: Sequence[PartitionColumn]) -> dict[str, Any]:
    value = dict(vars(file))
    for name in MAPS:
        entries = value[name]
        value[name] = None if entries is None else [{"key": k, "value": v} for k, v in entries.items()]
    value["partition"] = {column.name: one for column, one in zip(columns, file.partition, strict=True)}
    return value


def _assigned(assignments: Sequence[SourcePosition] | None) -> list[dict[str, Any]] | None:
    if assignments is None:
        return None
    return [{**vars(one), "timestamp": _maybe_micros(one.timestamp)} for one in assignments]


# -- from bytes --


def decoded(data: bytes) -> Event | None:
    """The event of a record's value; None if it is of a kind that did not exist when this was written.

    Raises BadDatum.
    """
    cursor = Cursor(data)
    if cursor.take(min(2, cursor.left)) != _MAGIC:
        raise BadDatum("it does not begin as an event of Iceberg's Kafka Connect does")
    text = cursor.take(int.from_bytes(cursor.take(2), "big"))
    try:
        value = _type_of(text).read(cursor)
        number = value["type"]
        if not 0 <= number < len(_TYPES):
            return None
        return Event(
            uuid.UUID(bytes=value["id"]),
            _moment(value["timestamp"]),
            value["group_id"],
            _payload(number, value["payload"], text),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadDatum(f"its schema is not that of an event ({type(error).__name__}: {error})") from error


def _payload(number: int, value: Mapping[str, Any], text: bytes) -> Payload:
    commit = uuid.UUID(bytes=value["commit_id"])
    kind = _TYPES[number]
    if kind is StartCommit:
        return StartCommit(commit)
    if kind is DataWritten:
        columns = _columns(text)
        return DataWritten(
            commit,
            _reference(value["table_reference"]),
            _files(value["data_files"]),
            _files(value["delete_files"]),
            columns,
        )
    if kind is DataComplete:
        return DataComplete(commit, _positions(value["assignments"]))
    through = _maybe_moment(value["valid_through_ts"])
    if kind is CommitComplete:
        return CommitComplete(commit, through)
    return CommitToTable(commit, _reference(value["table_reference"]), value["snapshot_id"], through)


def _reference(value: Mapping[str, Any]) -> TableReference:
    # Workers before 1.11 tell no id.
    id_ = value.get("table_uuid")
    return TableReference(
        value["catalog"], tuple(value["namespace"]), value["name"], uuid.UUID(bytes=id_) if id_ else None
    )


_FILE_FIELDS: Final = frozenset(WrittenFile.__dataclass_fields__)


def _files(values: Sequence[Mapping[str, Any]] | None) -> tuple[WrittenFile, ...] | None:
    return None if values is None else tuple(map(_file, values))


def _file(value: Mapping[str, Any]) -> WrittenFile:
    known = {name: one for name, one in value.items() if name in _FILE_FIELDS}
    for name in MAPS:
        if (entries := known.get(name)) is not None:
            known[name] = {entry["key"]: entry["value"] for entry in entries}
    return WrittenFile(**{**known, "partition": tuple(value["partition"].values())})


def _positions(values: Sequence[Mapping[str, Any]] | None) -> tuple[SourcePosition, ...] | None:
    if values is None:
        return None
    return tuple(
        SourcePosition(one["topic"], one["partition"], one["offset"], _maybe_moment(one["timestamp"]))
        for one in values
    )


@functools.lru_cache(maxsize=256)
def _type_of(text: bytes) -> AvroType:
    """Many events share few schemas, and each carries its own."""
    return avro_type(_parsed(text))


@functools.lru_cache(maxsize=64)
def _columns(text: bytes) -> tuple[PartitionColumn, ...]:
    return event_schemas.partition_columns(_parsed(text))


def _parsed(text: bytes) -> Any:
    try:
        return read_json(_from_modified_utf8(text))
    except ValueError as error:
        raise BadDatum(f"its schema is not JSON ({type(error).__name__})") from error


def _modified_utf8(text: str) -> bytes:
    """Java's own UTF-8: what is beyond 16 bits as two halves, and zero as two bytes."""
    halves = text.encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(halves[at : at + 2], "big") for at in range(0, len(halves), 2))
    return b"".join(
        b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units
    )


def _from_modified_utf8(data: bytes) -> str:
    halves = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


# -- moments --


def _micros(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


def _maybe_micros(moment: dt.datetime | None) -> int | None:
    return None if moment is None else _micros(moment)


def _moment(micros: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=micros)


def _maybe_moment(micros: int | None) -> dt.datetime | None:
    return None if micros is None else _moment(micros)
