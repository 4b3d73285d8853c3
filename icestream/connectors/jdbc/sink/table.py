"""A table of a database as a target: rows of staging tables and the checkpoint in one transaction.

Used by the sink manager. The row of the checkpoint is locked first and compared: whoever planned on another
one is refused. So two managers, and a transaction that wakes up late, never both land.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from icestream.api.batch import Staged
from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    FatalError,
    Problem,
    RowsRefused,
    SinkUnavailable,
)
from icestream.api.offsets import Partition
from icestream.api.sink import Commit, Receipt, RowOffsets, Target, TargetAudit, layered
from icestream.connectors.jdbc.connections import Access, close, connect, database_errors
from icestream.connectors.jdbc.dialects.base import ColumnInfo, Connection, TableId, execute, rows_of
from icestream.connectors.jdbc.own_tables import STAGE
from icestream.connectors.jdbc.sink.checkpoints import CheckpointTable, Stored
from icestream.connectors.jdbc.sink.merge import Merger, RefusedRow
from icestream.connectors.jdbc.sink.new_tables import create_statement
from icestream.connectors.jdbc.sink.plans import (
    INSERT,
    KAFKA,
    NONE,
    NewTablePlan,
    RowRules,
    StagedRows,
    TablePlan,
    TargetColumn,
)
from icestream.connectors.jdbc.sink.rows import KAFKA_FIELDS
from icestream.connectors.jdbc.sink.stage import drop_stages, staged_columns, unpacked
from icestream.rows.new_columns import GrowthLimit

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_STAGE_NAME: Final = re.compile(rf"{STAGE}[0-9a-f]{{12}}_([0-9a-f]{{1,12}})_[0-9a-f]{{8}}_[0-9a-f]{{12}}")
_YOUNGEST: Final = dt.timedelta(hours=1)
"""Younger staging tables are left alone: a task that nobody waits for any more may still be at work."""


@dataclass(frozen=True)
class TableSettings:
    """What the config says of all tables of a job."""

    access: Access
    checkpoints: CheckpointTable
    rules: RowRules
    creates: bool = False
    growth: GrowthLimit | None = None
    limit: GrowthLimit = field(default_factory=GrowthLimit)
    types: tuple[str, ...] = ("TABLE",)


class Session:
    """The connection of a sink in its manager: opened when it is needed, and again after an outage."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._connection: Connection | None = None

    @contextmanager
    def used(self, doing: str) -> Iterator[Connection]:
        """A connection for one thing; what is not committed is undone."""
        connection = self._opened()
        try:
            with database_errors(self._access, doing):
                yield connection
                connection.rollback()
        except BaseException:
            self.close()
            raise

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self._access)
            try:
                with database_errors(self._access, "prepare a connection"):
                    self._access.dialect.prepare(self._connection)
            except BaseException:
                self.close()
                raise
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            close(self._access, self._connection)
            self._connection = None


