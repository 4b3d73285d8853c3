"""A commit that replaces files of a table by others with the same rows: an Iceberg `replace` snapshot.

PyIceberg has no such operation. The snapshot carries on the checkpoints of all jobs, ours and those of the
Java sink, so that no expiry of older snapshots can lose one. It lands on whatever the branch has by then,
as long as all files to be replaced are still there and no delete file has come: rows that others append stay,
and what they delete is not brought back. Called by `compaction` and `expiry`.

The class that it derives from is private to PyIceberg: test_compaction.py notices when it has changed.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update.snapshot import _SnapshotProducer

from icestream.api.errors import CommitConflict, CommitUnknown
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits.checkpoints import JAVA_SINCE, java_since
from icestream.connectors.iceberg.commits.light_metadata import LightTransaction
from icestream.tables.maintenance.small_files import growing
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

MADE_BY: Final = "icestream.maintenance"
"""Summary key of our own replace snapshots: what was done."""
_JOBS: Final = "icestream.job."
_JAVAS: Final = "kafka.connect.offsets."
_CARRIED: Final = (_JOBS, _JAVAS, "kafka.connect.valid-through-ts")
"""Keys of a summary that tell how far jobs are. The nearest ancestor's count, so a copy of them does."""
_MOST_ENTRIES: Final = 20_000
"""Of a manifest that is written anew: some megabytes."""


@dataclass(frozen=True)
class Replacement:
    """Files that go and files that come; with neither, manifests are merged and checkpoints carried on."""

    what: str
    removed: frozenset[str] = frozenset()
    """Paths of data files."""
    removed_deletes: frozenset[str] = frozenset()
    """Paths of delete files that delete nothing any more."""
    known_deletes: frozenset[str] = frozenset()
    """All delete files that were there when rows were read: another one may be about them."""
    added: Sequence[DataFile] = ()
    merge_manifests: int | None = None
    """From so many small manifests on they are merged."""


@dataclass(frozen=True)
class Replaced:
    snapshot_id: int
    manifests_before: int
    manifests_after: int


def replace_files(
    table: Table,
    replacement: Replacement,
    branch: str = MAIN_BRANCH,
    turn: AbstractContextManager[object] | None = None,
) -> Replaced:
    """Make the replacement visible, within `turn`. CommitConflict: it did not land, and nobody refers to the
    added files if the conflict is certain. CommitUnknown: nobody knows."""
    with turn or nullcontext():
        with sink_errors(f"loading table {'.'.join(table.name())}"):
            table.refresh()
        return _replaced(table, replacement, branch)


def _replaced(table: Table, replacement: Replacement, branch: str) -> Replaced:
    transaction = LightTransaction(table)
    producer = _Replace(replacement, transaction, branch)
    name = ".".join(table.name())
    try:
        with sink_errors(f"writing manifests of {name}"):
            producer.commit()
    except ValidationException as refused:
        producer.clean_up()
        raise CommitConflict(f"{name}: {refused}") from refused
    try:
        with waiting_for(f"catalog: {replacement.what} of {name}"):
            transaction.commit_transaction()
    except Exception as error:  # whatever the catalog's client raises: the table is asked what happened
        is_refusal = isinstance(error, (CommitFailedException, ValidationException))
        _settle(table, name, producer, error, is_refusal=is_refusal)
    return Replaced(producer.snapshot_id, producer.manifests_before, producer.manifests_after)


def _settle(table: Table, name: str, producer: _Replace, error: Exception, *, is_refusal: bool) -> None:
    """Return if the commit landed after all; a refusal is no proof that it did not."""
    try:
        metadata = table.catalog.load_table(table.name()).metadata
    except Exception as unavailable:
        raise CommitUnknown(
            f"{name}: a commit may have landed and the catalog does not answer: {unavailable}"
        ) from error
    if metadata.snapshot_by_id(producer.snapshot_id) is not None:
        _log.info("commit to %s landed, although it was answered: %s", name, error)
        return
    if is_refusal:
        producer.clean_up()
    raise CommitConflict(f"{name}: the commit did not land: {error}", certain=is_refusal) from error


