"""PostgreSQL: rows by COPY as CSV, which Arrow reads (docs/decisions/035-jdbc-source.md has the numbers).

A transaction that inserts holds a lock on the table from before it takes a number of its sequence until it
ends, and everybody may see locks. So whoever may still commit a row with a lower number can be waited for.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
import re
import threading
from collections.abc import Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv as csv

from icestream.api.errors import FatalError
from icestream.connectors.jdbc.dialects.base import ColumnInfo, Connection, TableId, execute, rows_of
from icestream.connectors.jdbc.source.columns import Shape, SourceColumn
from icestream.connectors.jdbc.source.databases.base import OpenTransactions, RowStream, SourceDatabase
from icestream.connectors.jdbc.source.windows import Cursors

_APPLICATION: Final = "icestream-jdbc-source"
"""Our sessions only read: they need not wait for each other."""
_SHAPES: Final = {
    "bool": Shape.BOOLEAN,
    "int2": Shape.INT16,
    "int4": Shape.INT32,
    "int8": Shape.INT64,
    "oid": Shape.INT64,
    "float4": Shape.FLOAT32,
    "float8": Shape.FLOAT64,
    "numeric": Shape.NUMERIC,
    "date": Shape.DATE,
    "time": Shape.TIME,
    "timestamp": Shape.WALL_CLOCK,
    "timestamptz": Shape.INSTANT,
    "bytea": Shape.HEX,
    **dict.fromkeys(("text", "varchar", "bpchar", "json", "uuid"), Shape.STRING),
}
_ITEMS: Final = {
    **{f"_{name}": _SHAPES[name] for name in ("bool", "int2", "int4", "int8")},
    "_float4": Shape.FLOAT32,
    "_float8": Shape.FLOAT64,
    **{f"_{name}": Shape.STRING for name in ("text", "varchar", "bpchar", "uuid", "name")},
}
_DIGITS: Final = re.compile(r"\((\d)\)")
_BLOCK_BYTES: Final = 4 * 1024 * 1024
_PIPE_BYTES: Final = 1024 * 1024
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_RELATIVES: Final = """
WITH RECURSIVE
 below(oid) AS (SELECT %s::regclass::oid
                UNION SELECT i.inhrelid FROM pg_inherits i JOIN below b ON i.inhparent = b.oid),
 above(oid) AS (SELECT %s::regclass::oid
                UNION SELECT i.inhparent FROM pg_inherits i JOIN above a ON i.inhrelid = a.oid)
SELECT oid FROM (SELECT oid FROM below UNION SELECT oid FROM above) r
WHERE (SELECT relkind IN ('r', 'p') FROM pg_class c WHERE c.oid = %s::regclass)
"""
_TRANSACTIONS: Final = """
SELECT l.virtualtransaction, bool_or(l.locktype = 'relation')
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
  AND (l.pid IS NULL OR a.datname = current_database() AND a.usesysid IS NOT NULL
       AND a.application_name <> %s)
  AND (l.locktype = 'virtualxid' OR l.locktype = 'relation'
       AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND CASE WHEN %s THEN l.relation >= 16384 ELSE l.relation = ANY(%s::oid[]) END)
