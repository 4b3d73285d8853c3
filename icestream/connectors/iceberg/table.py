"""The Iceberg side of a job: what its table says; one commit with rows, offsets and new columns.

`commit` is a compare-and-set: it lands only if the offsets in the table are still those that the batch
started from. PyIceberg retries a lost race by itself after a refresh, so the check has to run at every
attempt.
"""

from __future__ import annotations

import datetime as dt
import functools
import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationException,
)
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of
from pyroaring import BitMap64

from icestream.api.batch import Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    FatalError,
    Problem,
    SinkUnavailable,
)
from icestream.api.history import TableCommit
from icestream.api.offsets import Partition
from icestream.api.sink import Commit, Receipt, RowOffsets, Target, TargetAudit, layered
from icestream.connectors.iceberg.catalogs.aws_login import runs_out
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.catalogs.remote_signing import carried_properties, is_signed
from icestream.connectors.iceberg.commits import checkpoints
from icestream.connectors.iceberg.commits.checkpoint_text import TableCheckpoint, property_text, summary_text
from icestream.connectors.iceberg.commits.guarded_append import guarded_append
from icestream.connectors.iceberg.commits.history import last_commits
from icestream.connectors.iceberg.commits.light_metadata import LightTransaction, share_history
from icestream.connectors.iceberg.commits.manifest_lists import KeptManifestList
from icestream.connectors.iceberg.commits.sweep import file_prefix, sweep
from icestream.connectors.iceberg.files.stage import TablePlan, data_file
from icestream.connectors.iceberg.new_table import NewTable
from icestream.connectors.iceberg.schemas import arrow_schema, change_fields
from icestream.connectors.iceberg.upserts.commit import UpsertCommit, Upserts
from icestream.connectors.iceberg.write_properties import (
    manifest_problems,
    property_problems,
    taken_properties,
)
from icestream.rows.any_case import ambiguous_columns, folded, folded_paths
from icestream.rows.new_columns import GrowthLimit, Path
from icestream.rows.record_shape import WHOLE, one_table
from icestream.rows.schema_drift import limited_to
from icestream.tables.file_origins import Origins
from icestream.tables.kafka_columns import columns_of, with_columns_of
from icestream.tables.plans import NewFields, NewTablePlan
from icestream.tables.stale_commits import refuse_other_offsets
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

REJECTED = "icestream.rejected-offsets"
FILTERED_BY = "icestream.filtered-by"
_MOST_REJECTED = 200


