"""FileStreamSource: the lines of a file, or of standard input. Its plugin opens it.

Line ends are those of the Java connector: \\n, \\r\\n, and \\r once the byte after it is known.
"""

from __future__ import annotations

import logging
import os
import select
import stat
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.api.config import Config
from icestream.api.errors import BadOffsets, FatalError
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import Source, SourceBatch
from icestream.connectors.file.settings import FILE_STREAM_SOURCE
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.schema import STRING

_log = logging.getLogger(__name__)

_BLOCK_BYTES: Final = 4 * 1024 * 1024
_LONGEST_LINE: Final = 64 * 1024 * 1024
_POLLS_A_BATCH: Final = 10
"""Java's task reads `batch.size` lines at a time and commits them in a transaction of their own. That costs
as much as 10,000 records, so a source that is behind reads more."""
_STDIN: Final = 0
_LF, _CR = 10, 13


def open_source(config: Config) -> Source:
    own = FILE_STREAM_SOURCE.parse(config)
    most = _POLLS_A_BATCH * max(1, own["batch.size"])
    return FileSource(own["file"], own["topic"], most) if own["file"] else StdinSource(own["topic"], most)


class FileSource:
    """A file that is only ever appended to. It is kept open: one that is renamed is read on, as the Java
    connector does."""

    def __init__(self, path: str, topic: str, most: int) -> None:
        self._path = path
        self._topic = topic
        self._most = most
        self._file: int | None = None
        self._position = 0
        self._is_short = False
        self._without_lines: tuple[int, int, int] | None = None

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        self._position = _stored_position(self._path, offsets)

    def read(self, limit: int) -> SourceBatch | None:
        limit = min(limit, self._most)
        if self._file is None and not self._open():
            return None
        look = self._look()
        if look == self._without_lines:
            # Not read again: the last line may be long, and its end may never come.
            return None
        block = self._block(limit)
        ends = line_ends(block)[:limit]
        if not len(ends):
            self._without_lines = look
            return None
        size = int(ends[-1]) + 1
        self._position += size
        after = OffsetEntry({"filename": self._path}, {"position": self._position})
        return _batch(self._topic, lines_of(block[:size], ends), after)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> bool:
        try:
            # Not waiting for somebody to write to a pipe, which could not be read by position anyway.
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            _log.debug("waiting for %s", self._path)
            return False
        except OSError as error:
            raise FatalError(
                f"cannot read '{self._path}': {error.strerror}; check the file's owner and mode"
            ) from error
        mode = os.fstat(self._file).st_mode
        if not stat.S_ISREG(mode):
            self.close()
            kinds = (("folder", stat.S_ISDIR), ("pipe", stat.S_ISFIFO))
            what = next((name for name, is_one in kinds if is_one(mode)), "device")
            raise FatalError(
                f"'{self._path}' is a {what}, which cannot be read by position; name a file, or remove "
                "'file' to read standard input"
            )
        return True

    def _look(self) -> tuple[int, int, int]:
        """Changes whenever there may be something new to read."""
        assert self._file is not None
        facts = os.fstat(self._file)
        return self._position, facts.st_size, facts.st_mtime_ns

    def _block(self, limit: int) -> bytes:
        """Bytes from the position on, with at least one line end if the file has one there."""
        assert self._file is not None
        size = min(_BLOCK_BYTES, max(64 * 1024, limit * 256))
        try:
            while True:
                block = os.pread(self._file, size, self._position)
                if len(block) < size or len(line_ends(block)):
                    break
                _refuse_endless(block, f"'{self._path}' at position {self._position}")
                size *= 2
            if not block:
                self._note_short_file()
        except OSError as error:
            raise FatalError(f"cannot read '{self._path}': {error.strerror}") from error
        return block

    def _note_short_file(self) -> None:
        """A file that was cut is read on once it is longer than it was."""
        assert self._file is not None
        is_short = os.fstat(self._file).st_size < self._position
        if is_short and not self._is_short:
            _log.warning("%s is shorter than what was read of it; waiting for it to grow", self._path)
        self._is_short = is_short


