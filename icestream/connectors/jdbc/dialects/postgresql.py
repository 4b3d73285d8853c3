"""The dialect of PostgreSQL, by psycopg2. Chosen by `dialect_of` for both connectors."""

from __future__ import annotations

import io
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
    kinds_of,
    rows_of,
)
from icestream.connectors.jdbc.dialects.csv_text import csv_text

_KINDS: Final = {
    "TABLE": "r",
    "PARTITIONED TABLE": "p",
    "VIEW": "v",
    "MATERIALIZED VIEW": "m",
    "FOREIGN TABLE": "f",
}
_NOT_TABLES_OF_USERS: Final = (
    "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'"
)
_COLUMNS: Final = """
SELECT a.attname, COALESCE(b.typname, t.typname), format_type(a.atttypid, a.atttypmod),
       NOT (a.attnotnull OR t.typnotnull),
       information_schema._pg_numeric_precision(COALESCE(b.oid, t.oid), m.typmod),
       information_schema._pg_numeric_scale(COALESCE(b.oid, t.oid), m.typmod),
       information_schema._pg_char_max_length(COALESCE(b.oid, t.oid), m.typmod),
       a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL,
       a.attgenerated <> '' OR a.attidentity = 'a',
       a.attidentity <> '' OR COALESCE(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%%', false)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
CROSS JOIN LATERAL (SELECT CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS typmod) m
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_PRIMARY_KEY: Final = """
SELECT a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, place)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE i.indisprimary AND n.nspname = %s AND c.relname = %s ORDER BY k.place
"""
_MOMENT: Final = pa.timestamp("us", "UTC")
_ARROW: Final[Mapping[str, pa.DataType]] = {
    "int2": pa.int32(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bool": pa.bool_(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": _MOMENT,
    "timestamptz": _MOMENT,
}
"""All others are texts, which the server reads."""


class PostgreSql(Dialect):
    kind = "postgresql"

    def connect(self, address: DatabaseAddress) -> Connection:
        import psycopg2

        connection: Connection = psycopg2.connect(
            host=",".join(host for host, _ in address.hosts),
            port=",".join(str(port) for _, port in address.hosts),
            dbname=address.database or address.user,
            user=address.user or None,
            password=address.password or None,
            **address.parameters,
        )
        return connection

    def errors(self) -> tuple[type[Exception], ...]:
        import psycopg2

        return (psycopg2.Error,)

    def kind_of(self, error: Exception) -> ErrorKind:
        import psycopg2

        state = getattr(error, "pgcode", None) or ""
        if state.startswith("28"):
            return ErrorKind.LOGIN
        if not state:
            return _kind_without_state(error)
        # Besides: a row or a key that is too long, JSON that is too deep, a trigger's own word.
        if state[:2] in ("22", "23") or state in ("44000", "54000", "54001", "P0001"):
            return ErrorKind.REFUSED_ROW
        is_passing = state[:2] in ("08", "40", "53", "57", "58") or state in ("55P03", "55006", "25006")
        return (
            ErrorKind.RETRIABLE
            if is_passing or isinstance(error, psycopg2.InterfaceError)
            else ErrorKind.FATAL
        )

    def tables(
        self,
        connection: Connection,
        catalog: str | None = None,
        schema: str | None = None,
        types: Sequence[str] = ("TABLE",),
    ) -> list[TableId]:
        kinds = kinds_of(types, _KINDS)
        found = rows_of(
            connection,
            "SELECT current_database(), n.nspname, c.relname FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE {_NOT_TABLES_OF_USERS} AND c.relkind = ANY(%s) AND n.nspname LIKE %s "
            "AND current_database() LIKE %s AND NOT pg_is_other_temp_schema(n.oid) "
            "ORDER BY n.nspname, c.relname",
            (kinds, "%" if schema is None else schema, "%" if catalog is None else catalog),
        )
        return [TableId(*row) for row in found]

    def columns(self, connection: Connection, table: TableId) -> list[ColumnInfo]:
        return [ColumnInfo(*row) for row in rows_of(connection, _COLUMNS, (table.schema, table.name))]

    def primary_key(self, connection: Connection, table: TableId) -> list[str]:
        return [str(row[0]) for row in rows_of(connection, _PRIMARY_KEY, (table.schema, table.name))]

    def find(
        self, connection: Connection, table: TableId, types: Sequence[str] = ("TABLE", "PARTITIONED TABLE")
    ) -> TableId | None:
        kinds = kinds_of(types, _KINDS)
        found: list[Any] = rows_of(
            connection,
            "SELECT current_database(), n.nspname, c.relname FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = %s AND c.relkind = ANY(%s) AND "
            "CASE WHEN %s = '' THEN pg_table_is_visible(c.oid) ELSE n.nspname = %s END",
            (table.name, kinds, table.schema, table.schema),
        )
        return TableId(*found[0]) if found else None

    # -- the sink's part --

    def is_duplicate(self, error: Exception) -> bool:
        return getattr(error, "pgcode", None) == "23505"

    def begin(self, connection: Connection) -> None:
        """Constraints are checked at each statement: at COMMIT nobody could tell whose row it was."""
        execute(connection, "SET CONSTRAINTS ALL IMMEDIATE")

    def prepare(self, connection: Connection) -> None:
        execute(
            connection,
            # What is sent is UTF-8, also where the database, or the role, has another encoding.
            "SET SESSION client_encoding = 'UTF8'; SET SESSION lock_timeout = '60s'; "
            "SET SESSION idle_in_transaction_session_timeout = '10min'; "
            "SET SESSION TIME ZONE 'UTC'; SET SESSION client_min_messages = error",
        )
        connection.commit()

    def arrow_type(self, column: ColumnInfo) -> pa.DataType:
        name = column.type_name
        if name.startswith("_"):
            return pa.list_(_ARROW.get(name[1:], pa.string()))
        return _ARROW.get(name, pa.string())

    def sql_type(self, kind: pa.DataType, *, is_key: bool) -> str:
        if pt.is_list(kind) and not pt.is_nested(kind.value_type):
            return f"{self.sql_type(kind.value_type, is_key=is_key)}[]"
        return _sql_type(kind)

    def create_stage(
        self,
        connection: Connection,
        stage: str,
        table: str,
        columns: Mapping[str, str | None],
        *,
        temporary: bool,
    ) -> None:
        own = "0::bigint AS __icestream_seq, 0::smallint AS __icestream_kind, 0::int AS __icestream_source, "
        own += "0::bigint AS __icestream_offset"
        how = "TEMPORARY" if temporary else "UNLOGGED"
        held = (name if kind is None else f"NULL::{kind} AS {name}" for name, kind in columns.items())
        listed = ", ".join([own, *held])
        execute(connection, f"CREATE {how} TABLE {stage} AS SELECT {listed} FROM {table} WITH NO DATA")

    def index_stage(self, connection: Connection, stage: str) -> None:
        execute(connection, f"CREATE INDEX ON {stage} (__icestream_seq); ANALYZE {stage}")

    def load(self, connection: Connection, stage: str, columns: Sequence[str], rows: pa.Table) -> None:
        cursor = connection.cursor()
        try:
            cursor.copy_expert(f"COPY {stage} FROM STDIN (FORMAT csv)", io.BytesIO(csv_text(rows)), 2**18)
        finally:
            cursor.close()

    def delete(self, merge: Merge) -> str:
        where = f"{merge.is_same_row} AND {merge.where}"
        return f"DELETE FROM {merge.table} t USING {merge.stage} s WHERE {where}"

    def table_id(self, connection: Connection, table: TableId) -> str:
        found = rows_of(
            connection,
            "SELECT c.oid::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s",
            (table.schema, table.name),
        )
        return str(found[0][0]) if found else ""


def _sql_type(kind: pa.DataType) -> str:
    if pt.is_integer(kind):
        return "BIGINT" if kind.bit_width > 32 else "INT" if kind.bit_width > 16 else "SMALLINT"
    if pt.is_floating(kind):
        return "REAL" if kind.bit_width <= 32 else "DOUBLE PRECISION"
    simple = {"bool": "BOOLEAN", "binary": "BYTEA", "date32[day]": "DATE"}
    if str(kind) in simple:
        return simple[str(kind)]
    if pt.is_decimal(kind):
        return "DECIMAL"
    if pt.is_time(kind):
        return "TIME"
    return "TIMESTAMP" if pt.is_timestamp(kind) else "TEXT"


def _kind_without_state(error: Exception) -> ErrorKind:
    """Of a connection that does not come about only the text tells why."""
    text = str(error)
    if "authentication failed" in text or "no password supplied" in text or "no pg_hba.conf entry" in text:
        return ErrorKind.LOGIN
    if 'role "' in text and "does not exist" in text:
        return ErrorKind.LOGIN
    import psycopg2

    is_of_connection = isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError)
    return ErrorKind.RETRIABLE if is_of_connection else ErrorKind.FATAL
