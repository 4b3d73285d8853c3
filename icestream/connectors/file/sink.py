"""FileStreamSink: the text of each record's value, a line each, appended to a file exactly once.

A journal beside the file (`journal`) keeps the checkpoint, and an append that did not end. Standard output
and pipes have none: there it is at least once, and the consumer group tells where to go on.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from icestream.api.batch import Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.errors import CommitConflict, FatalError, SinkUnavailable
from icestream.api.sink import Commit, OpenWriter, Receipt, Sink, Target, WriterTask, Written
from icestream.connectors.file.journal import Append, Journal
from icestream.connectors.file.storage_errors import told
from icestream.converters.value_text import value_texts
from icestream.records.origins import RowOrigins
from icestream.records.records import Records

_log = logging.getLogger(__name__)

_STANDARD_OUTPUT: Final = "standard output"


class LineWriter:
    """Makes lines of records; what is staged is the text itself."""

    def __init__(self, task: WriterTask) -> None:
        (self._target,) = task.targets
        self._stages = task.stages
        self._lines: list[bytes] = []

    def write(self, records: Sequence[Records], origins: RowOrigins) -> Written:
        fresh = origins.at_or_after(self._target.start)
        lines: dict[int, bytes] = {}
        for group in records:
            texts = value_texts(group.value, len(group))
            shown = (b"null" if text is None else text.encode(errors="replace") for text in texts)
            lines.update(zip(group.rows.tolist(), shown, strict=True))
        if self._stages:
            self._lines += [lines[row] for row in sorted(lines) if fresh[row]]
        return Written()

    def close(self) -> dict[str, Staged]:
        text = b"".join(line + b"\n" for line in self._lines)
        return {self._target.name: Staged([text], len(self._lines))}

    def discard(self) -> None:
        self._lines.clear()


class FileSink(Sink):
    def __init__(self, name: str, path: str | None) -> None:
        self.writer: OpenWriter = LineWriter
        self._target: LineFile | StandardOutput
        self._target = LineFile(Path(path), name) if path else StandardOutput()

    def targets(self) -> Sequence[LineFile | StandardOutput]:
        return [self._target]

    def close(self) -> None:
        self._target.close()


class StandardOutput(Target):
    """At least once: what was printed cannot be taken back."""

    def __init__(self) -> None:
        self.name = _STANDARD_OUTPUT
        self._last: Checkpoint | None = None

    def found(self) -> FoundCheckpoint:
        return FoundCheckpoint(self._last, target=self.name, follows_group=True)

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> None:
        return None

    def commit(self, commit: Commit) -> Receipt:
        for text in commit.staged.payload:
            sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        self._last = commit.checkpoint
        return Receipt(commit.checkpoint, commit.checkpoint.commit)

    def discard(self, staged: Staged) -> None:
        """Nothing was printed."""

    def close(self) -> None:
        """It is not ours to close."""


class LineFile(Target):
    """Connectors may share a file: its journal has a place for each, and its lock orders their appends."""

    def __init__(self, path: Path, connector: str) -> None:
        self.name = str(path)
        self._path = path
        self._connector = connector
        self._file: int | None = None
        self._journal: Journal | None = None
        self._last: Checkpoint | None = None
        """Of a pipe, which has no journal."""

    def found(self) -> FoundCheckpoint:
        """By its journal, also if the file was renamed or removed; without one it goes on where the group is,
        as the Java class does. Pipes are not opened: their readers would notice."""
        journal = self._journal if self._file is not None else self._journal_beside()
        checkpoint = self._last
        if journal is not None:
            if journal.begun() is not None:
                self._open()
                with journal.locked():
                    self._clear_up(journal)
            checkpoint = journal.checkpoint(self._connector)
        return FoundCheckpoint(checkpoint, target=self.name, follows_group=True)

    def _journal_beside(self) -> Journal | None:
        """None: it is something else than a file, such as a pipe."""
        # One journal for a file, by whatever links it is named.
        path = self._path.resolve()
        is_other = path.exists() and not path.is_file()
        return None if is_other else Journal(path.with_name(f".{path.name}.icestream"))

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> None:
        """Nothing to plan, but a file that cannot be written is told at once."""
        self._open()

    def commit(self, commit: Commit) -> Receipt:
        text = b"".join(commit.staged.payload)
        file = self._open()
        if self._journal is None:
            self._write(file, text)
            self._last = commit.checkpoint
            return Receipt(commit.checkpoint, commit.checkpoint.commit)
        with self._journal.locked():
            self._clear_up(self._journal)
            self._refuse_moved(self._journal, commit)
            facts = os.fstat(file)
            append = Append.of(facts.st_ino, facts.st_size, text, self._connector, commit.checkpoint)
            self._journal.begin(append)
            self._write(file, text)
            self._journal.end(self._connector, commit.checkpoint)
        return Receipt(commit.checkpoint, commit.checkpoint.commit, [len(text)])

    def _refuse_moved(self, journal: Journal, commit: Commit) -> None:
        stored = journal.checkpoint(self._connector)
        if (stored and stored.commit) != (commit.expect and commit.expect.commit):
            raise CommitConflict(f"{self.name} has another checkpoint of the job: somebody else committed")

    def discard(self, staged: Staged) -> None:
        """Nothing was written."""

    def _open(self) -> int:
        if self._file is not None:
            # Also if it was renamed meanwhile: so does the Java class.
            return self._file
        path = self._path
        # What is written to a regular file may have to be recognised later; of a pipe this would be a reader.
        access = os.O_RDWR if path.is_file() or not path.exists() else os.O_WRONLY | os.O_NONBLOCK
        try:
            file = os.open(path, access | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            os.set_blocking(file, True)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise SinkUnavailable(f"nobody reads the pipe '{path}'; start its reader") from error
            raise FatalError(
                f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}"
            ) from error
        self._journal = self._journal_beside() if stat.S_ISREG(os.fstat(file).st_mode) else None
        self._file = file
        return file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _clear_up(self, journal: Journal) -> None:
        """End what somebody began to append: whoever holds the lock may. Lines of other programs stay."""
        begun = journal.begun()
        if begun is None:
            return
        file = self._open()
        with told("clear up", self._path):
            tail = self._tail(file, begun)
            if begun.is_whole(tail):
                os.fsync(file)
                journal.end(begun.connector, begun.checkpoint)
                return
            if begun.is_part(tail):
                os.ftruncate(file, begun.length)
                os.fsync(file)
            elif tail or os.fstat(file).st_ino != begun.inode:
                _log.warning(
                    "another program wrote to '%s', or replaced it, during an append that did not end; what "
                    "is there of it stays, and it is written again",
                    self._path,
                )
            journal.give_up()

    def _tail(self, file: int, begun: Append) -> bytes:
        """What the file has from where the append began, as far as it may be of the append."""
        facts = os.fstat(file)
        if facts.st_ino != begun.inode or facts.st_size <= begun.length:
            return b""
        return os.pread(file, min(begun.size, facts.st_size - begun.length), begun.length)

    def _write(self, file: int, text: bytes) -> None:
        with told("write", self._path):
            left = memoryview(text)
            while left:
                left = left[os.write(file, left) :]
            if self._journal is not None:
                os.fsync(file)
