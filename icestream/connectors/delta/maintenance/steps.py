"""The maintenance of one Delta table: what is due is done, step by step, and each step says what it has cost.

Called by the job beside its batches, or between them where rows are merged, and by `icestream table`. A step
that fails is told and stops nothing: the next ones are done all the same, and the next run tries again.
"""

from __future__ import annotations

import datetime as dt
import json
import posixpath
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from deltalake import DeltaTable

from icestream.api.errors import NotFoundError, PreconditionError
from icestream.api.maintenance import HistoryEntry, Maintainer, MaintenanceRun, MaintenanceStep
from icestream.connectors.delta.commits.log import FOLDER, TableLog
from icestream.connectors.delta.commits.sweep import file_prefix
from icestream.connectors.delta.maintenance.compaction import Compaction, CompactionLimits
from icestream.connectors.delta.maintenance.vacuum import made_by, retention, vacuum
from icestream.connectors.delta.opening import delta_errors, open_table
from icestream.connectors.delta.storage import Storage, file_path, storage_errors
from icestream.tables.maintenance.settings import MaintenanceSettings
from icestream.tables.maintenance.steps import StepRunner, orphan_age

_MOST_COMMITS: Final = 20_000
_MOST_READ: Final = 500
"""Commits whose files are counted for the history: each is a file of the log."""


@dataclass(frozen=True)
class Place:
    """The table that is maintained, and for whom."""

    name: str
    job: str
    location: str
    storage: Storage
    write_props: Mapping[str, str]


