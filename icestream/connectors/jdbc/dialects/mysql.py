"""The dialect of MySQL and MariaDB, by PyMySQL. Chosen by `dialect_of` for both connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.connectors.jdbc.addresses import DatabaseAddress
from icestream.connectors.jdbc.dialects.base import (
    OWN_COLUMNS,
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
from icestream.connectors.jdbc.dialects.sql_text import insert_statements

_KINDS: Final = {"TABLE": "BASE TABLE", "VIEW": "VIEW", "PARTITIONED TABLE": "BASE TABLE"}
_NUMBERS: Final = ("connect_timeout", "read_timeout", "write_timeout")
_REFUSED_ROWS: Final = frozenset(
    {
        *(1048, 1364, 1263),  # null, or nothing where there is no default
        *(1062, 1169, 1586, 1216, 1217, 1451, 1452, 1557, 1761, 1762, 3819, 4025),  # constraints
        *(1406, 1264, 1265, 1292, 1366, 1367, 1411, 1416, 1441, 1690, 3140, 3141, 3156, 4038),  # values
        *(1071, 1118),  # a key or a row that is too long
        *(1526, 1644, 1690),  # no partition for it; a trigger's own word
    }
)
_PASSING: Final = frozenset(
    {
        *(1020, 1205, 1213, 1614),  # locks
        *(1040, 1053, 1077, 1079, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1290, 1836, 1927),
        *(2002, 2003, 2005, 2006, 2013, 2014, 2055),  # the connection
        *(1021, 1030, 1037, 1041, 1114, 1180, 3024, 1969, 1317),  # room, memory, time
        0,
    }
)
_LOGIN: Final = frozenset({1044, 1045, 1049, 1130, 1251, 1698, 2059, 2061})
_COLUMNS: Final = """
SELECT column_name, data_type, column_type, is_nullable = 'YES', numeric_precision,
       COALESCE(numeric_scale, datetime_precision), character_maximum_length,
       COALESCE(column_default, 'NULL') <> 'NULL' OR extra LIKE '%%auto_increment%%'
       OR extra LIKE '%%DEFAULT_GENERATED%%',
       extra LIKE '%%VIRTUAL%%' OR extra LIKE '%%STORED%%' OR extra LIKE '%%PERSISTENT%%',
       extra LIKE '%%auto_increment%%'
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_SQL_MODE: Final = (
    "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)
_MOMENT: Final = pa.timestamp("us", "UTC")
_ARROW: Final[Mapping[str, pa.DataType]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "year"), pa.int64()),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), pa.binary()),
    "date": pa.date32(),
    "time": pa.time64("us"),
    **dict.fromkeys(("datetime", "timestamp"), _MOMENT),
}
"""All others are texts, which the server reads."""


