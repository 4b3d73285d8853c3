"""An append that looks at the table again at every attempt. Used by the sink's tables and by the coordinator.

PyIceberg retries a lost race by itself after a refresh and validates nothing for an append, so the check runs
in a private hook of its snapshot producers; tests/crashes/test_commit_guard.py fails when that goes away.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.exceptions import ValidationException
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.utils.properties import property_as_bool

from icestream.api.errors import CommitConflict
from icestream.connectors.iceberg.commits.manifest_lists import CopyingAppend, KeptManifestList


def guarded_append(
    transaction: Transaction,
    branch: str,
    summary: Mapping[str, str],
    refuse_moved: Callable[[TableMetadata], None],
    kept: KeptManifestList | None = None,
) -> Any:
    """PyIceberg's append with `summary`; it is refused when `refuse_moved` raises CommitConflict.

    `kept` is the list of manifests of the commit before, by the same process.
    """
    merges = property_as_bool(transaction.table_metadata.properties, "commit.manifest-merge.enabled", False)
    producer = _MergeAppendFiles if merges else CopyingAppend

    class GuardedAppend(producer):  # type: ignore[valid-type, misc]
        """An append that is refused when the table has moved."""

        def _validate_concurrency(self) -> None:
            try:
                refuse_moved(self._transaction._table.metadata)
            except CommitConflict as conflict:
                # PyIceberg does not try again after this.
                raise ValidationException(str(conflict)) from conflict

        def _clean_all_uncommitted(self) -> None:
            """PyIceberg would remove the manifests of a commit that was refused and landed all the same;
            `clean_up` is for when the table has been asked."""

        def clean_up(self) -> None:
            super()._clean_all_uncommitted()

    append = GuardedAppend(
        operation=Operation.APPEND,
        transaction=transaction,
        io=transaction._table.io,
        branch=branch,
        commit_uuid=uuid.uuid4(),
        snapshot_properties=dict(summary),
    )
    append.kept = kept or KeptManifestList()
    return append
