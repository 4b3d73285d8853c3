"""The commit of a table that gets upserts: one MERGE INTO of Spark, published by a compare-and-set with the
checkpoint. Called by `table`; docs/exactly-once.md tells what happens when something dies in between.

1. What the table lacks is added: new columns, merge-on-read, a first snapshot. Nobody sees a row by that.
2. The job's branch is put where readers are, and Spark merges the staged changes there.
3. Readers see it all at once, with the checkpoint, or nothing if anybody else has committed since: then the
   same changes are merged again.
4. The staged changes are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg import types as it
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from icestream.api.connector import SparkCatalog
from icestream.api.errors import CommitConflict, ConfigError, FatalError, Problem
from icestream.api.queries import Query, SparkQueries
from icestream.api.sink import Commit, Receipt
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits import checkpoints
from icestream.connectors.iceberg.commits.checkpoint_text import TableCheckpoint, property_text, summary_text
from icestream.connectors.iceberg.files.stage import TablePlan
from icestream.connectors.iceberg.upserts.branch_publish import BranchWrite, summary_settings
from icestream.connectors.iceberg.upserts.merge import VIEW, ReadChanges, merge_statement, view_columns
from icestream.tables.upserts.changes import OWN_COLUMNS, StagedChanges, UpsertPlan

_log = logging.getLogger(__name__)

COMMIT_ID: Final = "kafka.connect.commit-id"
COMMIT_SECONDS: Final = 3600.0
_ATTEMPTS: Final = 3
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_CASE_SENSITIVE: Final = "spark.sql.caseSensitive"
"""As Iceberg and our records are: otherwise a table with columns `a` and `A`, which one record suffices to
make, can never be merged into again."""
_BYTES_A_PART: Final = 64 * 1024 * 1024
_MERGE_MODE: Final = "write.merge.mode"
_NOT_AN_ID: Final = (it.FloatType, it.DoubleType, it.StructType, it.ListType, it.MapType)


@dataclass(frozen=True)
class Upserts:
    """What a table that gets upserts is told of them by the config."""

    ids: Sequence[str]
    """Empty: the identifier fields of the table."""
    cdc_field: str | None
    spark_catalog: SparkCatalog
    queries: SparkQueries | None
    """None: nobody is going to commit rows."""
    any_case: bool = False
    """Whether names of columns match whatever their case."""

    def plan(self, name: str, metadata: TableMetadata) -> UpsertPlan:
        """How records become changes of this table; ConfigError if it can have none."""
        schema = metadata.schema()
        ids = tuple(self._column(one, schema) for one in self.ids) or tuple(
            sorted(schema.find_column_name(one) or "" for one in schema.identifier_field_ids)
        )
        problems = [Problem("iceberg.tables", why) for why in _unfit(name, metadata, schema, ids)]
        if problems:
            raise ConfigError(problems)
        return UpsertPlan(ids, self.cdc_field)

    def _column(self, name: str, schema: Schema) -> str:
        if not self.any_case:
            return name
        try:
            found = schema.find_field(name, case_sensitive=False)
        except ValueError:
            return name
        return schema.find_column_name(found.field_id) or name


def _unfit(name: str, metadata: TableMetadata, schema: Schema, ids: Sequence[str]) -> list[str]:
    found = []
    if metadata.format_version != 2:
        found.append(
            f"Table '{name}' has format-version {metadata.format_version}, and upserts need 2; set the "
            "table's property format-version, or create it anew with it."
        )
    if not ids:
        found.append(
            f"Table '{name}' has no identifier fields, and upserts need them; set "
            f"iceberg.table.{name}.id-columns or iceberg.tables.default-id-columns."
        )
    for one in ids:
        try:
            kind = schema.find_type(one)
        except ValueError:
            found.append(f"Table '{name}' has no column '{one}', which id-columns names; correct it.")
            continue
        if isinstance(kind, _NOT_AN_ID):
            found.append(
                f"Column '{one}' of table '{name}' is a {kind}, which cannot identify a row; name another."
            )
    if own := sorted(OWN_COLUMNS.intersection(field.name for field in schema.fields)):
        found.append(
            f"Table '{name}' has a column '{own[0]}', a name that upserts need themselves; rename it."
        )
    try:
        view_columns(schema)
    except ValueError as error:
        found.append(
            f"Table '{name}' has a column of type {error}, which Spark's MERGE cannot write; remove it."
        )
    return found


@dataclass(frozen=True)
class UpsertCommit:
    """One commit of changes to a table."""

    catalog: Catalog
    name: str
    job: str
    ref: str
    """The branch that readers see."""
    upserts: Upserts
    commit: Commit
    summary: Mapping[str, str]
    load: Callable[[], Table]
    check: Callable[[TableMetadata], None]
    """Raises CommitConflict if the job is elsewhere by now."""
    grown: Callable[[Table], Transaction]
    """The table with the columns that the batch adds."""

    def run(self) -> Receipt | None:
        """None: there was nothing to merge, and nothing is committed."""
        for left in reversed(range(_ATTEMPTS)):
            table = self.load()
            self.check(table.metadata)
            try:
                return self._attempt(table)
            except CommitConflict as conflict:
                if not left or not conflict.certain:
                    raise
                _log.info("%s has moved, its changes are merged again: %s", self.name, conflict)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, table: Table) -> Receipt | None:
        plan: TablePlan = self.commit.plan
        table = self._prepared(table)
        if table.schema().model_dump_json() != plan.schema_json:
            raise CommitConflict(f"the schema of {self.name} changed while a batch was written")
        stored = TableCheckpoint.of(self.commit.checkpoint, table.metadata)
        key = checkpoints.key_of(self.job)
        write = BranchWrite.begin(self.catalog, table, self.name, self.job, self.ref)
        self._merge(write, table, {**self.summary, key: summary_text(stored)})
        snapshot = write.publish({key: property_text(stored)}, self.check, self._is_ours)
        if snapshot is None:
            write.give_up()
            return None
        return Receipt(stored, snapshot)

    def _prepared(self, table: Table) -> Table:
        """The table with all that the merge needs of it."""
        plan: TablePlan = self.commit.plan
        metadata = table.metadata
        has_columns = metadata.schema().model_dump_json() == plan.schema_json
        transaction = self.grown(table) if plan.new_fields and not has_columns else table.transaction()
        with sink_errors(f"preparing {self.name} for upserts"):
            try:
                if _MERGE_MODE not in metadata.properties:
                    mode = plan.properties.get(_MERGE_MODE, "merge-on-read")
                    transaction.set_properties({_MERGE_MODE: mode})
                if self.ref not in metadata.refs:
                    with transaction.update_snapshot(branch=self.ref).fast_append():
                        pass  # a branch begins at a snapshot
                # Without changes nothing is sent.
                transaction.commit_transaction()
            except CommitFailedException as error:
                raise CommitConflict(f"{self.name}: {error}") from error
        return self.load()

    def _merge(self, write: BranchWrite, table: Table, summary: Mapping[str, str]) -> None:
        queries, catalog = self.upserts.queries, self.upserts.spark_catalog
        plan: TablePlan = self.commit.plan
        if queries is None or plan.upserts is None:
            raise FatalError(
                f"{self.name} gets upserts, and this job runs without Spark; nothing was committed"
            )
        schema, base = table.schema(), table.metadata.snapshot_by_id(write.base)
        files: Sequence[StagedChanges] = self.commit.staged.payload
        read = ReadChanges(files, plan.location, plan.io_properties, self.name)
        statement = merge_statement(
            write.target(catalog.name),
            schema,
            plan.upserts.ids,
            several=len(read.paths) > 1,
            truncates=read.truncates,
        )

        def work(query: Query) -> None:
            query.view(VIEW, view_columns(schema), max(1, len(read.paths)), read)
            query.run(statement)

        settings = {
            **summary_settings(summary),
            _SHUFFLE_PARTITIONS: str(_shuffle_partitions(base)),
            _CASE_SENSITIVE: "true",
        }
        queries.work(catalog, settings, work, f"merging changes into {self.name}")

    def _is_ours(self, snapshot: Snapshot) -> bool:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        return summary.get(COMMIT_ID) == self.commit.checkpoint.commit


def _shuffle_partitions(base: Snapshot | None) -> int:
    """Into how many parts Spark sorts the keys of a table. Its own 200 cost a small table a second."""
    summary = base.summary.additional_properties if base and base.summary else {}
    return min(2_000, 4 + int(summary.get("total-files-size", 0)) // _BYTES_A_PART)
