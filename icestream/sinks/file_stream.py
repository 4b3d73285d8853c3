"""FileStreamSink's file: lines are appended exactly once, with the help of a journal beside it.

The journal says where the file ended before an append under way, and which batches are in the file but
perhaps not yet in the consumer group. Once the group has a batch, the journal forgets it: the group decides.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from icestream.api.errors import FatalError, SinkUnavailable
from icestream.api.offsets import Offsets

_FORMAT: Final = 1


@dataclass(frozen=True)
class Landed:
    """A batch that is in the file."""

    commit: str
    start: Offsets
    end: Offsets


class LineSink(Protocol):
    def pending(self) -> Landed | None:
        """The batch that is in the file, and perhaps not yet in the group; cuts off what was half written."""

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
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FatalError(
                f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}"
            ) from error
        is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
        self._journal = Journal(path.with_name(f".{path.name}.icestream")) if is_regular else None

    def pending(self) -> Landed | None:
        if self._journal is None:
            return None
        with self._locked():
            self._undo(self._journal)
            return self._journal.landed(self._connector)

    def append(self, batch: Landed, text: bytes) -> None:
        if self._journal is None:
            self._write(text)
            return
        with self._locked():
            self._undo(self._journal)
            facts = os.fstat(self._file)
            self._journal.begin(facts.st_size, facts.st_ino)
            self._reached("journaled")
            self._write(text)
            os.fsync(self._file)
            self._reached("written")
            self._journal.end(self._connector, batch)

    def settle(self) -> None:
        if self._journal is not None:
            with self._locked():
                self._journal.forget(self._connector)

    def close(self) -> None:
        os.close(self._file)

    def _undo(self, journal: Journal) -> None:
        """Cut off what somebody began to append and never finished: whoever holds the lock may."""
        begun = journal.begun()
        if begun is None:
            return
        length, inode = begun
        facts = os.fstat(self._file)
        if facts.st_ino == inode and facts.st_size > length:
            os.ftruncate(self._file, length)
            os.fsync(self._file)
        journal.give_up()

    def _write(self, text: bytes) -> None:
        left = memoryview(text)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise SinkUnavailable(
                f"cannot write '{self._path}': {error.strerror}; free space or allow it"
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

    def begun(self) -> tuple[int, int] | None:
        """Length and inode of the file before an append that did not end."""
        writing = self._load()["writing"]
        return (writing["length"], writing["inode"]) if writing else None

    def landed(self, connector: str) -> Landed | None:
        stored = self._load()["landed"].get(connector)
        if stored is None:
            return None
        return Landed(stored["commit"], Offsets.from_json(stored["start"]), Offsets.from_json(stored["end"]))

    def begin(self, length: int, inode: int) -> None:
        self._replace(self._load() | {"writing": {"length": length, "inode": inode}}, durable=True)

    def give_up(self) -> None:
        self._replace(self._load() | {"writing": None}, durable=True)

    def end(self, connector: str, batch: Landed) -> None:
        document = self._load()
        document["writing"] = None
        document["landed"][connector] = {
            "commit": batch.commit,
            "start": batch.start.to_json(),
            "end": batch.end.to_json(),
        }
        self._replace(document, durable=True)

    def forget(self, connector: str) -> None:
        document = self._load()
        if document["landed"].pop(connector, None) is not None:
            self._replace(document, durable=False)

    def _load(self) -> dict[str, Any]:
        try:
            document = json.loads(self._path.read_bytes())
            if document["format"] != _FORMAT:
                raise ValueError(f"its format is {document['format']}")
            return {"format": _FORMAT, "writing": document["writing"], "landed": dict(document["landed"])}
        except FileNotFoundError:
            return {"format": _FORMAT, "writing": None, "landed": {}}
        except (ValueError, KeyError, TypeError) as error:
            raise FatalError(
                f"{self._path} is not a journal of FileStreamSink ({error}); remove it to go on at least once"
            ) from error

    def _replace(self, document: dict[str, Any], *, durable: bool) -> None:
        temporary = self._path.with_name(f"{self._path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(json.dumps(document).encode())
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            raise SinkUnavailable(
                f"cannot write {self._path}: {error.strerror}; free space or allow it"
            ) from error
