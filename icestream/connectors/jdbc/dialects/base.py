"""What a dialect is: how one kind of database is connected to, quoted, asked for its tables, and for the
meaning of its errors, and how rows are staged and merged there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import pyarrow as pa

from icestream.connectors.jdbc.addresses import DatabaseAddress


class Cursor(Protocol):
    """Of Python's DB-API."""

    rowcount: int
    description: Any

    def execute(self, statement: Any, parameters: Any = ..., /) -> Any: ...
    def executemany(self, statement: Any, parameters: Any, /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchmany(self, size: int = ..., /) -> Any: ...
    def fetchall(self) -> Any: ...
    def close(self) -> Any: ...


class Connection(Protocol):
    """Of Python's DB-API."""

    def cursor(self) -> Any: ...
    def commit(self) -> Any: ...
    def rollback(self) -> Any: ...
    def close(self) -> Any: ...


class ErrorKind(Enum):
    RETRIABLE = "retriable"
    """It may go away by itself: a connection, a lock, a full disk."""
    REFUSED_ROW = "refused row"
    """A value or a constraint: the statement is fine, and so are other rows."""
    LOGIN = "login"
    FATAL = "fatal"


OWN_COLUMNS: Final = ("__icestream_seq", "__icestream_kind", "__icestream_source", "__icestream_offset")
"""What stands before the columns of a table while its rows are staged: it can have none of that name."""


class TableId(NamedTuple):
    """A table, as the database has its name. A part that is empty is the connection's own."""

    catalog: str
    schema: str
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in self if part)


@dataclass(frozen=True)
class ColumnInfo:
    name: str
    type_name: str
    """The database's own, in lower case and without length: `int8`, `varchar`, `numeric`, `tinyint`."""
    declared: str
    """The whole type, for `CREATE TABLE`: `numeric(10,2)`, `varchar(20)[]`."""
    is_nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    """Of numbers; of times the digits of a second."""
    length: int | None = None
    """In characters, of texts; in bytes, of binaries."""
    has_default: bool = False
    is_generated: bool = False
    """Nobody may write it."""
    is_auto_increment: bool = False


@dataclass(frozen=True)
class Merge:
    """One step of a commit: rows of a staging table into the table that they are for."""

    table: str
    """Quoted, as is all here."""
    stage: str
    columns: Sequence[str]
    keys: Sequence[str]
    where: str
    """Which of the staged rows."""

    @property
    def others(self) -> list[str]:
        """Columns that are not of the key."""
        return [one for one in self.columns if one not in self.keys]

    @property
    def is_same_row(self) -> str:
        """The condition that a row `t` of the table has the key of a staged row `s`."""
        return " AND ".join(f"t.{one} = s.{one}" for one in self.keys)