class IcebergTable(Target):
    """One table as one job sees it."""

    def __init__(
        self,
        catalog: Catalog,
        name: str,
        job: str,
        *,
        branch: str = MAIN_BRANCH,
        write_props: Mapping[str, str],
        growth: GrowthLimit | None = None,
        new_table: NewTable | None = None,
        limit: GrowthLimit | None = None,
        force_optional: bool = False,
        upserts: Upserts | None = None,
        kafka_columns: Sequence[str] = (),
        any_case: bool = False,
        texts: Collection[Path] = (),
        group: str = "",
    ) -> None:
        share_history()
        self._group = group or f"connect-{job}"
        self._catalog = catalog
        self._job = job
        self._branch = branch
        self._write_props = dict(write_props)
        self._growth = growth
        """How many columns a batch may add; None: none."""
        self._new_table = new_table
        """How it is created if it is missing; None: not at all."""
        self._limit = limit or GrowthLimit()
        self._force_optional = force_optional
        self._upserts = upserts
        """None: every record is a row of its own."""
        self._kafka_columns = kafka_columns
        self._any_case = any_case
        """Whether names of fields match those of columns whatever their case."""
        self._texts = texts
        """Fields that become text, whatever they hold."""
        self.name = name
        self._table: Table | None = None
        self._manifest_list = KeptManifestList()

    @property
    def id(self) -> uuid.UUID | None:
        """Iceberg's own id of the table, once it was loaded."""
        return self._table.metadata.table_uuid if self._table else None

    def found(self) -> FoundCheckpoint:
        """What the table says of the job, read anew."""
        if self._is_missing():
            return FoundCheckpoint(None, target=self.name, is_missing=True)
        metadata = (self._table if self._new_table and self._table else self._loaded()).metadata
        found = checkpoints.find(metadata, self._job, self._branch)
        return replace(
            found,
            target=self.name,
            target_id=str(metadata.table_uuid),
            follows_group=checkpoints.has_java_since(metadata, self._job, self._branch, self._group),
        )

    def create(self, fields: NewFields) -> None:
        assert self._new_table is not None
        record = one_table(folded(fields[WHOLE]) if self._any_case else fields[WHOLE])
        record = with_columns_of(record, self._kafka_columns)
        self._new_table.create(self._catalog, self.name, record)

    def plan(self, new_fields: NewFields) -> TablePlan | NewTablePlan:
        """How to write files for the table as it is, or as it will be with new fields."""
        if self._table is None and self._is_missing():
            return NewTablePlan(self.name, self._limit, self._force_optional, self._texts)
        table = self._table or self._loaded()
        # A token for the signing service does not tell its end; the catalog renews one that is too old.
        if runs_out(table.io.properties, dt.datetime.now(dt.UTC)) or is_signed(table.io.properties):
            table = self._loaded()
        if self._any_case:
            self._refuse_ambiguous(table)
            new_fields = folded_paths(new_fields)
        if self._growth is not None:
            # Each task kept to the limit by itself; together they may be beyond it.
            new_fields = limited_to(arrow_schema(table.schema()), new_fields, self._growth)
        new_fields = {**new_fields, **self._lacking_kafka_columns(table)}
        metadata = self._grown(table, new_fields).table_metadata if new_fields else table.metadata
        properties = {**metadata.properties, **self._write_props}
        self._refuse_bad_properties(properties, metadata.properties)
        return TablePlan(
            name=self.name,
            location=metadata.location,
            schema_json=metadata.schema().model_dump_json(),
            spec_json=metadata.spec().model_dump_json(),
            properties=taken_properties(properties),
            io_properties=carried_properties(table.io),
            file_prefix=file_prefix(self._job, metadata.table_uuid),
            new_fields=new_fields,
            growth=self._growth,
            force_optional=self._force_optional,
            upserts=self._upserts.plan(self.name, metadata) if self._upserts else None,
            kafka_columns=self._kafka_columns,
            any_case=self._any_case,
            texts=self._texts,
        )

    def _refuse_ambiguous(self, table: Table) -> None:
        if (both := ambiguous_columns(arrow_schema(table.schema()))) is not None:
            key = "iceberg.tables.schema-case-insensitive"
            raise ConfigError(
                [
                    Problem(
                        key,
                        f"Table '{self.name}' has the columns {both}, which differ in their case alone; "
                        f"rename one, or set {key}=false.",
                    )
                ]
            )

    def _lacking_kafka_columns(self, table: Table) -> NewFields:
        wanted = columns_of(self._kafka_columns)
        lacking = {path: kind for path, kind in wanted.items() if path[0] not in table.schema().column_names}
        if lacking and self._growth is None:
            names = ", ".join(path[0] for path in lacking)
            raise ConfigError(
                [
                    Problem(
                        "icestream.iceberg.kafka-columns",
                        f"Table '{self.name}' lacks {names}, which icestream.iceberg.kafka-columns asks for; "
                        "add them, or set iceberg.tables.evolve-schema-enabled=true.",
                    )
                ]
            )
        return lacking

    def _refuse_bad_properties(self, properties: Mapping[str, str], of_table: Mapping[str, str]) -> None:
        problems = [
            Problem(
                "iceberg.tables",
                f"Table '{self.name}' has {key}: {why}, or set iceberg.tables.write-props.{key} here.",
            )
            for key, why in property_problems(properties)
        ]
        problems += [
            Problem("iceberg.tables", f"Table '{self.name}' has {key}: {why}.")
            for key, why in manifest_problems(of_table)
        ]
        if problems:
            raise ConfigError(problems)

    def commit(self, commit: Commit) -> Receipt:
        """Make staged files visible, with the checkpoint. CommitConflict: nothing landed, plan again."""
        if self._branch != MAIN_BRANCH:
            self._begin_branch()
        if self._upserts:
            return self._upsert(self._upserts, commit)
        return self._append_files(commit, commit.staged.payload)

    def _begin_branch(self) -> None:
        """Create a branch that is missing where the main branch is; an empty table gets an empty snapshot for
        it to begin at."""
        table = self._loaded()
        if self._branch in table.metadata.refs:
            return
        try:
            with sink_errors(f"creating branch {self._branch} of {self.name}"):
                if table.metadata.current_snapshot() is None:
                    with table.transaction() as transaction, transaction.update_snapshot().fast_append():
                        pass
                head = table.metadata.current_snapshot()
                assert head is not None
                table.manage_snapshots().create_branch(head.snapshot_id, self._branch).commit()
        except CommitFailedException as error:
            raise CommitConflict(f"{self.name}: {error}") from error

    def _append_files(self, commit: Commit, files: Sequence[Any]) -> Receipt:
        plan: TablePlan = commit.plan
        table = self._loaded()
        self._refuse_moved(table.metadata, commit)
        transaction = self._grown(table, plan.new_fields)
        if transaction.table_metadata.schema().model_dump_json() != plan.schema_json:
            raise CommitConflict(f"the schema of {self.name} changed while a batch was written")
        stored = TableCheckpoint.of(commit.checkpoint, table.metadata)
        key = checkpoints.key_of(self._job)
        transaction.set_properties({key: property_text(stored)})
        summary = {**_summary(commit), key: summary_text(stored)}
        append = guarded_append(
            transaction,
            self._branch,
            summary,
            lambda metadata: self._refuse_moved(metadata, commit),
            self._manifest_list,
        )
        for file in files:
            append.append_data_file(data_file(file))
        with sink_errors(f"writing manifests of {self.name}"):
            append.commit()
        receipt = self._send(transaction, append, stored)
        return replace(receipt, file_bytes=[file.size for file in files])

    def _upsert(self, upserts: Upserts, commit: Commit) -> Receipt:
        """Merge staged changes; where nothing changes, only the checkpoint is committed."""
        plan: TablePlan = commit.plan
        receipt: Receipt | None = None
        if commit.staged.payload:
            receipt = UpsertCommit(
                self._catalog,
                self.name,
                self._job,
                self._branch,
                upserts,
                commit,
                _summary(commit),
                self._loaded,
                lambda metadata: self._refuse_moved(metadata, commit),
                lambda table: self._grown(table, plan.new_fields),
            ).run()
            self._table = None
        receipt = receipt or self._append_files(commit, ())
        try:
            self.discard(commit.staged)
        except SinkUnavailable as error:  # it has landed all the same, and they are swept later
            _log.warning("staged changes of %s are left behind: %s", self.name, error)
        return receipt

    def _send(self, transaction: Transaction, append: Any, checkpoint: Checkpoint) -> Receipt:
        try:
            with waiting_for(f"catalog: commit to {self.name}"):
                self._table = transaction.commit_transaction()
        except Exception as error:  # whatever the catalog's client raises: the table is asked what happened
            self._table = None
            refused = isinstance(error, (CommitFailedException, ValidationException))
            return self._outcome(append, checkpoint, error, refused=refused)
        return Receipt(checkpoint, append.snapshot_id)

    def _outcome(self, append: Any, checkpoint: Checkpoint, error: Exception, *, refused: bool) -> Receipt:
        """Ask the table whether a commit landed after all. Nothing is deleted before it has answered.

        A refusal is no proof: a proxy that repeats a request gets one for the request that it repeats.
        """
        if not refused:
            _log.warning("commit to %s has an unknown outcome (%s); asking the table", self.name, error)
        try:
            metadata = self._loaded().metadata
        except SinkUnavailable as unavailable:
            raise CommitUnknown(
                f"{self.name}: a commit may have landed and the catalog does not answer: {unavailable}"
            ) from error
        found = checkpoints.find(metadata, self._job, self._branch).checkpoint
        if metadata.snapshot_by_id(append.snapshot_id) is not None or (
            found and found.commit == checkpoint.commit
        ):
            _log.info("commit to %s landed, although it was answered: %s", self.name, error)
            return Receipt(checkpoint, append.snapshot_id)
        # What the job has in the table now must follow from what it had before, or ours may be in between.
        is_before = (found.commit if found else None) == checkpoint.previous
        is_beside = found is not None and found.previous == checkpoint.previous
        if refused and (is_before or is_beside):
            append.clean_up()
            raise CommitConflict(f"{self.name}: {error}") from error
        # Not certain: a request on its way could still arrive. So its files stay.
        raise CommitConflict(f"{self.name}: the commit did not land: {error}", certain=False) from error

    def discard(self, staged: Staged) -> None:
        """Delete staged files that were certainly not committed."""
        io = self._loaded().io
        for file in staged.payload:
            if not file.path:
                continue
            try:
                io.delete(file.path)
            except OSError as error:
                _log.warning("staged file %s is left behind: %s", file.path, error)

    def sweep(self, landed: str, now: dt.datetime) -> int:
        """Remove files of the job's batches that died, and tell how many; `landed` is its last commit.

        For a thread of its own: it may take long, and what others know of the table stays as it is.
        """
        with sink_errors(f"sweeping {self.name}"):
            table = self._catalog.load_table(self.name)
            usual = f"{table.metadata.location.rstrip('/')}/data"
            given = {**table.metadata.properties, **self._write_props}.get(TableProperties.WRITE_DATA_PATH)
            return sweep(table, (given or usual).rstrip("/"), self._job, landed, now)

    def commits(self, most: int) -> Sequence[TableCommit]:
        return last_commits(self._loaded().metadata, self.name, checkpoints.key_of(self._job), most)

    def audit(self) -> TargetAudit:
        found = self.found()
        table = self._table or self._loaded()
        if self._upserts or _has_changes(table, checkpoints.key_of(self._job)):
            # A change may replace a row, remove one, or come to nothing: rows prove nothing of changes.
            return TargetAudit(found)
        snapshot = checkpoints.head_of(table.metadata, self._branch)
        summary = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
        return TargetAudit(
            found,
            int(summary.get("total-records", 0)) - int(summary.get("total-position-deletes", 0)),
            _has_other_writers(table, checkpoints.key_of(self._job), snapshot),
            functools.partial(_row_offsets, table, snapshot),
        )

    def _is_missing(self) -> bool:
        """Whether it does not exist, and may be created; if it exists, it is loaded."""
        if self._new_table is None:
            return False
        with sink_errors(f"loading table {self.name}"):
            try:
                self._table = self._catalog.load_table(self.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                self._table = None
        return self._table is None

    def _loaded(self) -> Table:
        with sink_errors(f"loading table {self.name}"):
            try:
                self._table = self._catalog.load_table(self.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                raise ConfigError(
                    [
                        Problem(
                            "iceberg.tables",
                            f"Table '{self.name}' is not in catalog '{self._catalog.name}'; create it first.",
                        )
                    ]
                ) from None
        return self._table

    def _grown(self, table: Table, new_fields: NewFields) -> Transaction:
        transaction = LightTransaction(table)
        if new_fields:
            try:
                with transaction.update_schema() as update:
                    change_fields(update, table.metadata.schema(), new_fields)
            except ValueError as error:
                wanted = ", ".join(".".join(path) for path in new_fields)
                raise FatalError(
                    f"{self.name} cannot get the columns {wanted}: {error}; add them by hand, "
                    "or set iceberg.tables.evolve-schema-enabled=false"
                ) from error
        return transaction

    def _refuse_moved(self, metadata: TableMetadata, commit: Commit) -> None:
        """The job's offsets and the partition spec must be what they were when the batch was planned."""
        if metadata.spec().model_dump_json() != commit.plan.spec_json:
            raise CommitConflict(f"the partition spec of {self.name} changed while a batch was written")
        found = checkpoints.find(metadata, self._job, self._branch)
        refuse_other_offsets(self.name, found, commit)


def _summary(commit: Commit) -> dict[str, str]:
    """Iceberg's own keys for Kafka Connect commits, the offsets that were rejected if they are few, and how
    many records each transform dropped."""
    said = {"kafka.connect.commit-id": commit.checkpoint.commit}
    if commit.valid_through is not None:
        said["kafka.connect.valid-through-ts"] = commit.valid_through.isoformat().replace("+00:00", "Z")
    rejected, dropped = commit.result.rejected, commit.result.dropped
    if rejected and len(rejected) <= _MOST_REJECTED:
        said[REJECTED] = ",".join(f"{record.partition}:{record.offset}" for record in rejected)
    if dropped:
        said[FILTERED_BY] = ",".join(f"{alias}:{count}" for alias, count in sorted(dropped.items()))
    return said


def _has_other_writers(table: Table, key: str, head: Snapshot | None) -> bool:
    """Whether any other job or engine has changed the rows of this table, as far as its history tells."""
    return any(
        snapshot.summary is not None
        and key not in snapshot.summary.additional_properties
        and snapshot.summary.operation.value != "replace"
        for snapshot in ancestors_of(head, table.metadata)
    )


def _has_changes(table: Table, key: str) -> bool:
    """Whether the job has ever merged changes into this table, as far as its history tells."""
    return any(
        snapshot.summary is not None
        and key in snapshot.summary.additional_properties
        and snapshot.summary.operation in (Operation.OVERWRITE, Operation.DELETE)
        for snapshot in table.metadata.snapshots
    )


def _row_offsets(table: Table, head: Snapshot | None) -> RowOffsets:
    """From the footer of every live data file."""
    found: dict[Partition, list[BitMap64]] = {}
    foreign = 0
    for task in table.scan(snapshot_id=head.snapshot_id).plan_files() if head is not None else ():
        with table.io.new_input(task.file.file_path).open() as stream:
            origins = Origins.from_footer(pq.read_metadata(stream))
        if origins is None:
            foreign += task.file.record_count
            continue
        foreign += origins.unknown_rows
        for partition, layers in origins.layers.items():
            found[partition] = layered([*found.get(partition, []), *layers])
    return RowOffsets(found, foreign)
