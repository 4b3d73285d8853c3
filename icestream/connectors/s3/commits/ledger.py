"""The ledger of a job: one small object for each commit, put on condition that its number is free.

That put is the commit. The entry has the checkpoint, and lists the uploads that belong to it; whoever reads
an entry that is not done completes them (`publish`) and puts its twin, `<number>.done`. Used by `target`.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from icestream.api.checkpoint import Checkpoint, from_json, to_json
from icestream.api.errors import CommitConflict, CommitUnknown, FatalError
from icestream.connectors.s3.commits.staged import StagedObject
from icestream.connectors.s3.stores.store import AnswerLost, Exists, ObjectStore

FOLDER: Final = "_icestream"
KEPT: Final = 100
"""Entries; older ones are removed. One that somebody puts in the place of one of them is void."""
_FORMAT: Final = 1
_DIGITS: Final = 20
_AT_ONCE: Final = 8
_ENTRY: Final = re.compile(r"[0-9]{20}\.json")


@dataclass(frozen=True)
class Entry:
    number: int
    checkpoint: Checkpoint
    objects: Sequence[StagedObject] = ()
    written_by: Mapping[str, Any] = field(default_factory=dict)
    """The plan by which its objects were written, to write one again that the store has lost."""

    def content(self) -> bytes:
        stored = {
            "format": _FORMAT,
            "number": self.number,
            "checkpoint": to_json(self.checkpoint),
            "objects": [one.to_json() for one in self.objects],
            "written_by": dict(self.written_by),
        }
        return json.dumps(stored, separators=(",", ":")).encode()

    @classmethod
    def read(cls, content: bytes) -> Entry:
        stored = json.loads(content)
        if stored["format"] != _FORMAT:
            raise ValueError(f"it has format {stored['format']}, and this version reads {_FORMAT}")
        objects = tuple(StagedObject.from_json(one) for one in stored["objects"])
        return cls(stored["number"], from_json(stored["checkpoint"]), objects, stored["written_by"])


@dataclass(frozen=True)
class Newest:
    """The entry with the highest number, and whether all of its objects are visible."""

    entry: Entry | None = None
    is_done: bool = True


def open_entries(store: ObjectStore, topics_dir: str) -> list[Entry]:
    """The newest entries of all jobs of a prefix whose objects are not all visible."""
    jobs: dict[str, list[str]] = {}
    for one in store.list(f"{top_of(topics_dir)}{FOLDER}/"):
        folder, _, name = one.key.rpartition("/")
        jobs.setdefault(folder, []).append(name)
    found = []
    for folder, names in jobs.items():
        entries = sorted(name for name in names if _ENTRY.fullmatch(name))
        if entries and entries[-1].replace(".json", ".done") not in names:
            content = store.get(f"{folder}/{entries[-1]}")
            if content is not None:
                found.append(Entry.read(content))
    return found


def top_of(topics_dir: str) -> str:
    return f"{topics_dir.strip('/')}/" if topics_dir.strip().strip("/") else ""


class Ledger:
    def __init__(self, store: ObjectStore, topics_dir: str, job: str) -> None:
        self._store = store
        # A name may have any character, a folder may not.
        folder = quote(job, safe="").replace(".", "%2E") if not job.strip(".") else quote(job, safe="")
        self.prefix = f"{top_of(topics_dir)}{FOLDER}/{folder}/"
        self.name = f"{store.name}/{self.prefix}"

    def newest(self) -> Newest:
        numbers, done = self._numbers()
        if not numbers:
            return Newest()
        number = max(numbers)
        entry = self._entry(number)
        return Newest(entry, number in done) if entry is not None else self.newest()

    def last(self, most: int) -> list[tuple[Entry, dt.datetime]]:
        """The last entries and when they were put, the newest first."""
        put = {one.key: one.changed for one in self._store.list(self.prefix) if one.key.endswith(".json")}
        numbers = sorted((number for number in self._numbers()[0]), reverse=True)[:most]
        known = [number for number in numbers if self._key(number) in put]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            entries = list(threads.map(self._entry, known))
        return [
            (entry, put[self._key(number)])
            for number, entry in zip(known, entries, strict=True)
            if entry is not None
        ]

    def add(self, entry: Entry) -> None:
        """The commit. CommitConflict: the number is taken, or was; CommitUnknown: it may be there."""
        key = self._key(entry.number)
        try:
            self._store.put(key, entry.content())
        except Exists:
            self._refuse_other(entry)
        except AnswerLost as error:
            found = self._entry(entry.number)
            if found is None:
                raise CommitUnknown(f"{error}; the commit may land all the same") from error
            self._refuse_other(entry)
        later = [number for number in self._numbers(after=key)[0] if number > entry.number]
        if later:
            # Ours was free only because the old one was removed.
            self._store.remove([key])
            raise CommitConflict(f"{self.name} is at commit {max(later)}: somebody else committed")

    def _refuse_other(self, entry: Entry) -> None:
        found = self._entry(entry.number)
        if found is None or found.checkpoint.commit != entry.checkpoint.commit:
            raise CommitConflict(f"{self.name} has another commit {entry.number}: somebody else committed")

    def is_done(self, number: int) -> bool:
        return self._store.get(self._key(number, "done")) is not None

    def done(self, number: int) -> None:
        self._store.replace(self._key(number, "done"), b"")

    def prune(self, newest: int) -> None:
        """Remove the entry that has become too old with this one; `sweep` finds those that were missed."""
        old = newest - KEPT
        if old > 0:
            self._store.remove([self._key(old), self._key(old, "done")])

    def prune_all(self) -> int:
        numbers, done = self._numbers()
        newest = max(numbers, default=0)
        old = [number for number in numbers if number <= newest - KEPT]
        keys = [self._key(number) for number in old]
        keys += [self._key(number, "done") for number in done if number not in numbers or number in old]
        if keys:
            self._store.remove(keys)
        return len(old)

    def _numbers(self, after: str = "") -> tuple[set[int], set[int]]:
        """Of all entries, and of those that are done."""
        entries: set[int] = set()
        done: set[int] = set()
        for one in self._store.list(self.prefix, after):
            stem, _, kind = one.key.removeprefix(self.prefix).partition(".")
            if len(stem) == _DIGITS and stem.isascii() and stem.isdigit():
                if kind == "json":
                    entries.add(int(stem))
                elif kind == "done":
                    done.add(int(stem))
        return entries, done

    def _entry(self, number: int) -> Entry | None:
        """None: it was removed meanwhile."""
        content = self._store.get(self._key(number))
        if content is None:
            return None
        try:
            return Entry.read(content)
        except (ValueError, KeyError, TypeError) as error:
            raise FatalError(
                f"{self.name}: commit {number} of the ledger cannot be read ({error}); restore the object, "
                "or run the version of icestream that wrote it"
            ) from error

    def _key(self, number: int, kind: str = "json") -> str:
        return f"{self.prefix}{number:0{_DIGITS}}.{kind}"