class StdinSource:
    """Standard input. What was read is gone, so there is no position to remember."""

    def __init__(self, topic: str, most: int) -> None:
        self._topic = topic
        self._most = most
        self._rest = b""
        self._is_ended = False

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        pass

    def read(self, limit: int) -> SourceBatch | None:
        limit = min(limit, self._most)
        if not self._is_ended and select.select([_STDIN], [], [], 0)[0]:
            got = os.read(_STDIN, _BLOCK_BYTES)
            self._is_ended = not got
            self._rest += got
        ends = line_ends(self._rest)[:limit]
        if not len(ends):
            _refuse_endless(self._rest, "standard input")
            return None
        size = int(ends[-1]) + 1
        block, self._rest = self._rest[:size], self._rest[size:]
        # Kafka Connect stores these nulls for standard input.
        after = OffsetEntry({"filename": None}, {"position": None})
        return _batch(self._topic, lines_of(block, ends), after)

    def close(self) -> None:
        pass


def _refuse_endless(block: bytes, where: str) -> None:
    """A line without an end would take all memory, and no record is that large."""
    if len(block) >= _LONGEST_LINE:
        raise FatalError(
            f"the line of {where} has no end within {_LONGEST_LINE // 2**20} MiB; it cannot be a record, so "
            "cut the file, or move the connector's offset behind it"
        )


def _stored_position(path: str, offsets: Sequence[OffsetEntry]) -> int:
    for entry in offsets:
        if entry.partition.get("filename") == path and entry.offset is not None:
            position = entry.offset.get("position")
            if position is None:
                return 0
            if not isinstance(position, int) or isinstance(position, bool):
                raise FatalError(
                    f"the stored offset of '{path}' has position {position!r}, which is no number; "
                    "reset the connector's offsets"
                )
            return position
    return 0


def line_ends(block: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where lines end: the index of the last byte of each line's end. A final \\r may yet become \\r\\n."""
    array = np.frombuffer(block, np.uint8)
    ends = array == _LF
    if _CR in block:
        returns = array == _CR
        returns[:-1] &= ~ends[1:]
        returns[-1:] = False
        ends = ends | returns
    return np.flatnonzero(ends)


def lines_of(block: bytes, ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """The lines as a column of strings, without their ends; bytes that are no UTF-8 become U+FFFD."""
    array = np.frombuffer(block, np.uint8)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    if _CR in block:
        lengths -= (array[ends] == _LF) & (lengths > 0) & (array[ends - 1] == _CR)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    text = block.translate(None, b"\r\n")
    column = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    try:
        text.decode()
    except UnicodeDecodeError:
        return pa.array([line.decode(errors="replace") for line in column.to_pylist()], pa.string())
    return column.view(pa.string())


def _batch(topic: str, values: pa.Array, after: OffsetEntry) -> SourceBatch:
    records = Records(
        rows=np.arange(len(values)),
        topic=topic,
        partitions=None,
        timestamps=pa.array(np.full(len(values), time.time_ns() // 1_000_000, np.int64)),
        key=None,
        value=Column(values, STRING),
    )
    return SourceBatch([records], [after])


def check_offsets(config: Config, entries: Sequence[OffsetEntry]) -> None:
    """In the words of the Java connector. Entries may be removed whatever they are."""
    for entry in entries:
        _refuse_nested(entry.partition)
        _refuse_nested(entry.offset)
    if not config.get("file", "").strip():
        raise BadOffsets(
            "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is "
            "used for input and offsets are not tracked."
        )
    for entry in entries:
        if entry.offset is not None:
            _refuse_bad_position(entry.offset)
            _refuse_bad_partition(entry.partition)


def _refuse_nested(given: Mapping[str, Any] | None) -> None:
    for field, value in (given or {}).items():
        if isinstance(value, list | dict):
            kind = "ARRAY" if isinstance(value, list) else "MAP"
            raise BadOffsets(
                f"Offsets may only contain primitive types as values, but field {field} contains {kind}"
            )


def _refuse_bad_position(offset: Mapping[str, Any]) -> None:
    if "position" not in offset:
        raise BadOffsets("Offset objects should either be null or contain the key 'position'")
    position = offset["position"]
    if not isinstance(position, int) or isinstance(position, bool):
        raise BadOffsets("The value for the 'position' key in the offset is expected to be a Long value")
    if position < 0:
        raise BadOffsets("The value for the 'position' key in the offset should be a non-negative value")


def _refuse_bad_partition(partition: Mapping[str, Any] | None) -> None:
    if partition is None:
        raise BadOffsets("Partition objects cannot be null")
    if "filename" not in partition:
        raise BadOffsets("Partition objects should contain the key 'filename'")
