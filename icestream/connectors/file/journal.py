"""The journal beside the file of a FileStreamSink: the checkpoint of each connector that writes to it, and an
append that is under way, so that its lines, and no others, are recognised after a crash. For `sink`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from icestream.api.checkpoint import Checkpoint, from_json, to_json
from icestream.api.errors import FatalError, SinkUnavailable
from icestream.api.nesting import read_json
from icestream.connectors.file.storage_errors import told
from icestream.named_files import content

_log = logging.getLogger(__name__)

_FORMAT: Final = 2
_WITHOUT_CHECKPOINTS: Final = 1
_NUMBERS: Final = ("inode", "length", "size", "checksum")
_EMPTY: Final[Mapping[str, Any]] = {"format": _FORMAT, "writing": None}
_HEAD_BYTES: Final = 4096
_MOST_BYTES: Final = 64 * 2**20
_LOCK_SECONDS: Final = 10.0
"""How long an append waits for that of another job."""
_LOCK_POLL: Final = 0.02


@dataclass(frozen=True)
class Append:
    """What an append is about to do: to which file, from which length on, and how its text is recognised."""

    inode: int
    length: int
    size: int
    checksum: int
    head: bytes
    connector: str
    checkpoint: Checkpoint

    @classmethod
    def of(cls, inode: int, length: int, text: bytes, connector: str, checkpoint: Checkpoint) -> Append:
        head = text[:_HEAD_BYTES]
        return cls(inode, length, len(text), zlib.crc32(text), head, connector, checkpoint)

    def is_whole(self, tail: bytes) -> bool:
        return len(tail) >= self.size and zlib.crc32(memoryview(tail)[: self.size]) == self.checksum

    def is_part(self, tail: bytes) -> bool:
        return 0 < len(tail) < self.size and tail[:_HEAD_BYTES] == self.head[: len(tail)]


class Journal:
    """A small JSON file, replaced whole at every change, so that it is read without the lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """For whoever changes it. Not a lock on the file that it is about: one job may have that open since
        before it was renamed, and another the file that took its place."""
        with told("lock", self._path):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(self._path.with_name(f"{self._path.name}.lock"), flags, 0o666)
        try:
            self._await(lock)
            yield
        finally:
            os.close(lock)

    def _await(self, lock: int) -> None:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise SinkUnavailable(
                        f"another job is writing the file of {self._path}; stop it, or wait"
                    ) from None
                time.sleep(_LOCK_POLL)

    def begun(self) -> Append | None:
        """An append that did not end."""
        writing = self._load()["writing"]
        try:
            return writing and _append_from(writing)
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange(error) from error

    def checkpoint(self, connector: str) -> Checkpoint | None:
        stored = self._load()["checkpoints"].get(connector)
        try:
            return stored and from_json(stored)
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange(error) from error

    def begin(self, append: Append) -> None:
        self._replace(self._load() | {"writing": _append_json(append)})

    def give_up(self) -> None:
        self._replace(self._load() | {"writing": None})

    def end(self, connector: str, checkpoint: Checkpoint) -> None:
        document = self._load()
        document["writing"] = None
        document["checkpoints"][connector] = to_json(checkpoint)
        self._replace(document)

    def _load(self) -> dict[str, Any]:
        try:
            document = read_json(content(self._path, _MOST_BYTES))
            if document["format"] == _WITHOUT_CHECKPOINTS and not (document["writing"] or document["landed"]):
                # Of a build before 16 November 2026, which left the offsets to the consumer group, and whose
                # last batch the group has.
                return {**_EMPTY, "checkpoints": {}}
            if document["format"] != _FORMAT:
                raise ValueError(f"its format is {document['format']}")
            return {**document, "checkpoints": dict(document["checkpoints"])}
        except (FileNotFoundError, NotADirectoryError):
            return {**_EMPTY, "checkpoints": {}}
        except OSError as error:
            raise SinkUnavailable(f"cannot read {self._path}: {error.strerror}; allow it") from error
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange(error) from error

    def _strange(self, error: Exception) -> FatalError:
        return FatalError(
            f"{self._path} is not a journal of FileStreamSink ({error}); remove it to go on at least once"
        )

    def _replace(self, document: dict[str, Any]) -> None:
        """Durable when it returns, the new name too: what follows relies on it after a loss of power."""
        temporary = self._path.with_name(f"{self._path.name}.tmp")
        with told("write", self._path):
            # Never through a link that somebody else has put there.
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as file:
                file.write(json.dumps(document).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _append_json(append: Append) -> dict[str, Any]:
    return {
        **vars(append),
        "head": b64encode(append.head).decode(),
        "checkpoint": to_json(append.checkpoint),
    }


def _append_from(stored: Mapping[str, Any]) -> Append:
    if not all(type(stored[key]) is int and 0 <= stored[key] < 2**63 for key in _NUMBERS):
        raise ValueError("its numbers are none of a file")
    head, checkpoint = b64decode(stored["head"]), from_json(stored["checkpoint"])
    return Append(**{**stored, "head": head, "checkpoint": checkpoint})
