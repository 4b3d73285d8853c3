"""A write that Spark makes on a job's own branch becomes visible by one compare-and-set, with the checkpoint.

`begin` puts the branch where readers are; Spark writes to it, which nobody sees; `publish` moves what readers
see to the branch, in one commit that is refused if anybody else has committed since. Used for upserts
(`merge.py`) and for whatever else Spark rewrites. A branch that a crash left behind is replaced by the next
`begin`: what was on it was never visible, and its snapshots go with the next expiry.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from icestream.api.errors import CommitConflict, CommitUnknown, SinkUnavailable
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

_SUMMARY_SETTING: Final = "spark.sql.iceberg.snapshot-property."


def job_branch(job: str) -> str:
    """The branch of a job: one name for all its writes, of letters that every catalog takes."""
    return f"icestream_{hashlib.sha256(job.encode()).hexdigest()[:16]}"


def spark_name(*parts: str) -> str:
    """A catalog's, namespace's and table's name as Spark SQL reads them, whatever letters they have."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def summary_settings(summary: Mapping[str, str]) -> dict[str, str]:
    """Settings of a Spark session whose writes shall have this in their summary. All writes of the session
    have it: use one of its own for each."""
    return {f"{_SUMMARY_SETTING}{key}": value for key, value in summary.items()}


