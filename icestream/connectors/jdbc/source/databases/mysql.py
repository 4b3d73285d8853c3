"""MySQL and MariaDB, by PyMySQL. Accounts with the privilege PROCESS see which transactions are open."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from icestream.connectors.jdbc.dialects.base import ColumnInfo, Connection, TableId, execute, rows_of
from icestream.connectors.jdbc.source.columns import Shape, SourceColumn
from icestream.connectors.jdbc.source.databases.base import (
    FetchedRows,
    OpenTransactions,
    RowStream,
    SourceDatabase,
)
from icestream.connectors.jdbc.source.windows import Cursors

_SHAPES: Final = {
    "tinyint": Shape.INT8,
    "smallint": Shape.INT16,
    "mediumint": Shape.INT32,
    "int": Shape.INT32,
    "bigint": Shape.INT64,
    "float": Shape.FLOAT32,
    "double": Shape.FLOAT64,
    "decimal": Shape.DECIMAL,
    "date": Shape.DATE,
    "time": Shape.TIME,
    "datetime": Shape.WALL_CLOCK,
    "timestamp": Shape.INSTANT,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Shape.BYTES),
}
_WIDER: Final = {
    Shape.INT8: Shape.INT16,
    Shape.INT16: Shape.INT32,
    Shape.INT32: Shape.INT64,
    Shape.INT64: Shape.INT64,
}
_NO_PRIVILEGE: Final = (1227, 1142, 1044)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TRANSACTIONS: Final = """
SELECT /* {token} */ CONCAT(trx_mysql_thread_id, ' ', trx_started), trx_rows_modified > 0,
    trx_mysql_thread_id = CONNECTION_ID(), trx_query LIKE '%{token}%'
