"""The keys and values under which Kafka Connect stores source offsets, in its topic and in its file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from icestream.api.jackson import jackson_bytes
from icestream.api.offset_admin import OffsetEntry

_log = logging.getLogger(__name__)


def offset_key(connector: str, partition: Mapping[str, Any]) -> bytes:
    return jackson_bytes([connector, partition])


def offset_value(offset: Mapping[str, Any] | None) -> bytes | None:
    return None if offset is None else jackson_bytes(offset)


def entries_of(connector: str, stored: Iterable[tuple[bytes, bytes | None]]) -> list[OffsetEntry]:
    """What is stored for one connector; a later record of the same key wins, a null removes."""
    found: dict[bytes, OffsetEntry] = {}
    for key, value in stored:
        partition = _partition(connector, key)
        if partition is None:
            continue
        same = json.dumps(partition, sort_keys=True).encode()
        offset = None if value is None else _offset(connector, value)
        if offset is None:
            found.pop(same, None)
        else:
            found[same] = OffsetEntry(partition, offset)
    return list(found.values())


def _partition(connector: str, key: bytes) -> dict[str, Any] | None:
    try:
        decoded = json.loads(key)
    except ValueError:
        return None
    if not isinstance(decoded, list) or len(decoded) != 2 or decoded[0] != connector:
        return None
    return decoded[1] if isinstance(decoded[1], dict) else None


def _offset(connector: str, value: bytes) -> dict[str, Any] | None:
    try:
        decoded = json.loads(value)
    except ValueError:
        decoded = None
    if isinstance(decoded, dict):
        return decoded
    _log.warning("a stored offset of '%s' is no JSON object and is passed over", connector)
    return None
