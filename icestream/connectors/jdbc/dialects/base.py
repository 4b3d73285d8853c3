"""What a dialect is: how one kind of database is connected to, quoted, asked for its tables, and told apart
in its errors. The sink's statements are in `sink_statements` of each dialect's file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

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


def rows_of(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The answer to one query."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement, tuple(parameters))
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
