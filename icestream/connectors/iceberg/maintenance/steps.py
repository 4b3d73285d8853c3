"""The maintenance of one table: what is due is done, step by step, and each step says what it has cost.

Called by the job beside its batches, or between them where rows are merged (through `IcebergTable.maintain`),
and by `icestream table`. A step that fails is told and stops nothing: the next ones are done all the same,
and the next run tries again.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from icestream.api.errors import NotFoundError
from icestream.api.maintenance import HistoryEntry, Maintainer, MaintenanceRun, MaintenanceStep
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits import checkpoints
from icestream.connectors.iceberg.commits.sweep import file_prefix
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.expiry import ExpiryLimits, expire
from icestream.connectors.iceberg.maintenance.orphans import remove_orphans
from icestream.connectors.iceberg.maintenance.replace_commit import (
    MADE_BY,
    Replacement,
    replace_files,
)
from icestream.connectors.iceberg.maintenance.settings import IcebergMaintenance
from icestream.tables.maintenance.small_files import growing
from icestream.tables.maintenance.steps import StepRunner, orphan_age

_LEAST_EXPIRED: Final = 20
"""Expiry reads what these snapshots have, and writes all others anew: by itself it waits for so many."""


class TableMaintainer(Maintainer):
    """Of one table; `job` is whose files the merged ones are, by their names."""

    def __init__(
        self,
        load: Callable[[], Table],
        name: str,
        job: str,
        settings: IcebergMaintenance,
        *,
        write_props: Mapping[str, str],
        branch: str = MAIN_BRANCH,
        close: Callable[[], None] = lambda: None,
        reached: Callable[[str], None] = lambda point: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load_table = load
        self._name = name
        self._job = job
        self._settings = settings
        self._write_props = dict(write_props)
        self._branch = branch
        self._close = close
        self._reached = reached
        self._clock = clock
        self._steps = StepRunner(name, clock)
        self._turn: AbstractContextManager[object] = nullcontext()
        self._known: Table | None = None
        """The table as the step before has left it: to load one with a long history takes its time, and
        whoever commits looks again."""

    def run(
        self, now: dt.datetime, *, thorough: bool, turn: AbstractContextManager[object]
    ) -> MaintenanceRun:
        """All that is due; with `thorough` orphans, too: to list a large table takes long."""
        chosen = self._settings
        steps: list[MaintenanceStep] = []
        if not chosen.enabled:
            return MaintenanceRun(self._name, now)
        self._turn = turn
        if chosen.compaction:
            steps.append(self._steps.guarded("compaction", "data files", self._compact))
        steps.append(self._steps.guarded("manifests", "manifests", self._merge_manifests))
        if chosen.expire:
            limits = ExpiryLimits(chosen.older_than, chosen.retain_last, chosen.max_snapshots)
            steps.append(
                self._steps.guarded(
                    "expiry", "snapshots", lambda: self._expire(limits, now, least=_LEAST_EXPIRED)
                )
            )
        if thorough and chosen.orphans:
            age = chosen.orphans_older_than
            steps.append(self._steps.guarded("orphans", "orphans", lambda: self._orphans(age, now)))
        return MaintenanceRun(self._name, now, steps)

    def close(self) -> None:
        self._close()

    # -- by hand --

    def compact(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        chosen = self._settings
        self._settings = replace(
            chosen,
            min_files=options.get("min-files", chosen.min_files),
            target_bytes=options.get("target-bytes", chosen.target_bytes),
        )
        steps = [self._steps.timed("compaction", "data files", lambda: self._compact(dry_run=dry_run))]
        if not dry_run:
            steps.append(self._steps.timed("manifests", "manifests", self._merge_manifests))
        return steps

    def expire(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        chosen = self._settings
        age = options.get("older-than-ms")
        limits = ExpiryLimits(
            chosen.older_than if age is None else dt.timedelta(milliseconds=age),
            options.get("retain-last", chosen.retain_last),
            chosen.max_snapshots,
        )
        now = dt.datetime.now(dt.UTC)
        return [self._steps.timed("expiry", "snapshots", lambda: self._expire(limits, now, dry_run=dry_run))]

    def orphans(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        older_than = orphan_age(options, self._settings.orphans_older_than)
        now = dt.datetime.now(dt.UTC)
        return [
            self._steps.timed("orphans", "orphans", lambda: self._orphans(older_than, now, dry_run=dry_run))
        ]

    def history(self) -> Sequence[HistoryEntry]:
        metadata = self._load().metadata
        names: dict[int, list[str]] = {}
        for name, ref in metadata.refs.items():
            names.setdefault(ref.snapshot_id, []).append(name)
        found = []
        for snapshot in sorted(metadata.snapshots, key=lambda one: one.timestamp_ms):
            said = snapshot.summary.additional_properties if snapshot.summary else {}
            found.append(
                HistoryEntry(
                    id=str(snapshot.snapshot_id),
                    at=dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC),
                    operation=snapshot.summary.operation.value if snapshot.summary else "",
                    added_files=int(said.get("added-data-files", 0)),
                    removed_files=int(said.get("deleted-data-files", 0)),
                    added_rows=int(said.get("added-records", 0)),
                    removed_rows=int(said.get("deleted-records", 0)),
                    total_files=_number(said, "total-data-files"),
                    total_rows=_number(said, "total-records"),
                    by=_made_by(said),
                    names=tuple(sorted(names.get(snapshot.snapshot_id, ()))),
                )
            )
        return found

    # -- the steps --

    def _compact(self, *, dry_run: bool = False) -> MaintenanceStep:
        chosen = self._settings
        table = self._known = self._load()
        done = compact(
            table,
            CompactionLimits(chosen.min_files, chosen.target_bytes, chosen.deletes_percent),
            file_prefix=file_prefix(self._job, table.metadata.table_uuid),
            write_props=self._write_props,
            branch=self._branch,
            merge_manifests=chosen.min_manifests,
            dry_run=dry_run,
            turn=self._turn,
            reached=self._reached,
            clock=self._clock,
        )
        note = ""
        if done.files_removed:
            note = f"{done.files_removed:,} files with {done.rows:,} rows become {done.files_added:,}"
        if done.deletes_removed:
            note += f", {done.deletes_removed:,} delete files are applied"
        return MaintenanceStep(
            "", "", done.files_before, done.files_after, removed_bytes=done.bytes_read, note=note
        )

    def _merge_manifests(self) -> MaintenanceStep:
        table = self._known = self._known or self._load()
        head = table.metadata.snapshot_by_name(self._branch)
        manifests = head.manifests(table.io) if head is not None else []
        small = growing(
            [
                one
                for one in manifests
                if one.content == ManifestContent.DATA
                and one.partition_spec_id == table.metadata.default_spec_id
                and (one.has_added_files() or one.has_existing_files())
            ],
            lambda one: int(one.manifest_length),
        )
        if len(small) < self._settings.min_manifests:
            return MaintenanceStep("", "", len(manifests), len(manifests))
        merged = replace_files(
            table,
            Replacement("manifests", merge_manifests=self._settings.min_manifests),
            self._branch,
            self._turn,
        )
        return MaintenanceStep("", "", merged.manifests_before, merged.manifests_after)

    def _expire(
        self, limits: ExpiryLimits, now: dt.datetime, *, least: int = 1, dry_run: bool = False
    ) -> MaintenanceStep:
        done = expire(
            self._load,
            limits,
            now,
            least=least,
            dry_run=dry_run,
            turn=self._turn,
            reached=self._reached,
            known=self._known,
        )
        note = f"{done.files_left:,} files could not be removed" if done.files_left else ""
        return MaintenanceStep(
            "", "", done.snapshots_before, done.snapshots_after, removed_files=done.files_removed, note=note
        )

    def _orphans(
        self, older_than: dt.timedelta, now: dt.datetime, *, dry_run: bool = False
    ) -> MaintenanceStep:
        table = self._load()
        with sink_errors(f"looking for orphans of {self._name}"):
            done = remove_orphans(table, self._write_props, older_than, now, dry_run=dry_run)
        note = done.note or (f"{done.left:,} of them could not be removed" if done.left else "")
        return MaintenanceStep(
            *("", "", done.orphans, done.left),
            removed_files=done.orphans - done.left,
            removed_bytes=done.bytes,
            note=note,
        )

    def _load(self) -> Table:
        with sink_errors(f"loading table {self._name}"):
            try:
                return self._load_table()
            except (NoSuchTableError, NoSuchNamespaceError):
                raise NotFoundError(f"table '{self._name}' is not in its catalog; check its name") from None


def _number(said: Mapping[str, str], key: str) -> int | None:
    return int(said[key]) if key in said else None


def _made_by(said: Mapping[str, str]) -> str:
    if MADE_BY in said:
        return f"maintenance: {said[MADE_BY]}"
    key = checkpoints.key_of("")
    jobs = [name.removeprefix(key) for name in said if name.startswith(key)]
    return f"connector {jobs[0]}" if jobs else said.get("engine-name", "")
