"""The forms in which Kafka Connect stores offsets of sources, so that they can be taken over and handed back.

In its topic and in its file, an offset is a key and a value of JSON. The file is a `HashMap<byte[], byte[]>`
of them as Java serializes it; only this one type is understood. Pure; used by `source_offsets`.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final

from icestream.api.offset_admin import OffsetEntry
from icestream.jsontext.encode import jackson_bytes

_log = logging.getLogger(__name__)

_HEAD: Final = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x73, 0x75, 0x77, 0x78
_FIRST_HANDLE: Final = 0x7E0000
_MAP_CLASS: Final = (
    b"\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02"
    b"F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"
)
_BYTES_CLASS: Final = b"\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00\x78\x70"
_BYTES_HANDLE: Final = _FIRST_HANDLE + 2
"""The map's class and the map itself come before it."""


def offset_key(connector: str, partition: Mapping[str, Any]) -> bytes:
    return jackson_bytes([connector, partition])


def offset_records(connector: str, entries: Iterable[OffsetEntry]) -> list[tuple[bytes, bytes | None]]:
    """Keys and values; a null removes what is stored under its key."""
    return [
        (
            offset_key(connector, entry.partition),
            None if entry.offset is None else jackson_bytes(entry.offset),
        )
        for entry in entries
    ]


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


def serialized(stored: Mapping[bytes, bytes | None]) -> bytes:
    """What Java's ObjectOutputStream would write for the map."""
    buckets = 16
    while buckets * 3 // 4 < len(stored):
        buckets *= 2
    out = [
        _HEAD,
        bytes([_OBJECT]),
        _MAP_CLASS,
        struct.pack(">fi", 0.75, buckets * 3 // 4),
        bytes([_BLOCK, 8]),
        struct.pack(">ii", buckets, len(stored)),
    ]
    class_ = _BYTES_CLASS
    for item in (item for pair in stored.items() for item in pair):
        if item is None:
            out.append(bytes([_NULL]))
            continue
        out += [bytes([_ARRAY]), class_, struct.pack(">i", len(item)), item]
        class_ = struct.pack(">BI", _REFERENCE, _BYTES_HANDLE)
    out.append(bytes([_END]))
    return b"".join(out)


def parsed(content: bytes) -> dict[bytes, bytes | None]:
    return _Reader(content).map()


class _Reader:
    """Reads a serialized map; ValueError for anything else."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._handles: list[Any] = []

    def map(self) -> dict[bytes, bytes | None]:
        self._expect(_HEAD, "the head of a serialized object")
        self._expect(bytes([_OBJECT]) + _MAP_CLASS, "a java.util.HashMap")
        self._handles += ["java.util.HashMap", None]
        self._take(8)
        self._expect(bytes([_BLOCK, 8]), "the size of the map")
        _, size = struct.unpack(">ii", self._take(8))
        stored: dict[bytes, bytes | None] = {}
        for _ in range(size):
            key, value = self._item(), self._item()
            if key is not None:
                stored[key] = value
        return stored

    def _item(self) -> bytes | None:
        tag = self._take(1)[0]
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            item = self._referred()
            if isinstance(item, bytes):
                return item
        elif tag == _ARRAY:
            self._bytes_class()
            (length,) = struct.unpack(">i", self._take(4))
            item = self._take(length)
            self._handles.append(item)
            return item
        raise ValueError(f"no byte[] at byte {self._at}")

    def _bytes_class(self) -> None:
        if self._content[self._at] == _REFERENCE:
            self._at += 1
            if self._referred() != "[B":
                raise ValueError(f"no byte[] at byte {self._at}")
            return
        self._expect(_BYTES_CLASS, "a byte[]")
        self._handles.append("[B")

    def _referred(self) -> Any:
        (handle,) = struct.unpack(">I", self._take(4))
        return self._handles[handle - _FIRST_HANDLE]

    def _expect(self, wanted: bytes, what: str) -> None:
        if self._take(len(wanted)) != wanted:
            raise ValueError(f"{what} is missing")

    def _take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._content):
            raise ValueError("it ends too early")
        self._at += count
        return self._content[self._at - count : self._at]
