"""The Delta side of a job: what its table says; one commit with files, offsets and transactions.

`commit` is a compare-and-set: one handle of the table is checked and committed through. delta-rs refuses a
commit if another one with the job's transaction has come since the handle was opened; it never compares
versions of transactions, so the check on the handle is ours.
"""

from __future__ import annotations

import datetime as dt
import logging
import posixpath
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from icestream.api.batch import Staged
from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    Problem,
    SinkUnavailable,
)
from icestream.api.history import TableCommit
from icestream.api.sink import Commit, Receipt, Target, TargetAudit
from icestream.connectors.delta.audit import audit
from icestream.connectors.delta.commits.actions import add_action, add_new_columns, words_about
from icestream.connectors.delta.commits.finder import RETENTION, Finder, JobState
from icestream.connectors.delta.commits.history import last_commits
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.commits.log_checkpoint import LogCheckpoints
from icestream.connectors.delta.commits.marks import key_of, mark_of, transactions
from icestream.connectors.delta.commits.sweep import file_prefix, sweep
from icestream.connectors.delta.files.live import live_files
from icestream.connectors.delta.files.stage import TablePlan
from icestream.connectors.delta.new_table import WITHOUT_HOOKS, NewTable
from icestream.connectors.delta.opening import KeptTable, delta_errors, open_table
from icestream.connectors.delta.protocol import unfit
from icestream.connectors.delta.schemas import (
    arrow_schema,
    grown,
    same,
)
from icestream.connectors.delta.storage import Storage, file_path, told
from icestream.connectors.delta.upserts.changes import read_changes
from icestream.connectors.delta.upserts.merge import Merge, Merged
from icestream.connectors.delta.upserts.unfit import refuse_unfit_for_upserts
from icestream.rows.any_case import ambiguous_columns, folded, folded_paths
from icestream.rows.new_columns import GrowthLimit, Path
from icestream.rows.record_shape import WHOLE, one_table
from icestream.rows.schema_drift import limited_to
from icestream.tables.kafka_columns import columns_of, with_columns_of
from icestream.tables.plans import NewFields, NewTablePlan
from icestream.tables.stale_commits import refuse_other_commit, refuse_other_offsets
from icestream.tables.upserts.changes import StagedChanges, UpsertPlan
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

_MERGES: Final = 3
"""So often changes are merged, if others commit meanwhile; then the batch runs again."""
_ATTEMPTS: Final = 10
"""Of one commit, if others change the table meanwhile in ways that it does not mind."""


@dataclass(frozen=True)
class TableOptions:
    """How a config has one table written."""

    location: str
    storage: Storage
    write_props: Mapping[str, str]
    growth: GrowthLimit | None = None
    """How many columns a batch may add; None: none."""
    new_table: NewTable | None = None
    """How it is created if it is missing; None: not at all."""
    limit: GrowthLimit = field(default_factory=GrowthLimit)
    force_optional: bool = False
    kafka_columns: Sequence[str] = ()
    any_case: bool = False
    """Whether names of fields match those of columns whatever their case."""
    texts: Collection[Path] = ()
    """Fields that become text, whatever they hold."""
    id_columns: Sequence[str] = ()
    upserts: UpsertPlan | None = None
    """None: every record is a row of its own."""


