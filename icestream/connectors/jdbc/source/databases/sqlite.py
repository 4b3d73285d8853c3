"""SQLite, by Python's own module. It has one writer at a time, so numbers that it gives are committed in
their order; for timestamps it is asked whether somebody writes just now."""

from __future__ import annotations

import datetime as dt
import sqlite3
import time
from collections.abc import Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from icestream.connectors.jdbc.dialects.base import ColumnInfo, Connection, TableId, execute, rows_of
from icestream.connectors.jdbc.source.columns import WHOLE, Shape, SourceColumn
from icestream.connectors.jdbc.source.databases.base import (
    FetchedRows,
    OpenTransactions,
    RowStream,
    SourceDatabase,
)
from icestream.connectors.jdbc.source.windows import Cursors

_SHAPES: Final = {
    **dict.fromkeys(("int", "integer", "mediumint", "int4"), Shape.INT64),
    **dict.fromkeys(("tinyint",), Shape.INT8),
    **dict.fromkeys(("smallint", "int2"), Shape.INT16),
    **dict.fromkeys(("bigint", "int8", "unsigned big int"), Shape.INT64),
    **dict.fromkeys(("real", "float", "double", "double precision"), Shape.FLOAT64),
    **dict.fromkeys(("boolean", "bool"), Shape.BOOLEAN),
    **dict.fromkeys(("blob", "binary", "varbinary", ""), Shape.BYTES),
    **dict.fromkeys(("timestamp", "datetime"), Shape.WALL_CLOCK),
    "date": Shape.DATE,
    "numeric": Shape.NUMERIC,
    "decimal": Shape.DECIMAL,
}
_INSTANT: Final = "icestream_instant"
_EPOCH: Final = dt.datetime(1970, 1, 1)
_WAIT_MS: Final = 1000
_DAYS_TO_1970: Final = 2440587.5


class SqliteSource(SourceDatabase):
    # Numbers are milliseconds since 1970, as Java's driver has them.
    time_shapes = frozenset({Shape.INSTANT, *WHOLE})

    def prepare(self, connection: Any, isolation: str) -> None:
        connection.create_function(_INSTANT, 1, self._instant, deterministic=True)
        if isolation == "READ_UNCOMMITTED":
            execute(connection, "PRAGMA read_uncommitted = true")

    def column(self, info: ColumnInfo, name: str) -> SourceColumn:
        shape, select = _SHAPES.get(info.type_name, Shape.STRING), name
        if shape is Shape.WALL_CLOCK:
            shape, select = Shape.INSTANT, f"{self._moment(name)} * 1000"
        elif shape is Shape.DATE:
            select = f"CAST(floor({_milliseconds(name)} / 86400000.0) AS INTEGER)"
        elif shape is Shape.BOOLEAN:
            select = f"{name} <> 0"
        elif shape in (Shape.DECIMAL, Shape.NUMERIC):
            select = f"CAST({name} AS TEXT)"
        elif shape is Shape.FLOAT64:
            select = f"CAST({name} AS REAL)"
        elif shape is Shape.STRING:
            select = f"CAST({name} AS TEXT)"
        elif shape is Shape.BYTES:
            select = f"CAST({name} AS BLOB)"
        return self._sent(info, select, shape)

    def _moment(self, name: str) -> str:
        """In UTC: only texts are of a wall clock, that of `db.timezone`."""
        return _milliseconds(name, "" if self.options.zone == "UTC" else _INSTANT)

    def _instant(self, milliseconds: int | None) -> int | None:
        if milliseconds is None:
            return None
        clock = _EPOCH + dt.timedelta(milliseconds=milliseconds)
        shown = clock.replace(tzinfo=ZoneInfo(self.options.zone))
        return (shown - _EPOCH.replace(tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)

    def described(self, connection: Connection, query: str) -> list[ColumnInfo]:
        """By a view of this connection only: SQLite tells of its columns what it tells of a table's."""
        execute(connection, "DROP VIEW IF EXISTS temp.icestream_query")
        execute(connection, f"CREATE TEMP VIEW icestream_query AS {query}")
        try:
            return self.dialect.columns(connection, TableId("", "", "icestream_query"))
        finally:
            execute(connection, "DROP VIEW temp.icestream_query")

    def timestamp_digits(self, info: ColumnInfo) -> int:
        return 0  # those of CURRENT_TIMESTAMP

    def timestamp_cursor(self, names: Sequence[str], infos: Sequence[ColumnInfo]) -> Cursors:
        expressions = [self._moment(name) for name in names]
        expression = expressions[0] if len(names) == 1 else f"COALESCE({', '.join(expressions)})"
        zone = ZoneInfo(self.options.zone)
        return Cursors(
            timestamp=expression, literal=lambda nanoseconds: str(nanoseconds // 1_000_000), zone=zone
        )

    def number_cursor(self, name: str) -> str:
        return name

    def now(self, connection: Connection) -> int:
        return time.time_ns()  # it runs on this machine

    def newest(self, connection: Connection, statement: str, cursors: Cursors) -> int | None:
        ((found,),) = rows_of(connection, statement)
        if found is None:
            return None
        return int(found) * 1_000_000 if cursors.timestamp is not None else int(found)

    def quote_value(self, value: Any) -> str:
        return repr(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"

    def open_transactions(
        self, connection: Connection, table: TableId | None, *, by_timestamp: bool
    ) -> OpenTransactions | None:
        if not by_timestamp:
            return OpenTransactions()
        execute(connection, f"PRAGMA busy_timeout = {_WAIT_MS}")
        try:
            execute(connection, "BEGIN IMMEDIATE")
            execute(connection, "ROLLBACK")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
                return OpenTransactions()
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            return OpenTransactions(frozenset({"writer"}))
        return OpenTransactions()

    def stream(self, connection: Connection, statement: str, columns: Sequence[SourceColumn]) -> RowStream:
        cursor = connection.cursor()
        cursor.execute(statement)
        return FetchedRows(cursor, columns)


def _milliseconds(name: str, of_text: str = "") -> str:
    """A timestamp in any of SQLite's forms (text, milliseconds, days of the Julian calendar), in milliseconds
    since 1970. `of_text` is a function for those of texts."""
    text = (
        f"CAST(strftime('%s', {name}) AS INTEGER) * 1000 + CAST(substr(strftime('%f', {name}), 4) AS INTEGER)"
    )
    julian = f"CAST(round(({name} - {_DAYS_TO_1970}) * 86400000) AS INTEGER)"
    return (
        f"(CASE typeof({name}) WHEN 'text' THEN {of_text}({text}) WHEN 'real' THEN {julian} ELSE {name} END)"
    )