class Dialect(ABC):
    """Stateless; picklable."""

    kind: ClassVar[str]
    quote_sign: ClassVar[str] = '"'
    placeholder: ClassVar[str] = "%s"
    """Of the driver, in statements with parameters."""

    @abstractmethod
    def connect(self, address: DatabaseAddress) -> Connection:
        """Opens; nothing is committed by itself."""

    @abstractmethod
    def errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""

    @abstractmethod
    def kind_of(self, error: Exception) -> ErrorKind: ...

    def told(self, error: Exception) -> str:
        """The reason in one line."""
        lines = str(error).strip().splitlines()
        return lines[0] if lines else type(error).__name__

    def quote(self, name: str) -> str:
        sign = self.quote_sign
        return f"{sign}{name.replace(sign, sign * 2)}{sign}"

    def quoted_table(self, table: TableId) -> str:
        return ".".join(self.quote(part) for part in table if part)

    @abstractmethod
    def tables(
        self,
        connection: Connection,
        catalog: str | None = None,
        schema: str | None = None,
        types: Sequence[str] = ("TABLE",),
    ) -> list[TableId]:
        """All tables whose catalog and schema are like these patterns (`%`, `_`); None: any. Types are
        JDBC's: TABLE, VIEW, PARTITIONED TABLE, and so on."""

    @abstractmethod
    def columns(self, connection: Connection, table: TableId) -> list[ColumnInfo]:
        """In their order; none if there is no such table."""

    @abstractmethod
    def primary_key(self, connection: Connection, table: TableId) -> list[str]: ...

    @abstractmethod
    def find(
        self, connection: Connection, table: TableId, types: Sequence[str] = ("TABLE", "PARTITIONED TABLE")
    ) -> TableId | None:
        """The table with all parts of its name, as an unqualified name finds it; None if it is not there."""

    # -- the sink's part --

    @abstractmethod
    def is_duplicate(self, error: Exception) -> bool:
        """Whether a row was refused because its key is there."""

    stages_in_tasks: ClassVar[bool] = True
    """Whether several processes may write at the same time: otherwise the manager gets the rows."""
    has_transactional_ddl: ClassVar[bool] = True
    lock_clause: ClassVar[str] = " FOR UPDATE"
    long_text: ClassVar[str] = "TEXT"
    """A type for long texts of ours."""
    exact_text: ClassVar[str] = "VARCHAR(255)"
    """A type for names of ours, which differ if one letter does."""
    table_options: ClassVar[str] = ""
    """What ends a `CREATE TABLE`."""
    longest_name: ClassVar[int | None] = 63
    """Bytes of the name of a column, beyond which it is refused or, worse, cut off."""
    ignores_case: ClassVar[bool] = False
    """Whether columns whose names differ in case only are the same."""

    def begin(self, connection: Connection) -> None:
        """Begin a transaction; drivers of most databases do so by themselves."""
        return

    def prepare(self, connection: Connection) -> None:
        """What a session of the sink needs, once: nobody waits for ever, no value is cut to fit."""
        return

    @abstractmethod
    def arrow_type(self, column: ColumnInfo) -> pa.DataType:
        """In which type records are given to a column; texts are read by the database itself."""

    @abstractmethod
    def sql_type(self, kind: pa.DataType, *, is_key: bool) -> str:
        """Of a new column for values of this type."""

    @abstractmethod
    def create_stage(
        self,
        connection: Connection,
        stage: str,
        table: str,
        columns: Mapping[str, str | None],
        *,
        temporary: bool,
    ) -> None:
        """A table with these columns of another one, all of them nullable, and with ours. Columns that the
        other one is still to get have their type."""

    def index_stage(self, connection: Connection, stage: str) -> None:
        """Before its rows are asked for by their numbers, many times; most have a primary key."""
        return

    @abstractmethod
    def load(self, connection: Connection, stage: str, columns: Sequence[str], rows: pa.Table) -> None:
        """All rows into these columns of a staging table, after ours; what is refused, refuses all."""

    def insert(self, merge: Merge) -> str:
        names = ", ".join(merge.columns)
        return f"INSERT INTO {merge.table} ({names}) SELECT {names} FROM {merge.stage} s WHERE {merge.where}"

    def upsert(self, merge: Merge) -> str:
        changes = ", ".join(f"{one} = EXCLUDED.{one}" for one in merge.others)
        what = f"UPDATE SET {changes}" if changes else "NOTHING"
        return f"{self.insert(merge)} ON CONFLICT ({', '.join(merge.keys)}) DO {what}"

    def update(self, merge: Merge) -> str:
        changes = ", ".join(f"{one} = s.{one}" for one in merge.others)
        where = f"{merge.is_same_row} AND {merge.where}"
        return f"UPDATE {merge.table} AS t SET {changes} FROM {merge.stage} AS s WHERE {where}"

    @abstractmethod
    def delete(self, merge: Merge) -> str: ...

    def engine_without_transactions(self, connection: Connection, table: TableId) -> str | None:
        """What keeps the table, if it is nothing that can undo a change."""
        return None

    def table_id(self, connection: Connection, table: TableId) -> str:
        """Another one if the table is dropped and created again, where the database can tell."""
        return str(table)

    def create_table(self, table: str, columns: Mapping[str, tuple[str, bool]], keys: Sequence[str]) -> str:
        """The statement for a table with these columns: type, and whether it may be null."""
        parts = [
            f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, (kind, nullable) in columns.items()
        ]
        if keys:
            parts.append(f"PRIMARY KEY ({', '.join(keys)})")
        return f"CREATE TABLE {table} ({', '.join(parts)}){self.table_options}"

    def add_column(self, table: str, name: str, kind: str) -> str:
        return f"ALTER TABLE {table} ADD COLUMN {name} {kind} NULL"


def kinds_of(types: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """What a database calls these types of tables, which are JDBC's; those that it has not are left out."""
    return sorted({known[one.replace("_", " ")] for one in types if one.replace("_", " ") in known})


def rows_of(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The answer to one query."""
    cursor = connection.cursor()
    try:
        # Without parameters a percent sign is one, also in the query of a config.
        cursor.execute(statement, tuple(parameters)) if parameters else cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]
    finally:
        cursor.close()


def execute(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> int:
    """How many rows one statement changed."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement, tuple(parameters)) if parameters else cursor.execute(statement)
        return int(cursor.rowcount)
    finally:
        cursor.close()
