"""SQLite, by Python's own module."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Final

from icestream.connectors.jdbc.addresses import DatabaseAddress
from icestream.connectors.jdbc.dialects.base import (
    ColumnInfo,
    Connection,
    Dialect,
    ErrorKind,
    TableId,
    rows_of,
)

_LOCK_SECONDS: Final = 30.0
"""How long a statement waits for another writer."""
_TYPE: Final = re.compile(r"\s*([A-Za-z_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*")


class Sqlite(Dialect):
    kind = "sqlite"
    placeholder = "?"

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
