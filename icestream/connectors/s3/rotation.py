"""Which records of a topic partition share an object: the rules by which objects are closed.

Confluent's connector closes all open objects of a topic partition together (a commit, in its words). So a row
belongs to a round, the rows between two such moments, and an object is a round and a folder. `objects` asks
for the rounds of each chunk's rows; what is open at the end of a chunk is carried into the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from icestream.records.rows import Flags, Indexes

_LOOK: Final = 64
"""Rows that are looked at first for the end of a round; each further look takes twice as many."""


@dataclass(frozen=True)
class RotationRules:
    flush_size: int
    """Records of all open objects of a topic partition together."""
    interval_ms: int = -1
    """Of the time that the records tell; without effect unless the folders are by time."""
    on_folder_change: bool = True
    """Whether, with an interval, another folder than that of the record before closes all."""


@dataclass(frozen=True, eq=False)
class RowFacts:
    """What the rules look at, of rows of one topic partition in their order."""

    folders: Indexes
    """A number for each folder, the same in all chunks of a task; so are those of the schemas."""
    schemas: Indexes
    fits: Flags
    """Rows that can be written: others close objects as any record does, and are not counted."""
    times: Indexes | None = None
    """Milliseconds, where folders are by time."""

    def __len__(self) -> int:
        return len(self.folders)


@dataclass
class Numbers:
    """Numbers for things, in the order in which they are seen."""

    codes: dict[Hashable, int] = field(default_factory=dict)
    things: list[Any] = field(default_factory=list)

    def of(self, thing: Hashable) -> int:
        code = self.codes.setdefault(thing, len(self.things))
        if code == len(self.things):
            self.things.append(thing)
        return code


@dataclass
class Rotation:
    """The rounds of one topic partition, as far as its rows were seen."""

    rules: RotationRules
    changes: Callable[[int, int], bool]
    """Whether a record of the second schema cannot go into an object that began with the first."""
    round: int = 0
    """Objects of earlier rounds are complete."""
    _count: int = 0
    _base: int | None = None
    _last_folder: int = -1
    _schemas: dict[int, int] = field(default_factory=dict)
    """With which schema the open object of each folder began."""

    def rounds(self, rows: RowFacts) -> Indexes:
        """The round of each row."""
        found = np.empty(len(rows), np.int64)
        look = _Look.at(rows, self._last_folder)
        start = 0
        while start < len(rows):
            full = look.after_fits(start, self.rules.flush_size - self._count)
            end = min(full, self._closed_before(look, start, min(full, len(rows))))
            found[start:end] = self.round
            if end > len(rows):
                self._carry(rows, start)
                break
            self.round += 1
            self._count, self._base = 0, None
            self._schemas.clear()
            start = end
        if len(rows):
            self._last_folder = int(rows.folders[-1])
        return found

    def _closed_before(self, look: _Look, start: int, until: int) -> int:
        """The first row that needs a new round because of what it is; `look.never` if there is none."""
        ends = [look.never]
        times = look.rows.times
        if times is not None and self.rules.interval_ms > 0:
            base = int(times[start]) if self._base is None else self._base
            # An interval ends only where there is something to close.
            held = start if self._count else look.after_fits(start, 1)
            ends.append(look.first_late(held, until, base + self.rules.interval_ms))
            if self.rules.on_folder_change:
                ends.append(look.folder_change(held))
        if len(look.schemas | set(self._schemas.values())) > 1:
            ends.append(self._schema_change(look, start, min(until, *ends)))
        end = min(ends)
        return end if end < until else look.never

    def _schema_change(self, look: _Look, start: int, until: int) -> int:
        size = _LOOK
        while start < until:
            end = min(start + size, until)
            folders, schemas = look.rows.folders[start:end], look.rows.schemas[start:end]
            known, first, place = np.unique(folders, return_index=True, return_inverse=True)
            began = schemas[first]
            for at, folder in enumerate(known.tolist()):
                began[at] = self._schemas.get(folder, began[at])
            pairs = np.stack([began[place], schemas])
            kinds, which = np.unique(pairs, axis=1, return_inverse=True)
            is_change = np.fromiter((self._ends(*pair) for pair in kinds.T.tolist()), np.bool_)
            hits = np.flatnonzero(is_change[which])
            if len(hits):
                return start + int(hits[0])
            if end == until:
                break
            size *= 2
        return look.never

    def _ends(self, began: int, schema: int) -> bool:
        return began != schema and self.changes(began, schema)

    def _carry(self, rows: RowFacts, start: int) -> None:
        self._count += int(np.count_nonzero(rows.fits[start:]))
        if self._base is None and rows.times is not None:
            self._base = int(rows.times[start])
        known, first = np.unique(rows.folders[start:], return_index=True)
        began = rows.schemas[start:][first]
        for folder, schema in zip(known.tolist(), began.tolist(), strict=True):
            self._schemas.setdefault(folder, schema)


@dataclass(frozen=True, eq=False)
class _Look:
    """Questions about the rows of a chunk, answered by search."""

    rows: RowFacts
    fits_before: Indexes
    folder_changes: Indexes
    schemas: set[int]

    @classmethod
    def at(cls, rows: RowFacts, last_folder: int) -> _Look:
        fits_before = np.concatenate([[0], np.cumsum(rows.fits)])
        changes = np.flatnonzero(np.diff(rows.folders, prepend=last_folder))
        return cls(rows, fits_before, changes, set(np.unique(rows.schemas).tolist()))

    @property
    def never(self) -> int:
        return len(self.rows) + 1

    def after_fits(self, start: int, count: int) -> int:
        """The row after so many that can be written; `never` if there are not as many."""
        return int(np.searchsorted(self.fits_before, self.fits_before[start] + count))

    def first_late(self, start: int, until: int, moment: int) -> int:
        assert self.rows.times is not None
        size = _LOOK
        while start < until:
            hits = np.flatnonzero(self.rows.times[start : min(start + size, until)] >= moment)
            if len(hits):
                return start + int(hits[0])
            start += size
            size *= 2
        return self.never

    def folder_change(self, start: int) -> int:
        at = int(np.searchsorted(self.folder_changes, start))
        return int(self.folder_changes[at]) if at < len(self.folder_changes) else self.never
