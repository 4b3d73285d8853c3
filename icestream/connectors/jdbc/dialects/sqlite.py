"""The dialect of SQLite, by Python's own module. Chosen by `dialect_of` for both connectors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.connectors.jdbc.addresses import DatabaseAddress
from icestream.connectors.jdbc.dialects.base import (
    ColumnInfo,
    Connection,
    Dialect,
    ErrorKind,
    Merge,
    TableId,
    execute,
    rows_of,
)

_LOCK_SECONDS: Final = 30.0
"""How long a statement waits for another writer."""
_TYPE: Final = re.compile(r"\s*([A-Za-z_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*")


class Sqlite(Dialect):
    kind = "sqlite"
    placeholder = "?"
    stages_in_tasks = False
    lock_clause = ""
    longest_name = None
    ignores_case = True

    def connect(self, address: DatabaseAddress) -> Connection:
        connection = sqlite3.connect(address.database, timeout=_LOCK_SECONDS, check_same_thread=False)
        # Transactions are begun by whoever wants one: the module's own way commits before some statements.
        connection.isolation_level = None
        return connection

    def errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    def kind_of(self, error: Exception) -> ErrorKind:
        # Bits above the lowest eight tell more of the same.
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH):
            return ErrorKind.REFUSED_ROW
        passing = (
            *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
            *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM),
        )
        return ErrorKind.RETRIABLE if code in passing else ErrorKind.FATAL

    def tables(
        self,
        connection: Connection,
        catalog: str | None = None,
        schema: str | None = None,
        types: Sequence[str] = ("TABLE",),
    ) -> list[TableId]:
        kinds = sorted({one.lower() for one in types if one in ("TABLE", "VIEW")})
        found = rows_of(
            connection,
            f"SELECT name FROM sqlite_master WHERE type IN ({', '.join('?' * len(kinds))}) "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
            kinds,
        )
        return [TableId("", "", name) for (name,) in found]

    def columns(self, connection: Connection, table: TableId) -> list[ColumnInfo]:
        found = rows_of(
            connection,
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
            (table.name,),
        )
        alone = sum(1 for row in found if row[4]) == 1
        return [
            _column(name, declared, bool(not_null), default, is_key=bool(key), alone=alone, hidden=hidden)
            for name, declared, not_null, default, key, hidden in found
        ]

    def primary_key(self, connection: Connection, table: TableId) -> list[str]:
        found = rows_of(
            connection, "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table.name,)
        )
        return [str(row[0]) for row in found]

    def find(
        self, connection: Connection, table: TableId, types: Sequence[str] = ("TABLE", "PARTITIONED TABLE")
    ) -> TableId | None:
        """In any case: so does SQLite itself."""
        known = {one.name.lower(): one for one in self.tables(connection, types=types)}
        return known.get(table.name.lower())

    # -- the sink's part --

    def is_duplicate(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.IntegrityError)

    def begin(self, connection: Connection) -> None:
        """With the write lock at once: one that is taken later may be refused."""
        execute(connection, "BEGIN IMMEDIATE")

    def arrow_type(self, column: ColumnInfo) -> pa.DataType:
        """By SQLite's own rules of affinity; moments, days and times are numbers, as in Java."""
        name = column.type_name.upper()
        if "INT" in name:
            return pa.int64()
        if "BOOL" in name:
            return pa.bool_()
        if "CHAR" in name or "CLOB" in name or "TEXT" in name:
            return pa.string()
        if "BLOB" in name:
            return pa.binary()
        if "REAL" in name or "FLOA" in name or "DOUB" in name:
            return pa.float64()
        if name.startswith(("TIMESTAMP", "DATETIME")):
            return pa.timestamp("ms", "UTC")
        return pa.date32() if name == "DATE" else pa.time64("us") if name == "TIME" else pa.string()

    def sql_type(self, kind: pa.DataType, *, is_key: bool) -> str:
        if pt.is_integer(kind):
            return "INTEGER"
        if pt.is_boolean(kind):
            return "BOOLEAN"
        if pt.is_floating(kind):
            return "REAL"
        if pt.is_binary(kind):
            return "BLOB"
        if pt.is_timestamp(kind):
            return "TIMESTAMP"
        if pt.is_date(kind):
            return "DATE"
        return "TIME" if pt.is_time(kind) else "NUMERIC" if pt.is_decimal(kind) else "TEXT"

    def create_stage(
        self,
        connection: Connection,
        stage: str,
        table: str,
        columns: Mapping[str, str | None],
        *,
        temporary: bool,
    ) -> None:
        own = "__icestream_seq INTEGER PRIMARY KEY, __icestream_kind, __icestream_source, __icestream_offset"
        execute(connection, f"CREATE TEMPORARY TABLE {stage} ({', '.join([own, *columns])})")

    def load(self, connection: Connection, stage: str, columns: Sequence[str], rows: pa.Table) -> None:
        held = ", ".join("?" * rows.num_columns)
        values = [_for_sqlite(column) for column in rows.itercolumns()]
        cursor = connection.cursor()
        try:
            cursor.executemany(f"INSERT INTO {stage} VALUES ({held})", zip(*values, strict=True))
        finally:
            cursor.close()

    def delete(self, merge: Merge) -> str:
        same = " AND ".join(f"{merge.table}.{one} = s.{one}" for one in merge.keys)
        there = f"SELECT 1 FROM {merge.stage} s WHERE {same} AND {merge.where}"
        return f"DELETE FROM {merge.table} WHERE EXISTS ({there})"


def _for_sqlite(column: pa.ChunkedArray) -> list[Any]:
    """As its module takes them; moments are milliseconds since 1970, as of Java's driver."""
    kind = column.type
    if pt.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    elif pt.is_date(kind):
        column = column.cast(pa.timestamp("ms")).cast(pa.int64())
    elif pt.is_time(kind):
        column = column.cast(pa.time32("ms"), safe=False).cast(pa.int32())
    elif pt.is_decimal(kind):
        column = column.cast(pa.string())
    held: list[Any] = column.to_pylist()
    return held


def _column(
    name: str, declared: str, not_null: bool, default: object, *, is_key: bool, alone: bool, hidden: int
) -> ColumnInfo:
    match = _TYPE.fullmatch(declared)
    type_name, first, second = match.groups() if match else (declared, None, None)
    is_rowid = is_key and alone and declared.upper() == "INTEGER"
    is_text = any(word in type_name.upper() for word in ("CHAR", "CLOB", "TEXT", "BINARY", "BLOB"))
    return ColumnInfo(
        name,
        type_name.lower(),
        declared,
        is_nullable=not (not_null or is_rowid),
        precision=int(first) if first and not is_text else None,
        scale=int(second) if second and not is_text else None,
        length=int(first) if first and is_text else None,
        has_default=default is not None or is_rowid,
        is_generated=hidden in (2, 3),
        is_auto_increment=is_rowid,
    )
