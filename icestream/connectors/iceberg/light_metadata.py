"""Commits whose cost does not grow with a table's history, as far as PyIceberg lets us. Used by `table.py`.

PyIceberg copies all metadata, each snapshot down to its strings, whenever a transaction is asked for it: 17
times a commit. docs/decisions/009-checkpoint.md has the figures; tests fail when the private parts are gone.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry
from pyiceberg.table.update import (
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
)

_T = TypeVar("_T")


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


def _itself(self: _T, memo: dict[int, Any] | None = None) -> _T:
    return self