def carried(metadata: TableMetadata, head: Snapshot | None) -> dict[str, str]:
    """What the summaries up to this snapshot say of how far jobs are, the nearest first; and of which jobs
    Java's sink has committed since, which their order would tell no more."""
    found: dict[str, str] = {}
    javas: set[str] = set()
    since: dict[str, list[str]] = {}
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while head is not None:
        said = head.summary.additional_properties if head.summary else {}
        told = java_since(said)
        for key, text in said.items():
            if not key.startswith(_CARRIED) or key in found:
                continue
            found[key] = text
            if key.startswith(_JOBS) and (newer := javas.union(told.get(key, ()))):
                since[key] = sorted(newer)
        javas |= {key for key in said if key.startswith(_JAVAS)}
        head = by_id.get(head.parent_snapshot_id) if head.parent_snapshot_id is not None else None
    return {**found, JAVA_SINCE: json.dumps(since, sort_keys=True)} if since else found


def tells_all(metadata: TableMetadata) -> set[int]:
    """Snapshots whose own summaries tell all that theirs and those of their ancestors do of jobs."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    told: dict[int, frozenset[str]] = {}
    telling: set[int] = set()
    # Parents come first: they are older.
    for snapshot in sorted(metadata.snapshots, key=lambda one: (one.sequence_number or 0, one.timestamp_ms)):
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        own = frozenset(key for key in said if key.startswith(_CARRIED))
        before = told.get(snapshot.parent_snapshot_id or -1, frozenset())
        told[snapshot.snapshot_id] = own | before
        if before <= own and (snapshot.parent_snapshot_id in by_id or snapshot.parent_snapshot_id is None):
            telling.add(snapshot.snapshot_id)
    return telling


class _DeletesWriter(ManifestWriterV2):
    """PyIceberg writes manifests of data files only."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


@dataclass
class _Pool:
    """Entries of manifests that are written anew, by partition spec."""

    existing: dict[int, list[ManifestEntry]] = field(default_factory=dict)
    deleted: dict[int, list[ManifestEntry]] = field(default_factory=dict)

    def take(self, entry: ManifestEntry, spec: int, *, is_removed: bool) -> None:
        (self.deleted if is_removed else self.existing).setdefault(spec, []).append(entry)


