"""A table's log as files: its commits, newest first, and what they say; all transactions that it has.

Used by whoever looks for a job's checkpoint. delta-rs has a `history`, too, but keeps all of Python waiting
while it reads, and counts versions instead of reading them; and it tells of a transaction only by its name.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.fs as pf
import pyarrow.parquet as pq

from icestream.connectors.delta.storage import Storage, file_path

FOLDER: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(\.[0-9a-fA-F.-]+)?\.(parquet|json)")
_AT_ONCE: Final = 16

Entry = dict[str, Any]
"""The `commitInfo` of a commit, with its `version`."""


@dataclass(frozen=True)
class TableLog:
    files: pf.FileSystem
    folder: str

    @classmethod
    def of(cls, location: str, storage: Storage) -> TableLog:
        return cls(storage.file_system(location), posixpath.join(file_path(location), FOLDER))

    def entries(self, version: int, down_to: int = 0) -> Iterator[Entry]:
        """The commits from a version back, as far as the log reaches; each is read when it is asked for."""
        for at in range(version, down_to - 1, -1):
            entry = self.entry(at)
            if entry is None:
                return
            yield entry

    def last_entries(self, version: int, most: int) -> list[Entry]:
        """The last commits up to a version, newest first, several read at a time."""
        wanted = range(version, max(-1, version - most), -1)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            found = list(threads.map(self.entry, wanted))
        reaches = found.index(None) if None in found else len(found)
        return [entry for entry in found[:reaches] if entry is not None]

    def entry(self, version: int) -> Entry | None:
        """What one commit says of itself; None if the log has it not, or not any more."""
        try:
            actions = self._actions(f"{version:020}.json", b'"commitInfo"')
        except FileNotFoundError:
            return None
        info: Entry = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
        return {**info, "version": version}

    def actions(self, version: int, having: bytes) -> list[dict[str, Any]]:
        """Those of one commit in whose text a word is. FileNotFoundError: the log has it no more."""
        return self._actions(f"{version:020}.json", having)

    def transactions(self, version: int) -> dict[str, int]:
        """All transactions of the table at a version, by their ids; empty if its log does not reach back."""
        names = [
            one.base_name
            for one in self.files.get_file_info(pf.FileSelector(self.folder, allow_not_found=True))
        ]
        checkpoints = {
            name: int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name)) is not None
        }
        newest = max((at for at in checkpoints.values() if at <= version), default=-1)
        found: dict[str, int] = {}
        for name, at in checkpoints.items():
            if at == newest:
                found |= self._in_checkpoint(name)
        commits = sorted(
            (int(match[1]), name) for name in names if (match := _COMMIT.fullmatch(name)) is not None
        )
        for at, name in commits:
            if newest < at <= version:
                found |= self._in_commit(name)
        return found

    def last_checkpoint(self) -> int:
        """The version of the last checkpoint of the log; 0 if it has none."""
        try:
            with self.files.open_input_stream(posixpath.join(self.folder, "_last_checkpoint")) as stream:
                return int(json.loads(stream.read())["version"])
        except FileNotFoundError:
            return 0

    def _in_checkpoint(self, name: str) -> dict[str, int]:
        if name.endswith(".json"):
            return self._in_commit(name)
        with self.files.open_input_file(posixpath.join(self.folder, name)) as stream:
            table = pq.ParquetFile(stream).read(columns=["txn"])
        rows = table.column("txn").to_pylist() if "txn" in table.column_names else []
        return {row["appId"]: row["version"] for row in rows if row is not None and row["appId"] is not None}

    def _in_commit(self, name: str) -> dict[str, int]:
        actions = self._actions(name, b'"txn"')
        return {one["txn"]["appId"]: int(one["txn"]["version"]) for one in actions if "txn" in one}

    def _actions(self, name: str, having: bytes) -> list[dict[str, Any]]:
        """Those of a commit in whose text a word is: most are of files, and many."""
        with self.files.open_input_stream(posixpath.join(self.folder, name)) as stream:
            lines = stream.read().splitlines()
        return [json.loads(line) for line in lines if having in line]