class MySql(Dialect):
    kind = "mysql"
    quote_sign = "`"
    has_transactional_ddl = False
    long_text = "LONGTEXT"
    # Other collations take `Orders` for `orders`.
    exact_text = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    # The server's own choice may be one without transactions.
    table_options = " ENGINE=InnoDB"
    longest_name = 64
    ignores_case = True

    def connect(self, address: DatabaseAddress) -> Connection:
        import pymysql

        ((host, port),) = address.hosts
        options: dict[str, Any] = {
            key: int(value) if key in _NUMBERS else value for key, value in address.parameters.items()
        }
        for flag in ("ssl_disabled", "ssl_check_hostname"):
            if flag in options:
                options[flag] = options[flag] == "true"
        tls = {
            name.removeprefix("ssl_"): options.pop(name)
            for name in ("ssl_ca", "ssl_check_hostname")
            if name in options
        }
        connection: Connection = pymysql.connect(
            host=host,
            port=port,
            user=address.user,
            password=address.password,
            database=address.database or None,
            ssl=tls or None,
            local_infile=False,  # a server could ask for any file of this machine
            autocommit=False,
            **options,
        )
        return connection

    def errors(self) -> tuple[type[Exception], ...]:
        import pymysql

        return (pymysql.Error, OSError)

    def kind_of(self, error: Exception) -> ErrorKind:
        import pymysql

        if isinstance(error, OSError | pymysql.InterfaceError):
            return ErrorKind.RETRIABLE
        number = error.args[0] if error.args and isinstance(error.args[0], int) else -1
        if number in _LOGIN:
            return ErrorKind.LOGIN
        if number in _REFUSED_ROWS:
            return ErrorKind.REFUSED_ROW
        return ErrorKind.RETRIABLE if number in _PASSING else ErrorKind.FATAL

    def told(self, error: Exception) -> str:
        return str(error.args[1]) if len(error.args) > 1 else super().told(error)

    def tables(
        self,
        connection: Connection,
        catalog: str | None = None,
        schema: str | None = None,
        types: Sequence[str] = ("TABLE",),
    ) -> list[TableId]:
        """What JDBC calls a catalog is a database here; there are no schemas."""
        kinds = kinds_of(types, _KINDS)
        if not kinds:
            return []
        found = rows_of(
            connection,
            "SELECT table_schema, '', table_name FROM information_schema.tables WHERE table_type IN "
            f"({', '.join(['%s'] * len(kinds))}) AND table_schema LIKE COALESCE(%s, DATABASE()) "
            "ORDER BY table_schema, table_name",
            (*kinds, catalog),
        )
        return [TableId(*row) for row in found]

    def columns(self, connection: Connection, table: TableId) -> list[ColumnInfo]:
        found = rows_of(connection, _COLUMNS, (table.catalog, table.name))
        return [
            ColumnInfo(name, kind.lower(), declared, bool(null), precision, scale, length, *map(bool, flags))
            for name, kind, declared, null, precision, scale, length, *flags in found
        ]

    def primary_key(self, connection: Connection, table: TableId) -> list[str]:
        found = rows_of(
            connection,
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s "
            "AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            (table.catalog, table.name),
        )
        return [str(row[0]) for row in found]

    def find(
        self, connection: Connection, table: TableId, types: Sequence[str] = ("TABLE", "PARTITIONED TABLE")
    ) -> TableId | None:
        kinds = kinds_of(types, _KINDS)
        found = rows_of(
            connection,
            "SELECT table_schema, '', table_name FROM information_schema.tables WHERE table_type IN "
            f"({', '.join(['%s'] * len(kinds))}) AND table_name = %s "
            "AND table_schema = COALESCE(NULLIF(%s, ''), DATABASE())",
            (*kinds, table.name, table.catalog or table.schema),
        )
        return TableId(*found[0]) if found else None

    # -- the sink's part --

    def is_duplicate(self, error: Exception) -> bool:
        return bool(error.args) and error.args[0] == 1062

    def prepare(self, connection: Connection) -> None:
        isolation = _isolation(connection)
        execute(
            connection,
            # Whole: with NO_BACKSLASH_ESCAPES, texts would end elsewhere.
            f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00', {isolation} = 'READ-COMMITTED', "
            "innodb_lock_wait_timeout = 60, lock_wait_timeout = 60",
        )
        connection.commit()

    def arrow_type(self, column: ColumnInfo) -> pa.DataType:
        if column.declared == "tinyint(1)" or column.declared == "bit(1)":
            return pa.bool_()
        if column.declared.startswith("bigint") and "unsigned" in column.declared:
            return pa.string()
        return _ARROW.get(column.type_name, pa.string())

    def sql_type(self, kind: pa.DataType, *, is_key: bool) -> str:
        if pt.is_integer(kind):
            return "BIGINT" if kind.bit_width > 32 else "INT"
        if pt.is_floating(kind):
            return "FLOAT" if kind.bit_width <= 32 else "DOUBLE"
        if pt.is_decimal(kind):
            return f"DECIMAL(65,{min(kind.scale, 30)})"
        simple = {"bool": "TINYINT(1)", "date32[day]": "DATE"}
        if str(kind) in simple:
            return simple[str(kind)]
        if pt.is_binary(kind):
            return "VARBINARY(1024)" if is_key else "LONGBLOB"
        if pt.is_time(kind):
            return "TIME(3)"
        if pt.is_timestamp(kind):
            return "DATETIME(3)"
        return "VARCHAR(256)" if is_key else "LONGTEXT" if pt.is_nested(kind) else "TEXT"

    def create_stage(
        self,
        connection: Connection,
        stage: str,
        table: str,
        columns: Mapping[str, str | None],
        *,
        temporary: bool,
    ) -> None:
        how = "TEMPORARY " if temporary else ""
        own = "__icestream_seq BIGINT NOT NULL DEFAULT 0 PRIMARY KEY, __icestream_kind SMALLINT DEFAULT 0, "
        own += "__icestream_source INT DEFAULT 0, __icestream_offset BIGINT DEFAULT 0"
        # Of an outer join all columns are nullable, as those of a deletion must be.
        listed = ", ".join(f"t.{name}" for name, kind in columns.items() if kind is None) or "NULL AS none"
        own += "".join(f", {name} {kind} NULL" for name, kind in columns.items() if kind is not None)
        execute(
            connection,
            f"CREATE {how}TABLE {stage} ({own}){self.table_options} SELECT {listed} FROM (SELECT 1 AS one) o "
            f"LEFT JOIN {table} t ON 1 = 0 WHERE 1 = 0",
        )

    def load(self, connection: Connection, stage: str, columns: Sequence[str], rows: pa.Table) -> None:
        cursor = connection.cursor()
        try:
            for statement in insert_statements(stage, [*OWN_COLUMNS, *columns], rows):
                cursor.execute(statement)
        finally:
            cursor.close()

    def upsert(self, merge: Merge) -> str:
        changes = [f"{one} = VALUES({one})" for one in merge.others]
        same = changes or [f"{merge.keys[0]} = {merge.table}.{merge.keys[0]}"]
        return f"{self.insert(merge)} ON DUPLICATE KEY UPDATE {', '.join(same)}"

    def update(self, merge: Merge) -> str:
        changes = ", ".join(f"t.{one} = s.{one}" for one in merge.others)
        return f"UPDATE {_joined(merge)} SET {changes} WHERE {merge.where}"

    def delete(self, merge: Merge) -> str:
        return f"DELETE t FROM {_joined(merge)} WHERE {merge.where}"

    def engine_without_transactions(self, connection: Connection, table: TableId) -> str | None:
        found = rows_of(
            connection,
            "SELECT t.engine FROM information_schema.tables t JOIN information_schema.engines e "
            "ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s "
            "AND e.transactions <> 'YES'",
            (table.catalog, table.name),
        )
        return str(found[0][0]) if found else None


def _joined(merge: Merge) -> str:
    return f"{merge.table} t JOIN {merge.stage} s ON {merge.is_same_row}"


def _isolation(connection: Connection) -> str:
    """Before 11.1 MariaDB has its own name for it."""
    ((version,),) = rows_of(connection, "SELECT VERSION()")
    return "tx_isolation" if "MariaDB" in str(version) else "transaction_isolation"