class _Replace(_SnapshotProducer["_Replace"]):
    def __init__(self, replacement: Replacement, transaction: Transaction, branch: str) -> None:
        super().__init__(
            operation=Operation.REPLACE,
            transaction=transaction,
            io=transaction._table.io,
            branch=branch,
            commit_uuid=uuid.uuid4(),
        )
        self._replacement = replacement
        self._removed_files: list[DataFile] = []
        self.manifests_before = self.manifests_after = 0

    def _validate_concurrency(self) -> None:
        """Done while the manifests are written, at every attempt."""

    def _deleted_entries(self) -> list[ManifestEntry]:
        return []

    def _existing_manifests(self) -> list[ManifestFile]:
        return []

    def _clean_all_uncommitted(self) -> None:
        """A commit that was refused may have landed all the same; `clean_up` is for when it is known."""

    def clean_up(self) -> None:
        super()._clean_all_uncommitted()

    def _manifests(self) -> list[ManifestFile]:
        """The manifests of the new snapshot, made from those of the head as it is now."""
        metadata = self._transaction.table_metadata
        head = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id else None
        manifests = head.manifests(self._io) if head is not None else []
        live = [one for one in manifests if one.has_added_files() or one.has_existing_files()]
        self.manifests_before = len(live)
        data = [one for one in live if one.content == ManifestContent.DATA]
        deletes = [one for one in live if one.content == ManifestContent.DELETES]
        kept = [*self._data_manifests(data), *self._delete_manifests(deletes)]
        self.manifests_after = sum(one.has_added_files() or one.has_existing_files() for one in kept)
        return kept

    def _data_manifests(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        wanted = self._replacement.removed
        merged = self._to_merge(manifests)
        kept: list[ManifestFile] = []
        pool = _Pool()
        for manifest in manifests:
            entries = self.fetch_manifest_entry(manifest) if wanted or manifest in merged else []
            removed = [entry for entry in entries if entry.data_file.file_path in wanted]
            if not removed and manifest not in merged:
                kept.append(manifest)
                continue
            for entry in entries:
                gone = entry.data_file.file_path in wanted
                pool.take(entry, manifest.partition_spec_id, is_removed=gone)
        found = {entry.data_file.file_path for entries in pool.deleted.values() for entry in entries}
        if missing := wanted - found:
            raise ValidationException(
                f"{len(missing)} of {len(wanted)} files to be replaced are no longer in the table: "
                "somebody else has replaced or removed them"
            )
        self._removed_files = [one.data_file for entries in pool.deleted.values() for one in entries]
        return [*self._added(), *self._written(pool, self.new_manifest_writer), *kept]

    def _delete_manifests(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        if not self._replacement.removed:
            return list(manifests)
        dangling, known = self._replacement.removed_deletes, self._replacement.known_deletes
        kept: list[ManifestFile] = []
        pool = _Pool()
        for manifest in manifests:
            entries = self.fetch_manifest_entry(manifest)
            paths = {entry.data_file.file_path for entry in entries}
            if not paths <= known:
                raise ValidationException("somebody else has deleted rows meanwhile")
            if not paths & dangling:
                kept.append(manifest)
                continue
            for entry in entries:
                gone = entry.data_file.file_path in dangling
                pool.take(entry, manifest.partition_spec_id, is_removed=gone)
        self._removed_files += [one.data_file for entries in pool.deleted.values() for one in entries]
        return [*self._written(pool, self._new_deletes_writer), *kept]

    def _to_merge(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Small manifests of the current spec."""
        least = self._replacement.merge_manifests
        spec = self._transaction.table_metadata.default_spec_id
        chosen = growing(
            [one for one in manifests if one.partition_spec_id == spec], lambda one: one.manifest_length
        )
        return chosen if least is not None and len(chosen) >= max(2, least) else []

    def _added(self) -> list[ManifestFile]:
        """By the spec that they were written for: the table may have another by now."""
        written = []
        for spec in sorted({file.spec_id for file in self._replacement.added}):
            with self.new_manifest_writer(self.spec(spec)) as writer:
                for file in self._replacement.added:
                    if file.spec_id == spec:
                        writer.add_entry(
                            ManifestEntry.from_args(
                                status=ManifestEntryStatus.ADDED,
                                snapshot_id=self._snapshot_id,
                                sequence_number=None,
                                file_sequence_number=None,
                                data_file=file,
                            )
                        )
            written.append(writer.to_manifest_file())
        return written

    def _written(self, pool: _Pool, open_writer: Any) -> list[ManifestFile]:
        # What is deleted has a manifest of its own: the next commit leaves that out.
        return [
            self._manifest(spec, part, open_writer, is_deleted=is_deleted)
            for entries_of, is_deleted in ((pool.existing, False), (pool.deleted, True))
            for spec, entries in entries_of.items()
            for part in _parts(entries, _MOST_ENTRIES)
        ]

    def _manifest(
        self, spec: int, entries: Iterable[ManifestEntry], open_writer: Any, *, is_deleted: bool
    ) -> ManifestFile:
        writer: ManifestWriter
        with open_writer(self.spec(spec)) as writer:
            for entry in entries:
                if is_deleted:
                    writer.delete(entry)
                else:
                    writer.existing(entry)
        return writer.to_manifest_file()

    def _new_deletes_writer(self, spec: Any) -> ManifestWriter:
        return _DeletesWriter(
            spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        )

    def _summary(self, snapshot_properties: Mapping[str, str] = {}) -> Summary:
        metadata = self._transaction.table_metadata
        collected = SnapshotSummaryCollector()
        specs, schema = metadata.specs(), metadata.schema()
        for file in self._replacement.added:
            collected.add_file(file, schema, specs[file.spec_id])
        for file in self._removed_files:
            collected.remove_file(file, schema, specs[file.spec_id])
        head = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id else None
        # PyIceberg counts what replaces as it counts what overwrites, and knows only the latter.
        counted = update_snapshot_summaries(
            Summary(Operation.OVERWRITE, **collected.build()), head.summary if head is not None else None
        )
        said = {
            **counted.additional_properties,
            **carried(metadata, head),
            MADE_BY: self._replacement.what,
        }
        return Summary(Operation.REPLACE, **said)


def _parts(entries: Sequence[ManifestEntry], most: int) -> Iterable[Sequence[ManifestEntry]]:
    for at in range(0, len(entries), most):
        yield entries[at : at + most]