class JdbcTable(Target):
    def __init__(
        self, name: str, table: TableId, job: str, settings: TableSettings, session: Session
    ) -> None:
        self.name = name
        self._table = table
        self._job = job
        self._settings = settings
        self._access = settings.access
        self._dialect = settings.access.dialect
        self._session = session
        self._refused: dict[Partition, dict[int, str]] = {}
        """Rows that the database refused in a commit that did not land."""

    # -- what is there --

    def found(self) -> FoundCheckpoint:
        with self._session.used(f"read the checkpoint of {self.name}") as connection:
            table = self._find(connection)
            if table is None:
                self._refuse_missing()
                return FoundCheckpoint(None, target=self.name, is_missing=True)
            self._refuse_engine(connection, table)
            id_ = self._dialect.table_id(connection, table)
            stored = self._stored(connection, id_)
            return FoundCheckpoint(
                stored.checkpoint if stored else None,
                target=self.name,
                target_id=id_,
                # Others may have moved the group since, such as Kafka Connect's own class.
                follows_group=stored is not None,
            )

    def _find(self, connection: Connection) -> TableId | None:
        wanted = self._table
        if not self._access.quotes_names and self._dialect.kind == "postgresql":
            wanted = TableId(*(part.lower() for part in wanted))
        return self._dialect.find(connection, wanted, self._settings.types)

    def _refuse_missing(self) -> None:
        if not self._settings.creates:
            raise ConfigError(
                [
                    Problem(
                        "auto.create",
                        f"Table '{self.name}' does not exist at {self._access.address}; create it, or set "
                        "auto.create=true.",
                    )
                ]
            )

    def _refuse_engine(self, connection: Connection, table: TableId) -> None:
        engine = self._dialect.engine_without_transactions(connection, table)
        if engine is not None:
            raise ConfigError(
                [
                    Problem(
                        "table.name.format",
                        f"Table '{self.name}' has the engine {engine}, which cannot undo a change, so rows "
                        f"could be there twice; ALTER TABLE {table.name} ENGINE=InnoDB.",
                    )
                ]
            )

    def _stored(self, connection: Connection, table_id: str, *, locks: bool = False) -> Stored | None:
        """None also if the table was dropped and created again: it has nothing of what was committed."""
        checkpoints = self._settings.checkpoints
        if not checkpoints.exists(connection):
            return None
        stored = checkpoints.load(connection, self._job, self.name, locks=locks)
        return stored if stored is not None and stored.table_id == table_id else None

    # -- how to write --

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> TablePlan | NewTablePlan:
        rules = self._settings.rules
        with self._session.used(f"read the columns of {self.name}") as connection:
            table = self._find(connection)
            if table is None:
                self._refuse_missing()
                return NewTablePlan(rules, self._settings.limit)
            found = [one for one in self._dialect.columns(connection, table) if not one.is_generated]
            keys = self._keys(connection, table, [one.name for one in found])
            stored = self._stored(connection, self._dialect.table_id(connection, table))
        columns = [TargetColumn(one, self._dialect.arrow_type(one)) for one in found]
        columns += [self._new_column(path[-1], kind) for path, kind in new_fields.items()]
        return TablePlan(
            self._access,
            table,
            tuple(columns),
            keys,
            rules,
            stage_prefix(self._job, self.name),
            self._settings.growth,
            dict(new_fields),
            _united(stored.refused if stored else {}, self._refused),
        )

    def _new_column(self, name: str, kind: pa.DataType) -> TargetColumn:
        """As the database will have it, as far as rows are concerned."""
        declared = self._dialect.sql_type(kind, is_key=False)
        type_name = _SHORT_NAMES.get(declared, declared.partition("(")[0].lower())
        if declared.endswith("[]"):
            element = declared.removesuffix("[]")
            type_name = "_" + _SHORT_NAMES.get(element, element.lower())
        info = ColumnInfo(name, type_name, declared)
        return TargetColumn(info, self._dialect.arrow_type(info))

    def _keys(self, connection: Connection, table: TableId, columns: Sequence[str]) -> tuple[str, ...]:
        keys = self._settings.rules.keys
        if keys.mode == NONE:
            return ()
        named = keys.fields or (KAFKA_FIELDS if keys.mode == KAFKA else ())
        named = tuple(named) or tuple(self._dialect.primary_key(connection, table))
        if not named:
            raise ConfigError(
                [
                    Problem(
                        "pk.fields", f"pk.fields: table '{self.name}' has no primary key; name its columns."
                    )
                ]
            )
        if missing := [one for one in named if one not in columns]:
            raise ConfigError(
                [
                    Problem(
                        "pk.fields",
                        f"pk.fields: table '{self.name}' has no column '{missing[0]}', only "
                        f"{', '.join(columns)}; correct it, or add the column.",
                    )
                ]
            )
        return named

    def create(self, fields: Mapping[tuple[str, ...], Any]) -> None:
        table = self._access.quoted_table(self._table)
        try:
            statement = create_statement(self._access, table, fields, self._settings.rules.keys)
        except ValueError as error:
            raise ConfigError(
                [Problem("pk.fields", f"Table '{self.name}' is not created: {error}.")]
            ) from None
        with self._session.used(f"create table {self.name}") as connection:
            if self._find(connection) is not None:
                _log.info("table %s was created by somebody else meanwhile", self.name)
                return
            execute(connection, statement)
            connection.commit()
        _log.info("created table %s", self.name)

    # -- the commit --

    def commit(self, commit: Commit) -> Receipt:
        self._make_room(commit.plan)
        with self._session.used(f"commit to {self.name}") as connection:
            refused = self._merged(connection, commit)
            if refused:
                connection.rollback()
                raise self._remembered(refused)
            self._end(connection)
        self._refused = {}
        self._drop_staged(commit.staged)
        return Receipt(commit.checkpoint, commit.checkpoint.commit)

    def _make_room(self, plan: TablePlan) -> None:
        """What no transaction undoes: the table of checkpoints; where it ends one, also new columns."""
        with self._session.used("create the table of checkpoints") as connection:
            self._settings.checkpoints.create(connection)
            if not self._dialect.has_transactional_ddl:
                self._add_columns(connection, plan)

    def _merged(self, connection: Connection, commit: Commit) -> list[RefusedRow]:
        """All of a commit but its end."""
        plan: TablePlan = commit.plan
        checkpoints = self._settings.checkpoints
        self._dialect.begin(connection)
        table_id = self._dialect.table_id(connection, plan.table)
        known = checkpoints.load(connection, self._job, self.name, locks=True)
        there = known if known is not None and known.table_id == table_id else None
        if (there and there.commit) != (commit.expect and commit.expect.commit):
            connection.rollback()
            raise CommitConflict(f"{self.name} has another checkpoint of the job: somebody else committed")
        # The row first: where there is none yet, the second of two that insert it waits, and is refused.
        after = Stored(commit.checkpoint.commit, table_id, commit.checkpoint, self._kept(plan, commit))
        try:
            checkpoints.store(connection, self._job, self.name, after, is_new=known is None)
        except self._dialect.errors() as error:
            if known is None and self._dialect.is_duplicate(error):
                connection.rollback()
                raise CommitConflict(
                    f"{self.name} has a first checkpoint: somebody else committed"
                ) from error
            raise
        if self._dialect.has_transactional_ddl:
            self._add_columns(connection, plan)
        merger = Merger(self._access, connection, plan, self._access.quoted_table(plan.table))
        refused: list[RefusedRow] = []
        # In the order of the tasks, each of which has the records after those of the one before.
        for staged in commit.staged.payload:
            stage = self._staged_in(connection, staged, plan)
            refused += merger.merge(staged, stage)
            if staged.content is not None:
                execute(connection, f"DROP TABLE {stage}")
        if not refused and self._dialect.has_transactional_ddl and self._dialect.stages_in_tasks:
            for staged in commit.staged.payload:
                execute(connection, f"DROP TABLE {self._access.quote(staged.table)}")
        return refused

    def _staged_in(self, connection: Connection, staged: StagedRows, plan: TablePlan) -> str:
        """The name of the table with the rows, which are put there first if the tasks could not."""
        name = self._access.quote(staged.table)
        if staged.content is not None:
            columns = staged_columns(plan, staged.columns)
            table = self._access.quoted_table(plan.table)
            self._dialect.create_stage(connection, name, table, columns, temporary=True)
            self._dialect.load(connection, name, list(columns), unpacked(staged.content))
        return name

    def _kept(self, plan: TablePlan, commit: Commit) -> dict[Partition, dict[int, str]]:
        """Refused rows of this very batch: if Kafka does not hear of it, they are told again."""
        kept: dict[Partition, dict[int, str]] = {}
        for partition, rows in plan.refused.items():
            at = commit.checkpoint.partitions.get(partition)
            mine = {offset: why for offset, why in rows.items() if at and at.start <= offset < at.next}
            if mine:
                kept[partition] = mine
        return kept

    def _add_columns(self, connection: Connection, plan: TablePlan) -> None:
        if not plan.new_fields:
            return
        there = {one.name for one in self._dialect.columns(connection, plan.table)}
        for path, kind in plan.new_fields.items():
            if path[-1] in there:
                continue
            type_ = self._dialect.sql_type(kind, is_key=False)
            table, name = self._access.quoted_table(plan.table), self._access.quote(path[-1])
            execute(connection, self._dialect.add_column(table, name, type_))
            _log.info("table %s gets column %s %s", self.name, path[-1], type_)

    def _end(self, connection: Connection) -> None:
        """From here on nobody knows, unless the database answers."""
        try:
            connection.commit()
        except self._dialect.errors() as error:
            raise CommitUnknown(
                f"the database did not answer to a commit to {self.name}: {self._dialect.told(error)}"
            ) from error

    def _remembered(self, refused: Sequence[RefusedRow]) -> RowsRefused:
        for row in refused:
            self._refused.setdefault(row.partition, {})[row.offset] = row.reason
        first = refused[0]
        return RowsRefused(
            f"{self._access.address} refuses {len(refused)} rows for {self.name}, the first of "
            f"'{first.partition.topic}', partition {first.partition.number}, offset {first.offset}: "
            f"{first.reason}"
        )

    # -- what is left over --

    def discard(self, staged: Staged) -> None:
        self._drop_staged(staged)

    def _drop_staged(self, staged: Staged) -> None:
        names = [one.table for one in staged.payload if one.content is None]
        if not names or not self._dialect.stages_in_tasks:
            return
        try:
            with self._session.used(f"drop staging tables of {self.name}") as connection:
                drop_stages(connection, self._access.quote, names)
        except (SinkUnavailable, FatalError) as error:
            _log.warning("%s; they are swept later", error)

    def sweep(self, landed: str, now: dt.datetime) -> int:
        if not self._dialect.stages_in_tasks:
            return 0
        prefix = stage_prefix(self._job, self.name)
        with self._session.used(f"sweep staging tables of {self.name}") as connection:
            old = [
                table
                for table in self._dialect.tables(connection)
                if table.name.startswith(prefix)
                and (match := _STAGE_NAME.fullmatch(table.name))
                and int(match[1], 16) < (now - _YOUNGEST).timestamp()
            ]
            for table in old:
                execute(connection, f"DROP TABLE IF EXISTS {self._access.dialect.quoted_table(table)}")
            connection.commit()
        return len(old)

    # -- verify --

    def audit(self) -> TargetAudit:
        found = self.found()
        rules = self._settings.rules
        if rules.keys.mode == KAFKA and rules.mode == INSERT:
            return TargetAudit(found, row_offsets=self._row_offsets)
        return TargetAudit(found)

    def _row_offsets(self) -> RowOffsets:
        """Of rows that have their origin as their key."""
        topic, number, offset = map(self._access.quote, self._settings.rules.keys.fields or KAFKA_FIELDS)
        layers: dict[Partition, list[BitMap64]] = {}
        with self._session.used(f"read the rows of {self.name}") as connection:
            table = self._access.quoted_table(self._find(connection) or self._table)
            for name, at in rows_of(connection, f"SELECT DISTINCT {topic}, {number} FROM {table}"):
                mark = self._dialect.placeholder
                query = f"SELECT {offset} FROM {table} WHERE {topic} = {mark} AND {number} = {mark}"
                held = np.array([row[0] for row in rows_of(connection, query, (name, at))], np.uint64)
                layers[Partition(name, at)] = layered([BitMap64(held)])
        return RowOffsets(layers)


_SHORT_NAMES: Final = {
    "BIGINT": "int8",
    "INT": "int4",
    "SMALLINT": "int2",
    "REAL": "float4",
    "DOUBLE PRECISION": "float8",
    "BOOLEAN": "bool",
    "DECIMAL": "numeric",
}
"""PostgreSQL's own, of the types that new columns get."""


def stage_prefix(job: str, target: str) -> str:
    digest = hashlib.sha256(f"{job}\0{target}".encode()).hexdigest()
    return f"{STAGE}{digest[:12]}_"


def _united(one: Mapping[Partition, Mapping[int, str]], other: Mapping[Partition, Mapping[int, str]]) -> Any:
    return {p: {**one.get(p, {}), **other.get(p, {})} for p in {**one, **other}}
