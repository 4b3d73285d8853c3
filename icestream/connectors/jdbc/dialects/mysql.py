"""MySQL and MariaDB, by PyMySQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from icestream.connectors.jdbc.addresses import DatabaseAddress
from icestream.connectors.jdbc.dialects.base import (
    ColumnInfo,
    Connection,
    Dialect,
    ErrorKind,
    TableId,
    rows_of,
)

_KINDS: Final = {"TABLE": "BASE TABLE", "VIEW": "VIEW", "PARTITIONED TABLE": "BASE TABLE"}
_NUMBERS: Final = ("connect_timeout", "read_timeout", "write_timeout")
_REFUSED_ROWS: Final = frozenset(
    {
        *(1048, 1364, 1263),  # null, or nothing where there is no default
        *(1062, 1169, 1586, 1216, 1217, 1451, 1452, 1557, 1761, 1762, 3819, 4025),  # constraints
        *(1406, 1264, 1265, 1292, 1366, 1367, 1411, 1416, 1441, 1690, 3140, 3141, 3156, 4038),  # values
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


class MySql(Dialect):
    kind = "mysql"
    quote_sign = "`"

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
        kinds = sorted({_KINDS[one.replace("_", " ")] for one in types if one.replace("_", " ") in _KINDS})
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
        kinds = sorted({_KINDS[one.replace("_", " ")] for one in types if one.replace("_", " ") in _KINDS})
        found = rows_of(
            connection,
            "SELECT table_schema, '', table_name FROM information_schema.tables WHERE table_type IN "
            f"({', '.join(['%s'] * len(kinds))}) AND table_name = %s "
            "AND table_schema = COALESCE(NULLIF(%s, ''), DATABASE())",
            (*kinds, table.name, table.catalog or table.schema),
        )
        return TableId(*found[0]) if found else None