class TableMaintainer(Maintainer):
    def __init__(
        self,
        place: Place,
        settings: MaintenanceSettings,
        *,
        reached: Callable[[str], None] = lambda point: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._settings = settings
        self._reached = reached
        self._clock = clock
        self._steps = StepRunner(place.name, clock)
        self._turn: AbstractContextManager[object] = nullcontext()

    def run(
        self, now: dt.datetime, *, thorough: bool, turn: AbstractContextManager[object]
    ) -> MaintenanceRun:
        """All that is due; with `thorough` what looks at every file, too."""
        chosen = self._settings
        steps: list[MaintenanceStep] = []
        if not chosen.enabled:
            return MaintenanceRun(self._place.name, now)
        self._turn = turn
        if chosen.compaction:
            steps.append(self._steps.guarded("compaction", "data files", self._compact))
        if thorough and chosen.expire:
            steps.append(self._steps.guarded("vacuum", "removed files", lambda: self._expire(now)))
        if thorough and chosen.orphans:
            age = chosen.orphans_older_than
            steps.append(self._steps.guarded("orphans", "orphans", lambda: self._orphans(age, now)))
        return MaintenanceRun(self._place.name, now, steps)

    # -- by hand --

    def compact(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        chosen = self._settings
        self._settings = replace(
            chosen,
            min_files=options.get("min-files", chosen.min_files),
            target_bytes=options.get("target-bytes", chosen.target_bytes),
        )
        return [self._steps.timed("compaction", "data files", lambda: self._compact(dry_run=dry_run))]

    def expire(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        age = options.get("older-than-ms")
        if age is not None:
            self._settings = replace(self._settings, older_than=dt.timedelta(milliseconds=age))
            kept = retention(self._load().metadata().configuration)
            if self._settings.older_than < kept:
                raise PreconditionError(
                    f"the table keeps files for {kept} (delta.deletedFileRetentionDuration): readers of "
                    "earlier versions may need them; name a longer time, or set that property"
                )
        now = dt.datetime.now(dt.UTC)
        return [self._steps.timed("vacuum", "removed files", lambda: self._expire(now, dry_run=dry_run))]

    def orphans(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        older_than = orphan_age(options, self._settings.orphans_older_than)
        now = dt.datetime.now(dt.UTC)
        return [
            self._steps.timed("orphans", "orphans", lambda: self._orphans(older_than, now, dry_run=dry_run))
        ]

    def history(self) -> Sequence[HistoryEntry]:
        table = self._load()
        with delta_errors(f"reading the log of {self._place.name}"):
            entries = TableLog.of(self._place.location, self._place.storage).last_entries(
                table.version(), _MOST_COMMITS
            )
        found = []
        for place, entry in enumerate(entries):
            counts = self._counts(int(entry["version"])) if place < _MOST_READ else _Counts()
            found.append(
                HistoryEntry(
                    id=str(entry["version"]),
                    at=dt.datetime.fromtimestamp(int(entry.get("timestamp", 0)) / 1000, dt.UTC),
                    operation=str(entry.get("operation", "")).lower(),
                    added_files=counts.added_files,
                    removed_files=counts.removed_files,
                    added_rows=counts.added_rows,
                    by=made_by(entry),
                )
            )
        return found[::-1]

    def _counts(self, version: int) -> _Counts:
        place = self._place
        files = place.storage.file_system(place.location)
        path = posixpath.join(file_path(place.location), FOLDER, f"{version:020}.json")
        try:
            with storage_errors(f"reading the log of {place.name}"), files.open_input_stream(path) as stream:
                text = stream.read()
        except NotFoundError:
            return _Counts()
        return _Counts.of([json.loads(line) for line in text.splitlines() if line.strip()])

    # -- the steps --

    def _compact(self, *, dry_run: bool = False) -> MaintenanceStep:
        place, chosen = self._place, self._settings
        prefix = file_prefix(place.job, str(self._load().metadata().id))
        compaction = Compaction(
            *(place.name, self._load, place.location, place.storage, prefix, place.write_props),
            reached=self._reached,
            clock=self._clock,
        )
        limits = CompactionLimits(chosen.min_files, chosen.target_bytes)
        done = compaction.run(limits, self._turn, dry_run=dry_run)
        note = ""
        if done.files_removed:
            note = f"{done.files_removed:,} files with {done.rows:,} rows become {done.files_added:,}"
        return MaintenanceStep(
            "", "", done.files_before, done.files_after, removed_bytes=done.bytes_read, note=note
        )

    def _expire(self, now: dt.datetime, *, dry_run: bool = False) -> MaintenanceStep:
        table = self._load()
        age = max(self._settings.older_than, retention(table.metadata().configuration))
        return self._vacuum(table, age, now, orphans=False, dry_run=dry_run)

    def _orphans(self, age: dt.timedelta, now: dt.datetime, *, dry_run: bool = False) -> MaintenanceStep:
        table = self._load()
        # Files that the table had, and that its readers may need, are among what it no longer has.
        age = max(age, retention(table.metadata().configuration))
        return self._vacuum(table, age, now, orphans=True, dry_run=dry_run)

    def _vacuum(
        self, table: DeltaTable, age: dt.timedelta, now: dt.datetime, *, orphans: bool, dry_run: bool
    ) -> MaintenanceStep:
        place = self._place
        with delta_errors(f"looking for files of {place.name} that it no longer has"):
            done = vacuum(table, place.location, place.storage, age, now, orphans=orphans, dry_run=dry_run)
        left = done.found - done.removed
        note = f"{left:,} of them could not be removed" if left else ""
        return MaintenanceStep(
            "", "", done.found, left, removed_files=done.removed, removed_bytes=done.bytes, note=note
        )

    def _load(self) -> DeltaTable:
        place = self._place
        table = open_table(place.name, place.location, place.storage)
        if table is None:
            raise NotFoundError(f"table '{place.name}' is not at {place.location}; check its name")
        return table


@dataclass(frozen=True)
class _Counts:
    added_files: int = 0
    removed_files: int = 0
    added_rows: int = 0

    @classmethod
    def of(cls, actions: Sequence[Mapping[str, Any]]) -> _Counts:
        added = [one["add"] for one in actions if "add" in one]
        rows = sum(int(json.loads(one.get("stats") or "{}").get("numRecords", 0)) for one in added)
        return cls(len(added), sum("remove" in one for one in actions), rows)