@dataclass(frozen=True)
class BranchWrite:
    """One write on a job's branch of a table, on its way to be `ref`, the branch that readers see."""

    catalog: Catalog
    table: str
    branch: str
    base: int
    """The snapshot that the branch began from: `ref` must still be there when it is published."""
    ref: str = MAIN_BRANCH

    @classmethod
    def begin(
        cls, catalog: Catalog, table: Table, name: str, job: str, ref: str = MAIN_BRANCH
    ) -> BranchWrite:
        """Put the job's branch where `ref` is in `table`, as it was loaded; the table must have a snapshot.

        CommitConflict: the table has moved since.
        """
        branch = job_branch(job)
        base = table.metadata.refs[ref].snapshot_id
        requirements = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            _is_at(ref, base),
        )
        with sink_errors(f"creating a branch of {name}"):
            try:
                catalog.commit_table(table, requirements, (_moved(branch, base),))
            except CommitFailedException as error:
                raise CommitConflict(f"{name}: {error}") from error
        return cls(catalog, name, branch, base, ref)

    def target(self, spark_catalog: str) -> str:
        """What Spark SQL writes to."""
        return spark_name(spark_catalog, *self.table.split("."), f"branch_{self.branch}")

    def publish(
        self,
        properties: Mapping[str, str] | None = None,
        check: Callable[[TableMetadata], None] = lambda metadata: None,
        is_ours: Callable[[Snapshot], bool] = lambda snapshot: True,
    ) -> int | None:
        """Make what was written visible, with table properties; the id of its snapshot. None: nothing was
        written.

        `check` looks at the table as it is then, and raises CommitConflict where the write has no place any
        more; `is_ours` knows the snapshots that this write made from those of a job that should be dead.
        CommitConflict: not visible. CommitUnknown: nobody knows.
        """
        with sink_errors(f"loading table {self.table}"):
            table = self.catalog.load_table(self.table)
        check(table.metadata)
        visible = table.metadata.refs.get(self.ref)
        if visible is None or visible.snapshot_id != self.base:
            raise CommitConflict(f"{self.table}: {self.ref} has moved since: somebody else committed")
        head = self._head(table.metadata, is_ours)
        if head == self.base:
            self._refuse_put_back(table.metadata, is_ours)
            return None
        updates: list[TableUpdate] = [_moved(self.ref, head, table.metadata)]
        if properties:
            updates.append(SetPropertiesUpdate(updates=dict(properties)))
        updates.append(_removed(self.branch))
        requirements = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            _is_at(self.ref, self.base),
            _is_at(self.branch, head),
        )
        try:
            with waiting_for(f"catalog: commit to {self.table}"):
                self.catalog.commit_table(table, requirements, tuple(updates))
        except Exception as error:  # whatever the catalog's client raises: the table is asked what happened
            self._refuse_unless_landed(head, error)
        return head

    def give_up(self) -> None:
        """Remove the branch: what is on it shall never be visible. If it cannot be, the next `begin` will."""
        try:
            table = self.catalog.load_table(self.table)
            if ref := table.metadata.refs.get(self.branch):
                unchanged = _is_at(self.branch, ref.snapshot_id)
                self.catalog.commit_table(table, (unchanged,), (_removed(self.branch),))
        except Exception as error:  # whatever the catalog's client raises: nothing depends on it
            _log.warning("branch %s of %s is left behind: %s", self.branch, self.table, error)

    def _head(self, metadata: TableMetadata, is_ours: Callable[[Snapshot], bool]) -> int:
        """The newest snapshot of the branch, if all that is on it follows from the base and is ours."""
        ref = metadata.refs.get(self.branch)
        if ref is None:
            raise CommitConflict(f"{self.table} has lost the branch {self.branch}: somebody else removed it")
        for snapshot in _ancestry(metadata, ref.snapshot_id):
            if snapshot.snapshot_id == self.base:
                return ref.snapshot_id
            if not is_ours(snapshot):
                raise CommitConflict(f"{self.table}: somebody else wrote to the branch {self.branch}")
        raise CommitConflict(f"{self.table}: the branch {self.branch} was put elsewhere")

    def _refuse_put_back(self, metadata: TableMetadata, is_ours: Callable[[Snapshot], bool]) -> None:
        """An empty branch is no proof that nothing was written: a manager that should be dead may have put it
        where it began, to merge its own. What was written follows from the base, on the branch or not."""
        if any(one.parent_snapshot_id == self.base and is_ours(one) for one in metadata.snapshots):
            raise CommitConflict(f"{self.table}: somebody else has put the branch {self.branch} back")

    def _refuse_unless_landed(self, head: int, error: Exception) -> None:
        refused = isinstance(error, CommitFailedException)
        if not refused:
            _log.warning("commit to %s has an unknown outcome (%s); asking the table", self.table, error)
        try:
            with sink_errors(f"loading table {self.table}"):
                metadata = self.catalog.load_table(self.table).metadata
        except SinkUnavailable as unavailable:
            raise CommitUnknown(
                f"{self.table}: a commit may have landed and the catalog does not answer: {unavailable}"
            ) from error
        visible = metadata.refs.get(self.ref)
        if visible and any(one.snapshot_id == head for one in _ancestry(metadata, visible.snapshot_id)):
            _log.info("commit to %s landed, although it was answered: %s", self.table, error)
            return
        raise CommitConflict(f"{self.table}: {error}", certain=refused) from error


def _ancestry(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    snapshot = by_id.get(snapshot_id) if snapshot_id is not None else None
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = by_id.get(parent) if parent is not None else None


def _is_at(ref: str, snapshot_id: int) -> AssertRefSnapshotId:
    return AssertRefSnapshotId.model_validate({"ref": ref, "snapshot-id": snapshot_id})


def _removed(ref: str) -> RemoveSnapshotRefUpdate:
    return RemoveSnapshotRefUpdate.model_validate({"ref-name": ref})


def _moved(ref: str, snapshot_id: int, metadata: TableMetadata | None = None) -> SetSnapshotRefUpdate:
    """A branch at another snapshot; what the table says of how long it is kept stays."""
    before = metadata.refs.get(ref) if metadata else None
    kept: dict[str, Any] = {
        "max-ref-age-ms": before.max_ref_age_ms if before else None,
        "max-snapshot-age-ms": before.max_snapshot_age_ms if before else None,
        "min-snapshots-to-keep": before.min_snapshots_to_keep if before else None,
    }
    return SetSnapshotRefUpdate.model_validate(
        {"ref-name": ref, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot_id, **kept}
    )
