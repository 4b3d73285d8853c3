"""The file of `offset.storage.file.filename`, in Kafka Connect's own format, so that it can be taken over and
handed back: a `HashMap<byte[], byte[]>` as Java serializes it. Only this one type is understood.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import PreconditionError
from icestream.api.offset_admin import OffsetEntry
from icestream.jobs.offset_records import entries_of, offset_key, offset_value

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

_LOCKS: Final[dict[Path, threading.Lock]] = defaultdict(threading.Lock)
"""Jobs of one worker share the file: each change reads, changes and replaces it whole."""


class OffsetFile:
    """The source offsets of a standalone worker."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = _LOCKS[path.absolute()]

    def read(self, connector: str) -> list[OffsetEntry]:
        with self._lock:
            return entries_of(connector, self._load().items())

    def write(self, connector: str, entries: Sequence[OffsetEntry]) -> None:
        with self._lock:
            stored = self._load()
            for entry in entries:
                key, value = offset_key(connector, entry.partition), offset_value(entry.offset)
                stored.pop(key, None)
                if value is not None:
                    stored[key] = value
            self._replace(serialized(stored))

    def close(self) -> None:
        pass

    def _load(self) -> dict[bytes, bytes | None]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise PreconditionError(
                f"cannot read {self._path}: {error.strerror}; check the owner and mode of "
                "offset.storage.file.filename"
            ) from error
        try:
            # Kafka Connect takes an empty file for a new one.
            return parsed(content) if content else {}
        except (ValueError, IndexError, struct.error) as error:
            raise PreconditionError(
                f"{self._path} does not hold offsets of Kafka Connect ({error}); move it, or name another "
                "offset.storage.file.filename"
            ) from error

    def _replace(self, content: bytes) -> None:
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            raise PreconditionError(
                f"cannot write {self._path}: {error.strerror}; free or allow it, or name another "
                "offset.storage.file.filename"
            ) from error


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
