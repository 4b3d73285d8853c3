"""Commits whose cost does not grow with a table's history, as far as PyIceberg lets us. Used by `table.py`.

PyIceberg copies all metadata, each snapshot down to its strings, whenever a transaction is asked for it: 17
times a commit. docs/decisions/009-checkpoint.md has the figures; tests fail when the private parts are gone.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pyiceberg.io import FileIO
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import (
    TableMetadata,
    TableMetadataCommonFields,
    TableMetadataV1,
    TableMetadataV2,
    TableMetadataV3,
)
from pyiceberg.table.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry
from pyiceberg.table.update import (
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
)
from pyiceberg.typedef import IcebergBaseModel

_T = TypeVar("_T")
_HISTORY: Final = ("snapshots", "snapshot_log", "metadata_log")
_GROWING: Final = ("snapshots", "snapshot_log")


class LightTransaction(Transaction):
    """A transaction that works out its metadata once per change, and shares what did not change."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, autocommit=False)
        self._kept: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        base, updates = self._table.metadata, self._updates
        if self._kept is None or self._kept[0] is not base or self._kept[1] is not updates:
            context = _TableMetadataUpdateContext()
            changed = base
            for update in updates:
                changed = _apply_table_update(update, changed, context)
            self._kept = (base, updates, changed)
        return self._kept[2]


def share_history() -> None:
    """Let copies of metadata share the entries of its history: they are frozen, and nobody changes them."""
    for entry in (Snapshot, SnapshotLogEntry, MetadataLogEntry):
        entry.__deepcopy__ = _itself  # type: ignore[method-assign]
    for metadata in (TableMetadataV1, TableMetadataV2, TableMetadataV3):
        metadata.__deepcopy__ = _with_shared_history  # type: ignore[method-assign, assignment]
    TableMetadataCommonFields.snapshot_by_id = _snapshot_by_id  # type: ignore[method-assign]


def _itself(self: _T, memo: dict[int, Any] | None = None) -> _T:
    return self


def _with_shared_history(self: TableMetadata, memo: dict[int, Any] | None = None) -> TableMetadata:
    """A deep copy, whose lists of history are new and have the same entries."""
    rest = self.model_copy(update=dict.fromkeys(_HISTORY, ()))
    copied = IcebergBaseModel.__deepcopy__(rest, memo)
    history: dict[str, list[Any]] = {name: list(getattr(self, name)) for name in _HISTORY}
    known = self.snapshots.by_id if isinstance(self.snapshots, _Snapshots) else None
    return copied.model_copy(update={**history, "snapshots": _Snapshots(self.snapshots, known)})


class _Snapshots(list[Snapshot]):
    """The snapshots of a table, which are asked for by id, or whether an id is new, eight times a commit."""

    def __init__(self, snapshots: Iterable[Snapshot], by_id: dict[int, Snapshot] | None = None) -> None:
        super().__init__(snapshots)
        self.by_id = {one.snapshot_id: one for one in self} if by_id is None else by_id

    def __add__(self, more: list[Snapshot]) -> _Snapshots:  # type: ignore[override]
        return _Snapshots([*self, *more], self.by_id | {one.snapshot_id: one for one in more})


def _snapshot_by_id(self: TableMetadataCommonFields, snapshot_id: int) -> Snapshot | None:
    snapshots = self.snapshots
    if isinstance(snapshots, _Snapshots):
        return snapshots.by_id.get(snapshot_id)
    return next((one for one in reversed(snapshots) if one.snapshot_id == snapshot_id), None)


class MetadataTexts:
    """Metadata files as text. The text of the history is kept: only its last entry is new each time."""

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[uuid.UUID, dict[str, _Entries]] = OrderedDict()
        """By table and field; the table that was used last is at the end."""
        self._lock = threading.Lock()

    def write(self, metadata: TableMetadata, io: FileIO, location: str) -> None:
        # What has no snapshot, or is compressed, has its own rules, which are PyIceberg's.
        is_plain = metadata.format_version > 1 and metadata.current_snapshot_id is not None
        if not is_plain or location.endswith(".gz.metadata.json"):
            ToOutputFile.table_metadata(metadata, io.new_output(location))
            return
        text = self._text(metadata)
        with io.new_output(location).create() as stream:
            stream.write(text)

    def _text(self, metadata: TableMetadata) -> bytes:
        known = self._kept.get(metadata.table_uuid, {})
        lists = {
            name: known.get(name, _Entries([], b"")).grown_to(getattr(metadata, name)) for name in _GROWING
        }
        self._keep(metadata.table_uuid, lists)
        rest = metadata.model_dump_json(exclude=set(_GROWING), exclude_none=True).encode()
        parts = [rest[:-1]]
        for name, entries in lists.items():
            parts += (b',"', name.replace("_", "-").encode(), b'":[', entries.text, b"]")
        return b"".join((*parts, b"}"))

    def _keep(self, table: uuid.UUID, lists: dict[str, _Entries]) -> None:
        with self._lock:
            self._kept[table] = lists
            self._kept.move_to_end(table)
            while len(self._kept) > 1 and self._bytes() > self._most_bytes:
                self._kept.popitem(last=False)

    def _bytes(self) -> int:
        return sum(len(entries.text) for lists in self._kept.values() for entries in lists.values())


@dataclass(frozen=True)
class _Entries:
    entries: list[Any]
    text: bytes

    def grown_to(self, entries: list[Any]) -> _Entries:
        known, text = len(self.entries), self.text
        # Compared by identity first, which entries keep wherever metadata is copied.
        if entries[:known] != self.entries:
            known, text = 0, b""
        new = [entry.model_dump_json(exclude_none=True).encode() for entry in entries[known:]]
        return _Entries(list(entries), b",".join([text, *new] if known else new))
