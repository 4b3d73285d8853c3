"""FileStreamSink's file: lines are appended exactly once, with the help of a journal beside it.

The journal describes an append under way, so that its lines, and no others, are recognised after a crash, and
the batches that are in the file but perhaps not yet in the consumer group. Once the group has a batch, the
journal forgets it: the group decides.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import stat
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from icestream.api.errors import FatalError, SinkUnavailable
from icestream.api.offsets import Offsets

_log = logging.getLogger(__name__)

_FORMAT: Final = 1
_HEAD_BYTES: Final = 4096


@dataclass(frozen=True)
class Landed:
    """A batch that is in the file."""

    commit: str
    start: Offsets
    end: Offsets


@dataclass(frozen=True)
class Append:
    """What an append is about to do: to which file, from which length on, and how its text is recognised."""

    inode: int
    length: int
    size: int
    checksum: int
    head: bytes
    connector: str
    batch: Landed

    def is_whole(self, tail: bytes) -> bool:
        return len(tail) >= self.size and zlib.crc32(memoryview(tail)[: self.size]) == self.checksum

    def is_part(self, tail: bytes) -> bool:
        return 0 < len(tail) < self.size and tail[:_HEAD_BYTES] == self.head[: len(tail)]


class LineSink(Protocol):
    def pending(self) -> Landed | None:
        """The batch that is in the file, and perhaps not yet in the group; clears up what was half done."""

    def append(self, batch: Landed, text: bytes) -> None:
        """Durable when it returns."""

    def settle(self) -> None:
        """The group has the last batch."""

    def close(self) -> None: ...


class StandardOutput:
    """At least once: what was printed cannot be taken back."""

    def pending(self) -> Landed | None:
        return None

    def append(self, batch: Landed, text: bytes) -> None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class LineFile:
    """Connectors may share a file: its journal has a place for each, and a lock orders their appends.

    Something else than a regular file, such as a pipe, has no journal: there it is at least once.
    """

    def __init__(
        self, path: Path, connector: str, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        self._path = path
        self._connector = connector
        self._reached = reached
        # What is written to a regular file may have to be recognised later; of a pipe this would be a reader.
        access = os.O_RDWR if path.is_file() or not path.exists() else os.O_WRONLY | os.O_NONBLOCK
        try:
            self._file = os.open(path, access | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            os.set_blocking(self._file, True)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise SinkUnavailable(f"nobody reads the pipe '{path}'; start its reader") from error
            raise FatalError(
                f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}"
            ) from error
        # One journal for a file, by whatever links it is named.
        path = path.resolve()
        is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
        self._journal = Journal(path.with_name(f".{path.name}.icestream")) if is_regular else None

    def pending(self) -> Landed | None:
        if self._journal is None:
            return None
        with self._locked():
            self._clear_up(self._journal)
            return self._journal.landed(self._connector)

    def append(self, batch: Landed, text: bytes) -> None:
        if self._journal is None:
            self._write(text)
            return
        with self._locked():
            self._clear_up(self._journal)
            facts = os.fstat(self._file)
            self._journal.begin(
                Append(
                    facts.st_ino,
                    facts.st_size,
                    len(text),
                    zlib.crc32(text),
                    text[:_HEAD_BYTES],
                    self._connector,
                    batch,
                )
            )
            self._reached("journaled")
            self._write(text)
            self._reached("written")
            self._journal.end(self._connector, batch)

    def settle(self) -> None:
        if self._journal is not None:
            with self._locked():
                self._journal.forget(self._connector)

    def close(self) -> None:
        os.close(self._file)

    def _clear_up(self, journal: Journal) -> None:
        """End what somebody began to append: whoever holds the lock may. Lines of other programs stay."""
        begun = journal.begun()
        if begun is None:
            return
        with self._told("clear up"):
            tail = self._tail(begun)
            if begun.is_whole(tail):
                os.fsync(self._file)
                journal.end(begun.connector, begun.batch)
                return
            if begun.is_part(tail):
                os.ftruncate(self._file, begun.length)
                os.fsync(self._file)
            elif tail:
                _log.warning(
                    "another program wrote to '%s' during an append that did not end; what is there of it "
                    "stays, and it is written again",
                    self._path,
                )
            journal.give_up()

    def _tail(self, begun: Append) -> bytes:
        """What the file has from where the append began, as far as it may be of the append."""
        if os.fstat(self._file).st_ino != begun.inode:
            return b""
        return os.pread(self._file, begun.size, begun.length)

    def _write(self, text: bytes) -> None:
        with self._told("write"):
            left = memoryview(text)
            while left:
                left = left[os.write(self._file, left) :]
            if self._journal is not None:
                os.fsync(self._file)

    @contextlib.contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SinkUnavailable(
                f"cannot {doing} '{self._path}': {error.strerror}; free space or allow it"
            ) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SinkUnavailable(f"another job is writing '{self._path}'; stop it, or wait") from None
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


class Journal:
    """A small JSON file, replaced whole at every change; used under the lock of the file that it is about."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begun(self) -> Append | None:
        """An append that did not end."""
        writing = self._load()["writing"]
        try:
            return writing and _append_from(writing)
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange(error) from error

    def landed(self, connector: str) -> Landed | None:
        stored = self._load()["landed"].get(connector)
        try:
            return stored and _landed_from(stored)
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange(error) from error

    def begin(self, append: Append) -> None:
        self._replace(self._load() | {"writing": _append_json(append)})

    def give_up(self) -> None:
        self._replace(self._load() | {"writing": None})

    def end(self, connector: str, batch: Landed) -> None:
        document = self._load()
        document["writing"] = None
        document["landed"][connector] = _landed_json(batch)
        self._replace(document)

    def forget(self, connector: str) -> None:
        document = self._load()
        if document["landed"].pop(connector, None) is not None:
            self._replace(document)

    def _load(self) -> dict[str, Any]:
        try:
            document = json.loads(self._path.read_bytes())
            if document["format"] != _FORMAT:
                raise ValueError(f"its format is {document['format']}")
            return {"format": _FORMAT, "writing": document["writing"], "landed": dict(document["landed"])}
        except FileNotFoundError:
            return {"format": _FORMAT, "writing": None, "landed": {}}
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
        try:
            with temporary.open("wb") as file:
                file.write(json.dumps(document).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise SinkUnavailable(
                f"cannot write {self._path}: {error.strerror}; free space or allow it"
            ) from error


def _landed_json(batch: Landed) -> dict[str, Any]:
    return {"commit": batch.commit, "start": batch.start.to_json(), "end": batch.end.to_json()}


def _landed_from(stored: Mapping[str, Any]) -> Landed:
    return Landed(stored["commit"], Offsets.from_json(stored["start"]), Offsets.from_json(stored["end"]))


def _append_json(append: Append) -> dict[str, Any]:
    head, batch = b64encode(append.head).decode(), _landed_json(append.batch)
    return {**vars(append), "head": head, "batch": batch}


def _append_from(stored: Mapping[str, Any]) -> Append:
    return Append(**{**stored, "head": b64decode(stored["head"]), "batch": _landed_from(stored["batch"])})
