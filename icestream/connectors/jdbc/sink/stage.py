"""Rows into staging tables, inside of a task: one table for all rows with the same columns, in a transaction
that ends with the task. Used by `writer`.

The columns of a staging table have the types of the table that the rows are for, so what does not fit is
refused here, where each such row can still be told by itself.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from icestream.api.offsets import Partition
from icestream.connectors.jdbc.connections import close, connect, database_errors
from icestream.connectors.jdbc.dialects.base import OWN_COLUMNS, Connection, ErrorKind, execute
from icestream.connectors.jdbc.sink.plans import DELETE, StagedRows, TablePlan
from icestream.records.origins import RowOrigins
from icestream.records.rows import Indexes

_SAVEPOINT = "icestream_load"


def stage_name(prefix: str, batch: str, now: float) -> str:
    """`sweep` knows by it whose it is, and how old."""
    return f"{prefix}{int(now):x}_{batch.replace('-', '')[:8]}_{uuid.uuid4().hex[:12]}"


@dataclass
class _Stage:
    name: str
    columns: tuple[str, ...]
    rows: int = 0
    has_deletes: bool = False
    partitions: dict[Partition, int] = field(default_factory=dict)
    pieces: list[pa.Table] = field(default_factory=list)
    """Of a database that takes rows only from one process."""


class TableStage:
    """What one task stages for one table."""

    def __init__(self, plan: TablePlan, batch: str, *, stages: bool) -> None:
        self._plan = plan
        self._batch = batch
        self._stages = stages
        self._connection: Connection | None = None
        self._held: list[_Stage] = []
        self._sequence = 0
        self._is_committed = False

    def add(self, rows: pa.Table, kinds: Indexes, origins: RowOrigins) -> Mapping[int, str]:
        """Stage rows in their order; the positions of those that the database refuses, with the reason."""
        if not rows.num_rows or not (self._stages or self._plan.access.dialect.stages_in_tasks):
            return {}
        stage = self._stage_for(tuple(rows.column_names))
        numbers = np.arange(self._sequence, self._sequence + rows.num_rows)
        self._sequence += rows.num_rows
        codes = np.array([stage.partitions.setdefault(p, len(stage.partitions)) for p in origins.partitions])
        own = (
            pa.array(numbers, pa.int64()),
            pa.array(kinds, pa.int16()),
            pa.array(codes[origins.codes], pa.int32()),
            pa.array(origins.offsets, pa.int64()),
        )
        staged = pa.table([*own, *rows.itercolumns()], names=[*OWN_COLUMNS, *rows.column_names])
        refused: dict[int, str] = {}
        if self._plan.access.dialect.stages_in_tasks:
            refused = dict(self._load(stage, staged))
        else:
            stage.pieces.append(staged)
        stage.rows += rows.num_rows - len(refused)
        stage.has_deletes |= bool((kinds == DELETE).any())
        return refused

    def _stage_for(self, columns: tuple[str, ...]) -> _Stage:
        """The last one, if it has the same columns: rows of one key keep their order."""
        if self._held and self._held[-1].columns == columns:
            return self._held[-1]
        stage = _Stage(stage_name(self._plan.stage_prefix, self._batch, time.time()), columns)
        access = self._plan.access
        if access.dialect.stages_in_tasks:
            with database_errors(access, f"create a staging table for {self._plan.table}"):
                access.dialect.create_stage(
                    self._opened(),
                    access.quote(stage.name),
                    access.quoted_table(self._plan.table),
                    staged_columns(self._plan, columns),
                    temporary=not self._stages,
                )
        self._held.append(stage)
        return stage

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self._plan.access)
            with database_errors(self._plan.access, "prepare a connection"):
                self._plan.access.dialect.prepare(self._connection)
                self._plan.access.dialect.begin(self._connection)
        return self._connection

    def _load(self, stage: _Stage, rows: pa.Table) -> Iterator[tuple[int, str]]:
        with database_errors(self._plan.access, f"stage rows for {self._plan.table}"):
            yield from self._loaded(stage, rows, 0)

    def _loaded(self, stage: _Stage, rows: pa.Table, at: int) -> Iterator[tuple[int, str]]:
        dialect, quote = self._plan.access.dialect, self._plan.access.quote
        connection = self._opened()
        execute(connection, f"SAVEPOINT {_SAVEPOINT}")
        try:
            dialect.load(connection, quote(stage.name), [quote(name) for name in stage.columns], rows)
        except dialect.errors() as error:
            if dialect.kind_of(error) is not ErrorKind.REFUSED_ROW:
                raise
            execute(connection, f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            if rows.num_rows == 1:
                yield at, dialect.told(error)
                return
        else:
            execute(connection, f"RELEASE SAVEPOINT {_SAVEPOINT}")
            return
        half = rows.num_rows // 2
        yield from self._loaded(stage, rows.slice(0, half), at)
        yield from self._loaded(stage, rows.slice(half), at + half)

    def close(self) -> Sequence[StagedRows]:
        """What is staged; it stays when the process ends."""
        if self._connection is not None:
            with database_errors(self._plan.access, f"stage rows for {self._plan.table}"):
                self._connection.commit() if self._stages else self._connection.rollback()
            self._is_committed = self._stages
            close(self._plan.access, self._connection)
            self._connection = None
        if not self._stages:
            return ()
        return [
            StagedRows(
                stage.name,
                stage.rows,
                stage.columns,
                list(stage.partitions),
                stage.has_deletes,
                content=_packed(stage.pieces) if stage.pieces else None,
            )
            for stage in self._held
        ]

    def discard(self) -> None:
        """Undo it all, as far as the database lets us: what stays is swept."""
        access = self._plan.access
        with suppress(Exception):  # a database that is away may have been the reason
            if self._connection is not None:
                self._connection.rollback()
            if self._stages and access.dialect.stages_in_tasks and self._held:
                drop_stages(self._opened(), access.quote, [stage.name for stage in self._held])
        if self._connection is not None:
            close(access, self._connection)
            self._connection = None
        self._held.clear()


def staged_columns(plan: TablePlan, columns: Sequence[str]) -> dict[str, str | None]:
    """Quoted, with the type of those that the table is still to get."""
    new = {path[-1] for path in plan.new_fields}
    declared = {column.name: column.info.declared for column in plan.columns if column.name in new}
    return {plan.access.quote(name): declared.get(name) for name in columns}


def drop_stages(connection: Connection, quote: Callable[[str], str], names: Sequence[str]) -> None:
    for name in names:
        execute(connection, f"DROP TABLE IF EXISTS {quote(name)}")
    connection.commit()


def _packed(pieces: Sequence[pa.Table]) -> bytes:
    sink = pa.BufferOutputStream()
    whole = pa.concat_tables(pieces)
    with pa.ipc.new_stream(sink, whole.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(whole)
    return bytes(sink.getvalue())


def unpacked(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()