class DeltaSinkTable(Target):
    """One table as one job sees it."""

    def __init__(self, name: str, job: str, options: TableOptions) -> None:
        self.name = name
        self._job = job
        self._options = options
        self._kept = KeptTable(name, options.location, options.storage)
        self._log = TableLog.of(options.location, options.storage)
        self._finder = Finder(job, self._log)
        self._log_checkpoints = LogCheckpoints(self._log)

    # -- what it says --

    def found(self) -> FoundCheckpoint:
        """What the table says of the job, read anew."""
        table = self._opened()
        if table is None:
            if self._options.new_table is None:
                raise self._missing()
            return FoundCheckpoint(None, target=self.name, is_missing=True)
        state = self._state(table)
        return replace(state.found, target=self.name, target_id=str(table.metadata().id))

    def commits(self, most: int) -> Sequence[TableCommit]:
        with delta_errors(f"reading the log of {self.name}"):
            version = self._there().version()
            return last_commits(self._log, version, self.name, key_of(self._job), most)

    def audit(self) -> TargetAudit:
        found = self.found()
        if self._options.upserts is not None:
            # A change may replace a row, remove one, or come to nothing: rows prove nothing of changes.
            return TargetAudit(found)
        return audit(self._there(), found, key_of(self._job), self._options.location, self._options.storage)

    def _state(self, table: DeltaTable) -> JobState:
        with delta_errors(f"reading the log of {self.name}"):
            return self._finder.find(table)

    # -- how to write --

    def plan(self, new_fields: NewFields) -> TablePlan | NewTablePlan:
        """How to write files for the table as it is, or as it will be with new fields."""
        options = self._options
        table = self._kept.table or self._opened()
        if table is None:
            if options.new_table is None:
                raise self._missing()
            return NewTablePlan(self.name, options.limit, options.force_optional, options.texts)
        self._refuse_unfit(table)
        if options.upserts is not None:
            refuse_unfit_for_upserts(self.name, table, options.upserts.ids)
        schema_json = table.schema().to_json()
        schema = arrow_schema(schema_json)
        if options.any_case:
            self._refuse_ambiguous(schema)
            new_fields = folded_paths(new_fields)
        if options.growth is not None:
            # Each task kept to the limit by itself; together they may be beyond it.
            new_fields = limited_to(schema, new_fields, options.growth)
        new_fields = {**new_fields, **self._lacking_kafka_columns(schema)}
        metadata = table.metadata()
        return TablePlan(
            name=self.name,
            location=options.location,
            table_id=str(metadata.id),
            schema_json=grown(schema_json, new_fields),
            partition_columns=tuple(metadata.partition_columns),
            properties={**metadata.configuration, **options.write_props},
            storage=options.storage,
            file_prefix=file_prefix(self._job, str(metadata.id)),
            new_fields=new_fields,
            growth=options.growth,
            force_optional=options.force_optional,
            kafka_columns=options.kafka_columns,
            any_case=options.any_case,
            texts=options.texts,
            always_required=frozenset(one.partition(".")[0] for one in options.id_columns),
            upserts=options.upserts,
        )

    def create(self, fields: NewFields) -> None:
        options = self._options
        assert options.new_table is not None
        kind = folded(fields[WHOLE]) if options.any_case else fields[WHOLE]
        record = one_table(kind, options.limit.any_case)
        record = with_columns_of(record, options.kafka_columns)
        options.new_table.create(self.name, options.location, options.storage, record)

    def _lacking_kafka_columns(self, schema: pa.Schema) -> NewFields:
        wanted = columns_of(self._options.kafka_columns)
        lacking = {path: kind for path, kind in wanted.items() if path[0] not in schema.names}
        if lacking and self._options.growth is None:
            names = ", ".join(path[0] for path in lacking)
            raise self._problem(
                "icestream.delta.kafka-columns",
                f"lacks {names}, which icestream.delta.kafka-columns asks for; add them, or set "
                "delta.tables.evolve-schema-enabled=true",
            )
        return lacking

    def _refuse_unfit(self, table: DeltaTable) -> None:
        if (why := unfit(table)) is not None:
            raise self._problem("delta.tables", f"cannot be written: {why}; change the table, or another")

    def _refuse_ambiguous(self, schema: pa.Schema) -> None:
        if (both := ambiguous_columns(schema)) is not None:
            key = "delta.tables.schema-case-insensitive"
            raise self._problem(
                key,
                f"has the columns {both}, which differ in their case alone; rename one, or set {key}=false",
            )

    def _missing(self) -> ConfigError:
        return self._problem(
            "delta.tables",
            f"is not at {self._options.location}; create it first, or set "
            "delta.tables.auto-create-enabled=true",
        )

    def _problem(self, key: str, what: str) -> ConfigError:
        return ConfigError([Problem(key, f"Table '{self.name}' {what}.")])

    # -- the commit --

    def commit(self, commit: Commit) -> Receipt:
        """Make staged files visible, with the checkpoint. CommitConflict: nothing landed, plan again."""
        plan: TablePlan = commit.plan
        if plan.upserts is not None:
            return self._upsert(plan.upserts, commit)
        actions = [add_action(file, plan) for file in commit.staged.payload]
        for attempt in range(1, _ATTEMPTS + 1):
            table = self._grown(self._there(), commit)
            state = self._state(table)
            self._refuse_moved(table, state.found, commit)
            try:
                self._send(table, state, commit, actions)
            except (DeltaError, OSError) as error:
                if self._landed(table, commit, error, is_last=attempt == _ATTEMPTS):
                    break
            else:
                break
        self._after_commit()
        sizes = [file.size for file in commit.staged.payload]
        return Receipt(commit.checkpoint, commit.checkpoint.commit, sizes)

    def _upsert(self, upserts: UpsertPlan, commit: Commit) -> Receipt:
        """Merge staged changes, and make the outcome visible if nobody at all has committed since the merge
        began; else the same changes are merged again."""
        plan: TablePlan = commit.plan
        for attempt in range(1, _MERGES + 1):
            table = self._grown(self._there(), commit)
            state = self._state(table)
            self._refuse_moved(table, state.found, commit)
            merged = self._merged(table, upserts, commit)
            now = time.time_ns() // 1_000_000
            actions: list[AddAction | RemoveAction] = [
                *(add_action(file, plan) for file in merged.added),
                *(RemoveAction(one.path, True, now, one.size, dict(one.partition)) for one in merged.removed),
            ]
            try:
                self._send(table, state, commit, actions, retries=0)
            except (DeltaError, OSError) as error:
                if self._landed(table, commit, error, is_last=attempt == _MERGES):
                    break
                _log.info("%s has moved, its changes are merged again: %s", self.name, told(error))
                self._remove(file.path for file in merged.added)
            else:
                break
        self._remove(one.path for one in commit.staged.payload if one.path)
        self._after_commit()
        sizes = [file.size for file in merged.added]
        return Receipt(commit.checkpoint, commit.checkpoint.commit, sizes)

    def _merged(self, table: DeltaTable, upserts: UpsertPlan, commit: Commit) -> Merged:
        plan: TablePlan = commit.plan
        staged: Sequence[StagedChanges] = commit.staged.payload
        where = (self.name, plan.location, plan.storage)
        changes = read_changes(staged, plan.arrow_schema, upserts.ids, *where)
        with delta_errors(f"reading the files of {self.name}"):
            files = live_files(table, plan.arrow_schema)
        truncates = any(one.truncates for one in staged)
        return Merge(plan, upserts.ids, changes, truncates, commit.checkpoint.commit).run(files)

    def _send(
        self,
        table: DeltaTable,
        state: JobState,
        commit: Commit,
        actions: Sequence[AddAction | RemoveAction],
        retries: int | None = None,
    ) -> None:
        """With `retries` 0 it lands on the version of the handle, or not at all."""
        key = key_of(self._job)
        now = time.time_ns() // 1_000_000
        before = state.found.lost or state.found.checkpoint or state.found.rolled_back_from
        forgets = RETENTION in table.metadata().configuration
        held = transactions(key, commit.checkpoint, before, every=forgets)
        if table.version() != state.version:
            raise CommitConflict(f"{self.name} was opened anew between the check and the commit")
        with waiting_for(f"storage: commit to {self.name}"):
            table.create_write_transaction(
                list(actions),
                "append",
                table.schema(),
                table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    custom_metadata={key: mark_of(commit.checkpoint), **words_about(commit)},
                    max_commit_retries=retries,
                    app_transactions=[
                        Transaction(key, state.sequence + 1, now),
                        *(Transaction(id_, version, now) for id_, version in held.items()),
                    ],
                ),
                post_commithook_properties=WITHOUT_HOOKS,
            )

    def _landed(self, table: DeltaTable, commit: Commit, error: Exception, *, is_last: bool) -> bool:
        """Ask the table whether a commit landed after all; False: it did not, and may be tried again.

        Any error may hide one that landed: the client of the storage repeats a request, and is refused for
        what the first one did.
        """
        _log.info("commit to %s is answered: %s; asking the table", self.name, told(error))
        try:
            after = self._opened()
            state = self._state(after) if after is not None else None
        except SinkUnavailable as unavailable:
            raise CommitUnknown(
                f"{self.name}: a commit may have landed and the storage does not answer: {unavailable}"
            ) from error
        found = state.found if state is not None else FoundCheckpoint(None)
        last = found.lost or found.checkpoint
        ours = commit.checkpoint
        if ours.commit in (last and last.commit, found.lost_commit):
            _log.info("commit to %s landed, although it was answered: %s", self.name, told(error))
            return True
        if not isinstance(error, CommitFailedError):
            # A request on its way could still arrive. So its files stay.
            raise CommitConflict(
                f"{self.name}: the commit did not land: {told(error)}", certain=False
            ) from error
        is_before = (last.commit if last else None) == (commit.expect_lost or ours.previous)
        if is_last or not is_before:
            raise CommitConflict(f"{self.name}: {told(error)}", certain=is_before) from error
        return False

    def _refuse_moved(self, table: DeltaTable, found: FoundCheckpoint, commit: Commit) -> None:
        """The job's offsets and the table's shape must be what they were when the batch was planned."""
        plan: TablePlan = commit.plan
        metadata = table.metadata()
        if (str(metadata.id), tuple(metadata.partition_columns)) != (plan.table_id, plan.partition_columns):
            raise CommitConflict(f"{self.name} was created anew while a batch was written")
        refuse_other_offsets(self.name, found, commit)
        if unfit(table) is not None or not same(table.schema().to_json(), plan.schema_json):
            raise CommitConflict(f"the schema of {self.name} changed while a batch was written")

    def _grown(self, table: DeltaTable, commit: Commit) -> DeltaTable:
        """The table with the columns that the plan adds: a commit before that of the rows, which may be
        repeated and does no harm alone."""
        plan: TablePlan = commit.plan
        if not plan.new_fields or str(table.metadata().id) != plan.table_id:
            return table
        before = table.schema().to_json()
        if not same(grown(before, plan.new_fields), plan.schema_json):
            raise CommitConflict(f"the schema of {self.name} changed while a batch was written")
        if same(before, plan.schema_json):
            return table
        refuse_other_commit(self.name, self._state(table).found, commit)
        add_new_columns(table, plan, self._there)
        return self._there()

    def _after_commit(self) -> None:
        """It has landed whatever becomes of this."""
        try:
            table = self._opened()
            if table is not None:
                self._log_checkpoints.after_commit(self.name, table)
        except SinkUnavailable as error:
            _log.warning("the log of %s is left as it is: %s", self.name, error)

    # -- what is left over --

    def discard(self, staged: Staged) -> None:
        """Delete staged files that were certainly not committed."""
        self._remove(file.path for file in staged.payload if file.path)

    def _remove(self, paths: Iterable[str]) -> None:
        options = self._options
        files = options.storage.file_system(options.location)
        for path in paths:
            try:
                files.delete_file(posixpath.join(file_path(options.location), path))
            except OSError as error:
                _log.warning("staged file %s is left behind: %s", path, told(error))

    def sweep(self, landed: str, now: dt.datetime) -> int:
        """Remove files of the job's batches that died, and tell how many; `landed` is its last commit.

        For a thread of its own: it may take long, and what others know of the table stays as it is.
        """
        options = self._options
        table = open_table(self.name, options.location, options.storage)
        if table is None:
            return 0
        with delta_errors(f"sweeping {self.name}"):
            return sweep(table, options.location, options.storage, self._job, landed, now)

    # -- the table --

    def _opened(self) -> DeltaTable | None:
        return self._kept.now()

    def _there(self) -> DeltaTable:
        table = self._opened()
        if table is None:
            raise self._missing()
        return table