GROUP BY l.virtualtransaction
"""
_RUNNING: Final = "SELECT pg_snapshot_xip(pg_current_snapshot())::text"


class PostgreSqlSource(SourceDatabase):
    def prepare(self, connection: Any, isolation: str) -> None:
        connection.autocommit = True
        for setting in (
            f"application_name TO '{_APPLICATION}'",
            "client_encoding TO 'UTF8'",
            "datestyle TO 'ISO'",
            "timezone TO 'UTC'",
            "extra_float_digits TO 1",
        ):
            execute(connection, f"SET {setting}")
        if isolation:
            level = isolation.replace("_", " ")
            execute(connection, f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")

    def column(self, info: ColumnInfo, name: str) -> SourceColumn:
        shape, select, item = _SHAPES.get(info.type_name), name, Shape.STRING
        if info.type_name in _ITEMS and info.declared.endswith("[]"):
            shape, select, item = Shape.LIST, f"array_to_json({name})", _ITEMS[info.type_name]
        elif info.type_name == "bit" and info.declared in ("bit(1)", "bit"):
            shape, select = Shape.BOOLEAN, f"({name} = B'1')"
        elif info.type_name == "money":
            shape, select = Shape.FLOAT64, f"{name}::numeric::float8"
        elif info.type_name == "timetz":
            shape, select = Shape.TIME, f"({name} AT TIME ZONE 'UTC')::time"
        elif shape is Shape.HEX:
            select = f"encode({name}, 'hex')"
        elif shape is None:
            shape, select = Shape.STRING, f"{name}::text"
        return self._sent(info, select, shape, item)

    def described(self, connection: Connection, query: str) -> list[ColumnInfo]:
        cursor = connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM ({query}) q LIMIT 0")
            columns = list(cursor.description)
        finally:
            cursor.close()
        types = dict(
            rows_of(
                connection,
                "SELECT oid, typname FROM pg_type WHERE oid = ANY(%s)",
                ([c.type_code for c in columns],),
            )
        )
        required = set(
            rows_of(
                connection,
                "SELECT attrelid, attnum::int FROM pg_attribute WHERE attnotnull AND attrelid = ANY(%s)",
                ([c.table_oid for c in columns if c.table_oid],),
            )
        )
        return [_described(column, types[column.type_code], required) for column in columns]

    def timestamp_digits(self, info: ColumnInfo) -> int:
        found = _DIGITS.search(info.declared)
        return int(found[1]) if found else 6

    def timestamp_cursor(self, names: Sequence[str], infos: Sequence[ColumnInfo]) -> Cursors:
        is_instant = any(info.type_name == "timestamptz" for info in infos)
        expression = names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"
        zone = ZoneInfo(self.options.zone)

        def literal(nanoseconds: int) -> str:
            moment = _EPOCH + dt.timedelta(microseconds=nanoseconds // 1000)
            if is_instant:
                return f"TIMESTAMPTZ '{moment:%Y-%m-%d %H:%M:%S.%f}+00'"
            return f"TIMESTAMP '{moment.astimezone(zone):%Y-%m-%d %H:%M:%S.%f}'"

        return Cursors(timestamp=expression, literal=literal, zone=dt.UTC if is_instant else zone)

    def number_cursor(self, name: str) -> str:
        return name

    def now(self, connection: Connection) -> int:
        ((now,),) = rows_of(connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(now) * 1000

    def newest(self, connection: Connection, statement: str, cursors: Cursors) -> int | None:
        ((found,),) = rows_of(connection, statement)
        if not isinstance(found, dt.datetime):
            return None if found is None else int(found)
        if found.tzinfo is None:
            found = found.replace(tzinfo=cursors.zone)
        return (found - _EPOCH) // dt.timedelta(microseconds=1) * 1000

    def quote_value(self, value: Any) -> str:
        if isinstance(value, int | float):
            return repr(value)
        text = str(value).replace("'", "''").replace("\\", "\\\\")
        return f" E'{text}'" if "\\" in text else f"'{text}'"

    def open_transactions(
        self, connection: Connection, table: TableId | None, *, by_timestamp: bool
    ) -> OpenTransactions | None:
        ((is_standby,),) = rows_of(connection, "SELECT pg_is_in_recovery()")
        if is_standby:
            # It does not know the locks of its primary, only who has written there.
            return OpenTransactions(frozenset(f"x{row[0]}" for row in rows_of(connection, _RUNNING)))
        relatives: list[int] = []
        if table is not None:
            quoted = self.dialect.quoted_table(TableId("", table.schema, table.name))
            relatives = [row[0] for row in rows_of(connection, _RELATIVES, (quoted, quoted, quoted))]
        # Who writes to the tables behind a view or a query holds locks on those, whichever they are.
        found = rows_of(connection, _TRANSACTIONS, (_APPLICATION, not relatives, relatives))
        return OpenTransactions(
            frozenset(name for name, writes in found if writes),
            frozenset(name for name, writes in found if not writes),
        )

    def stream(self, connection: Connection, statement: str, columns: Sequence[SourceColumn]) -> RowStream:
        return CopiedRows(connection, statement, columns)


def _described(column: Any, type_name: str, required: set[Any]) -> ColumnInfo:
    # psycopg2 has the limits of numbers; 65535 says that there are none.
    has_limits = type_name == "numeric" and column.precision not in (None, 65535)
    return ColumnInfo(
        column.name,
        type_name,
        f"{type_name}[]" if type_name.startswith("_") else type_name,
        (column.table_oid, column.table_column) not in required,
        column.precision if has_limits else None,
        column.scale if has_limits else None,
    )


class CopiedRows:
    """What `COPY … TO STDOUT` sends, read while it arrives. The server waits while nobody reads."""

    def __init__(self, connection: Any, statement: str, columns: Sequence[SourceColumn]) -> None:
        self._connection = connection
        self._types = {f"c{place}": column.raw for place, column in enumerate(columns)}
        self._names = [column.name for column in columns]
        self._error: BaseException | None = None
        reading, writing = os.pipe()
        self._file = io.BufferedReader(io.FileIO(reading, "rb"), _PIPE_BYTES)
        self._reader: csv.CSVStreamingReader | None = None
        self._thread = threading.Thread(
            target=self._copy, args=(writing, f"COPY ({statement}) TO STDOUT (FORMAT csv)"), daemon=True
        )
        self._thread.start()

    def read(self) -> pa.RecordBatch | None:
        try:
            if self._reader is None:
                if not self._file.peek(1):
                    self._end()
                    return None
                self._reader = self._opened()
            return self._reader.read_next_batch()
        except StopIteration:
            self._end()
            return None
        except pa.ArrowInvalid as error:
            self._raise_error()
            reason = _named(str(error).splitlines()[0], self._names)
            raise FatalError(
                f"a value cannot be read: {reason}; correct the row, or cast the column in a 'query'"
            ) from error

    def close(self) -> None:
        """A statement under way is cancelled."""
        if self._thread.is_alive():
            self._connection.cancel()
        with contextlib.suppress(OSError):
            self._file.close()
        self._thread.join()
        self._reader = None

    def _copy(self, writing: int, statement: str) -> None:
        file = os.fdopen(writing, "wb", buffering=_PIPE_BYTES)
        try:
            cursor = self._connection.cursor()
            try:
                cursor.copy_expert(statement, file, _PIPE_BYTES)
                file.flush()
            finally:
                cursor.close()
        except BaseException as error:  # raised by whoever reads
            self._error = error
        finally:
            with contextlib.suppress(OSError):
                file.close()

    def _opened(self) -> csv.CSVStreamingReader:
        return csv.open_csv(
            self._file,
            read_options=csv.ReadOptions(
                column_names=list(self._types), use_threads=False, block_size=_BLOCK_BYTES
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=self._types,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
                true_values=["t"],
                false_values=["f"],
            ),
        )

    def _end(self) -> None:
        self._thread.join()
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _named(reason: str, names: Sequence[str]) -> str:
    """Arrow counts columns."""
    return re.sub(r"column #(\d+)", lambda found: f"column '{names[int(found[1])]}'", reason)
