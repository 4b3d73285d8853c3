"""How far a table was read, and how that is stored: in the shape of Confluent's connector, so that offsets
can be taken over from it and handed back.

Its offsets have `incrementing`, `timestamp` (milliseconds) and `timestamp_nanos` (of the second). Ours have
more only while rows of one timestamp are sent in parts, and in bulk mode; what it does not know, it passes
over. All values are plain: Kafka Connect refuses to read others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.errors import BadOffsets, FatalError
from icestream.api.offset_admin import OffsetEntry
from icestream.connectors.jdbc.dialects.base import TableId

TABLE: Final = "table"
QUERY: Final = "query"
PROTOCOL: Final = "protocol"
QUERY_PARTITION: Final[Mapping[str, str]] = {QUERY: "query"}

_INCREMENTING, _TIMESTAMP, _NANOS = "incrementing", "timestamp", "timestamp_nanos"
_PART_TIMESTAMP, _PART_KEY = "icestream_part_timestamp", "icestream_part_key"
_DUMPS, _DUMP_KEY, _DUMPED_AT = "icestream_dumps", "icestream_dump_key", "icestream_dumped_at"
_NUMBERS: Final = (_INCREMENTING, _TIMESTAMP, _NANOS, _PART_TIMESTAMP, _DUMPS, _DUMPED_AT)
_TEXTS: Final = (_PART_KEY, _DUMP_KEY)

Key = tuple[Any, ...]
"""The values of a row's key columns: numbers and texts."""


@dataclass(frozen=True)
class Position:
    """How far a table is read. Timestamps are nanoseconds since 1970 in UTC."""

    incrementing: int | None = None
    timestamp: int | None = None
    """All rows up to here were sent, those of this very timestamp among them (with an `incrementing`, those
    up to that)."""
    part: tuple[int, Key] | None = None
    """A later timestamp, and the key of the last of its rows that was sent."""
    dumps: int | None = None
    """How often all rows were sent, in bulk mode."""
    dump_key: Key | None = None
    """The key of the last row that the dump under way has sent."""
    dumped_at: int | None = None
    """When the last dump ended, in milliseconds of the worker's clock."""


BEGINNING: Final = Position()


def to_offset(position: Position) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if position.incrementing is not None:
        found[_INCREMENTING] = position.incrementing
    if position.timestamp is not None:
        found[_TIMESTAMP] = position.timestamp // 1_000_000
        found[_NANOS] = position.timestamp % 1_000_000_000
    if position.part is not None:
        found[_PART_TIMESTAMP], found[_PART_KEY] = position.part[0], json.dumps(position.part[1])
    if position.dumps is not None:
        found[_DUMPS] = position.dumps
    if position.dump_key is not None:
        found[_DUMP_KEY] = json.dumps(position.dump_key)
    if position.dumped_at is not None:
        found[_DUMPED_AT] = position.dumped_at
    return found


def from_offset(offset: Mapping[str, Any]) -> Position:
    """ValueError if there is anything in it that no version has written."""
    for name, value in offset.items():
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if name in _NUMBERS and not is_whole and value is not None:
            raise ValueError(f"'{name}' is {value!r}, which is no whole number")
        if name in _TEXTS and not isinstance(value, str):
            raise ValueError(f"'{name}' is {value!r}, which is no text")
    part = offset.get(_PART_TIMESTAMP)
    return Position(
        offset.get(_INCREMENTING),
        _nanoseconds(offset.get(_TIMESTAMP), offset.get(_NANOS)),
        None if part is None else (part, _key(offset.get(_PART_KEY))),
        offset.get(_DUMPS),
        _key(offset[_DUMP_KEY]) if _DUMP_KEY in offset else None,
        offset.get(_DUMPED_AT),
    )


def _nanoseconds(milliseconds: int | None, nanos: int | None) -> int | None:
    if milliseconds is None:
        return None
    if nanos is None:
        return milliseconds * 1_000_000
    return milliseconds // 1000 * 1_000_000_000 + nanos


def _key(text: Any) -> Key:
    found = json.loads(text) if isinstance(text, str) else None
    if not isinstance(found, list) or not found:
        raise ValueError("the key of the last row is no list")
    return tuple(found)


def table_partitions(table: TableId) -> list[dict[str, str]]:
    """The source partitions under which offsets of a table may be stored: ours first, then those of other
    versions of the Java connector and of its drivers."""
    full = [str(TableId("", table.schema, table.name)), str(table)] if table.schema else [str(table)]
    return [
        *({PROTOCOL: "1", TABLE: name} for name in dict.fromkeys((*full, table.name))),
        {TABLE: table.name},
    ]


def find_position(
    stored: Iterable[OffsetEntry], partitions: Sequence[Mapping[str, str]]
) -> tuple[Mapping[str, str], Position]:
    """Under which partition a table's offset is stored, and what it says; the first partition, if none is."""
    known = {json.dumps(entry.partition, sort_keys=True): entry.offset for entry in stored}
    for partition in partitions:
        offset = known.get(json.dumps(partition, sort_keys=True))
        if offset is not None:
            try:
                return partition, from_offset(offset)
            except ValueError as error:
                raise FatalError(
                    f"the stored offset of {dict(partition)} cannot be read: {error}; "
                    "alter or reset the connector's offsets"
                ) from None
    return partitions[0], BEGINNING


def check_offsets(
    entries: Sequence[OffsetEntry], *, is_query: bool, has_number: bool, has_timestamp: bool
) -> None:
    """Raise BadOffsets for what this connector cannot go on from."""
    allowed = [
        *([_INCREMENTING] if has_number else ()),
        *([_TIMESTAMP, _NANOS, _PART_TIMESTAMP, _PART_KEY] if has_timestamp else ()),
        *([_DUMPS, _DUMP_KEY, _DUMPED_AT] if not has_number and not has_timestamp else ()),
    ]
    for entry in entries:
        _check_partition(entry.partition, is_query=is_query)
        if entry.offset is None:
            continue
        if unknown := [name for name in entry.offset if name not in allowed]:
            raise BadOffsets(
                f"the offset of {dict(entry.partition)} has '{unknown[0]}', which this connector's mode has "
                f"not; write {' and '.join(allowed[:2])}"
            )
        try:
            from_offset(entry.offset)
        except ValueError as error:
            raise BadOffsets(f"the offset of {dict(entry.partition)} cannot be used: {error}") from None


def _check_partition(partition: Mapping[str, Any], *, is_query: bool) -> None:
    if is_query:
        if dict(partition) != QUERY_PARTITION:
            raise BadOffsets(f"{dict(partition)} is no partition of this source; write {QUERY_PARTITION}")
        return
    is_named = isinstance(partition.get(TABLE), str) and partition[TABLE]
    if not is_named or not set(partition) <= {TABLE, PROTOCOL} or partition.get(PROTOCOL, "1") != "1":
        raise BadOffsets(
            f'{dict(partition)} is no partition of this source; write {{"protocol": "1", "table": "NAME"}}'
        )
