"""Staged rows into the table that they are for, inside of a transaction: one statement for all, and halves of
halves where the database refuses some, until each of those is known by itself. Called by `table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from icestream.api.errors import SinkUnavailable
from icestream.api.offsets import Partition
from icestream.connectors.jdbc.connections import Access
from icestream.connectors.jdbc.dialects.base import Connection, Dialect, ErrorKind, Merge, execute, rows_of
from icestream.connectors.jdbc.sink.plans import (
    DELETE,
    INSERT,
    KIND,
    OFFSET,
    PUT,
    SEQUENCE,
    SOURCE,
    UPDATE,
    StagedRows,
    TablePlan,
)

_RANK: Final = "__icestream_rank"
_GONE: Final = "__icestream_gone"
_SAVEPOINT: Final = "icestream_merge"
_MOST_REFUSED: Final = 2_000
"""More are found when the batch runs again without these."""


@dataclass(frozen=True)
class RefusedRow:
    partition: Partition
    offset: int
    reason: str


@dataclass(frozen=True)
class Merger:
    """Merges into one table."""

    access: Access
    connection: Connection
    plan: TablePlan
    quoted: str
    """The table's name."""

    @property
    def _dialect(self) -> Dialect:
        return self.access.dialect

    def merge(self, staged: StagedRows, stage: str) -> list[RefusedRow]:
        """All rows of a stage, or the rows that the database refuses: then nothing must be committed."""
        query = f"SELECT COUNT(*), MIN({SEQUENCE}), MAX({SEQUENCE}) FROM {stage}"
        ((count, low, high),) = rows_of(self.connection, query)
        if int(count) != staged.rows:
            # Of a table that is not logged, a database that crashed or failed over keeps only the name.
            raise SinkUnavailable(
                f"{stage} has {count} of the {staged.rows} rows that were staged for {self.plan.table}"
            )
        if not count:
            return []
        return list(islice(self._merged(staged, stage, int(low), int(high), whole=True), _MOST_REFUSED))

    def _merged(
        self, staged: StagedRows, stage: str, low: int, high: int, *, whole: bool = False
    ) -> Iterator[RefusedRow]:
        execute(self.connection, f"SAVEPOINT {_SAVEPOINT}")
        dialect = self._dialect
        try:
            for statement in self.statements(staged, stage, None if whole else (low, high)):
                execute(self.connection, statement)
        except dialect.errors() as error:
            if dialect.kind_of(error) is not ErrorKind.REFUSED_ROW:
                raise
            execute(self.connection, f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            if low == high:
                yield self._refused(staged, stage, low, dialect.told(error))
                return
        else:
            execute(self.connection, f"RELEASE SAVEPOINT {_SAVEPOINT}")
            return
        if whole:
            dialect.index_stage(self.connection, stage)
        middle = (low + high) // 2
        yield from self._merged(staged, stage, low, middle)
        yield from self._merged(staged, stage, middle + 1, high)

    def _refused(self, staged: StagedRows, stage: str, at: int, reason: str) -> RefusedRow:
        query = f"SELECT {SOURCE}, {OFFSET} FROM {stage} WHERE {SEQUENCE} = {at}"
        ((source, offset),) = rows_of(self.connection, query)
        return RefusedRow(staged.partitions[int(source)], int(offset), reason)

    def statements(self, staged: StagedRows, stage: str, between: tuple[int, int] | None) -> Sequence[str]:
        """The newest row of each key counts; rows before a deletion of their key are gone with it."""
        quote = self.access.quote
        rules = self.plan.rules
        columns = [quote(name) for name in staged.columns]
        keys = [quote(name) for name in self.plan.keys]
        part = f" WHERE {SEQUENCE} BETWEEN {between[0]} AND {between[1]}" if between else ""
        rows = f"{stage}" if not part else f"(SELECT * FROM {stage}{part})"
        if rules.mode != INSERT:
            rank = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(keys)} ORDER BY {SEQUENCE} DESC) AS {_RANK}"
            source = f"(SELECT x.*, {rank} FROM {stage} x{part})"
            puts = f"s.{KIND} = {PUT} AND s.{_RANK} = 1"
            deletes = f"s.{KIND} = {DELETE} AND s.{_RANK} = 1"
        elif staged.has_deletes:
            last = f"MAX(CASE WHEN {KIND} = {DELETE} THEN {SEQUENCE} ELSE -1 END)"
            source = (
                f"(SELECT x.*, {last} OVER (PARTITION BY {', '.join(keys)}) AS {_GONE} FROM {stage} x{part})"
            )
            puts = f"s.{KIND} = {PUT} AND s.{SEQUENCE} > s.{_GONE}"
            deletes = f"s.{KIND} = {DELETE}"
        else:
            source, puts, deletes = rows, f"s.{KIND} = {PUT}", ""
        put = Merge(self.quoted, source, columns, keys, puts)
        said = []
        if staged.has_deletes:
            said.append(self._dialect.delete(Merge(self.quoted, source, keys, keys, deletes)))
        if rules.mode == INSERT:
            said.append(self._dialect.insert(put))
        elif rules.mode == UPDATE:
            said += [self._dialect.update(put)] if put.others else []
        else:
            said.append(self._dialect.upsert(put))
        return said