FROM information_schema.innodb_trx
"""
_LOOKS: Final = 20
_LIST_LIVES_S: Final = 0.15
"""InnoDB keeps the list of transactions until nobody has read it for 0.1 s."""


def _listed_now(
    connection: Connection, sleep: Callable[[float], None] = time.sleep
) -> OpenTransactions | None:
    """The open transactions of others, from a list that InnoDB made for this question.

    An older list, which somebody's frequent looks keep alive, lacks those that began since. In a list that is
    new, our own transaction is running the very statement that asks. None: nobody else gets a new list.
    """
    execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    try:
        for _ in range(_LOOKS):
            found = rows_of(connection, _TRANSACTIONS.format(token=uuid.uuid4().hex))
            if any(is_ours and asks for _, _, is_ours, asks in found):
                others = [(name, writes) for name, writes, is_ours, _ in found if not is_ours]
                return OpenTransactions(
                    frozenset(name for name, writes in others if writes),
                    frozenset(name for name, writes in others if not writes),
                )
            sleep(_LIST_LIVES_S)
    finally:
        execute(connection, "ROLLBACK")
    return None


class MySqlSource(SourceDatabase):
    def prepare(self, connection: Any, isolation: str) -> None:
        connection.autocommit(True)
        execute(connection, "SET SESSION time_zone = '+00:00'")
        # A row that takes long to send must not end the statement.
        execute(connection, "SET SESSION net_write_timeout = 600")
        if isolation:
            execute(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.replace('_', ' ')}")

    def column(self, info: ColumnInfo, name: str) -> SourceColumn:
        shape, select = _SHAPES.get(info.type_name, Shape.STRING), name
        if "unsigned" in info.declared.lower() and shape in _WIDER:
            shape = _WIDER[shape]
        elif info.type_name == "bit":
            is_one = info.declared.lower() in ("bit", "bit(1)")
            shape, select = (Shape.INT8, f"{name} + 0") if is_one else (Shape.BYTES, name)
        elif info.type_name == "year":
            shape, select = Shape.DATE, f"MAKEDATE({name}, 1)"
        elif shape is Shape.TIME:
            # A driver has no times of day, only durations. Some are no times of day: `columns` refuses them.
            seconds = f"HOUR({name}) * 3600 + MINUTE({name}) * 60 + SECOND({name})"
            select = f"IF({name} < 0, -1, 1) * (({seconds}) * 1000000 + MICROSECOND({name}))"
        elif shape is Shape.STRING:
            select = f"CAST({name} AS CHAR)"
        return self._sent(info, select, shape)

    def described(self, connection: Connection, query: str) -> list[ColumnInfo]:
        from pymysql.constants import FIELD_TYPE, FLAG

        cursor: Any = connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM ({query}) q LIMIT 0")
            fields = list(cursor._result.fields)
        finally:
            cursor.close()
        names = {
            FIELD_TYPE.TINY: "tinyint",
            FIELD_TYPE.SHORT: "smallint",
            FIELD_TYPE.INT24: "mediumint",
            FIELD_TYPE.LONG: "int",
            FIELD_TYPE.LONGLONG: "bigint",
            FIELD_TYPE.FLOAT: "float",
            FIELD_TYPE.DOUBLE: "double",
            FIELD_TYPE.DECIMAL: "decimal",
            FIELD_TYPE.NEWDECIMAL: "decimal",
            FIELD_TYPE.DATE: "date",
            FIELD_TYPE.TIME: "time",
            FIELD_TYPE.DATETIME: "datetime",
            FIELD_TYPE.TIMESTAMP: "timestamp",
            FIELD_TYPE.YEAR: "year",
            FIELD_TYPE.BIT: "bit",
        }
        texts = {FIELD_TYPE.BLOB, FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.LONG_BLOB}
        texts |= {FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.VARCHAR}
        found = []
        for field in fields:
            is_binary = field.type_code in texts and field.charsetnr == 63
            name = names.get(field.type_code, "blob" if is_binary else "varchar")
            is_exact = name == "decimal"
            found.append(
                ColumnInfo(
                    field.name,
                    name,
                    f"{name} unsigned" if field.flags & FLAG.UNSIGNED and not is_exact else name,
                    not field.flags & FLAG.NOT_NULL,
                    min(field.length, 65) if is_exact else None,
                    field.scale if is_exact or name in ("datetime", "timestamp") else None,
                )
            )
        return found

    def timestamp_digits(self, info: ColumnInfo) -> int:
        return info.scale or 0

    def timestamp_cursor(self, names: Sequence[str], infos: Sequence[ColumnInfo]) -> Cursors:
        # Sessions are in UTC, so only DATETIME has the zone of the config.
        is_wall = all(info.type_name == "datetime" for info in infos)
        zone = ZoneInfo(self.options.zone) if is_wall else dt.UTC
        expression = names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"

        def literal(nanoseconds: int) -> str:
            moment = _EPOCH + dt.timedelta(microseconds=nanoseconds // 1000)
            return f"TIMESTAMP '{moment.astimezone(zone):%Y-%m-%d %H:%M:%S.%f}'"

        return Cursors(timestamp=expression, literal=literal, zone=zone)

    def number_cursor(self, name: str) -> str:
        return name

    def now(self, connection: Connection) -> int:
        ((now,),) = rows_of(connection, "SELECT UTC_TIMESTAMP(6)")
        return int((now.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)) * 1000

    def newest(self, connection: Connection, statement: str, cursors: Cursors) -> int | None:
        ((found,),) = rows_of(connection, statement)
        if not isinstance(found, dt.datetime):
            return None if found is None else int(found)
        return (found.replace(tzinfo=cursors.zone) - _EPOCH) // dt.timedelta(microseconds=1) * 1000

    def quote_value(self, value: Any) -> str:
        if isinstance(value, int | float):
            return repr(value)
        return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"

    def open_transactions(
        self, connection: Connection, table: TableId | None, *, by_timestamp: bool
    ) -> OpenTransactions | None:
        import pymysql

        try:
            return _listed_now(connection)
        except pymysql.Error as error:
            if error.args and error.args[0] in _NO_PRIVILEGE:
                return None
            raise

    def stream(self, connection: Any, statement: str, columns: Sequence[SourceColumn]) -> RowStream:
        from pymysql.cursors import SSCursor

        cursor = connection.cursor(SSCursor)
        cursor.execute(statement)
        return FetchedRows(cursor, columns)
