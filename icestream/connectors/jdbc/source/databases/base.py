"""What the source needs of a kind of database, besides the dialect: its types, its clock, its rows in Arrow,
and which transactions are open. One file for each kind; `source_database` chooses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import pyarrow as pa

from icestream.api.errors import FatalError
from icestream.connectors.jdbc.dialects.base import ColumnInfo, Connection, Dialect, TableId
from icestream.connectors.jdbc.source.columns import WHOLE, Shape, SourceColumn, TypeOptions, source_column
from icestream.connectors.jdbc.source.windows import Cursors

ROWS_AT_A_TIME: Final = 10_000


@dataclass(frozen=True)
class OpenTransactions:
    """Those of others that a database has open now, by names of its own."""

    writing: frozenset[str] = frozenset()
    """They hold what a writer of the table holds: they have changed it, or are about to."""
    others: frozenset[str] = frozenset()
    """They may yet write."""

    @property
    def all(self) -> frozenset[str]:
        return self.writing | self.others


class RowStream(Protocol):
    """The rows of one statement, in order, as they arrive."""

    def read(self) -> pa.RecordBatch | None:
        """Some more; None at the end."""

    def close(self) -> None:
        """Also before the end."""


class SourceDatabase(ABC):
    """Stateless. Connections are given to it by `sessions.py`."""

    time_shapes: ClassVar[frozenset[Shape]] = frozenset({Shape.WALL_CLOCK, Shape.INSTANT})
    """Of columns that rows may be read by as by their time."""
    unsupported_isolation: ClassVar[frozenset[str]] = frozenset({"SQL_SERVER_SNAPSHOT"})

    def __init__(self, dialect: Dialect, options: TypeOptions) -> None:
        self.dialect = dialect
        self.options = options

    @abstractmethod
    def prepare(self, connection: Connection, isolation: str) -> None:
        """Settings of a new connection: each statement a transaction, times in UTC, isolation."""

    @abstractmethod
    def column(self, info: ColumnInfo, name: str) -> SourceColumn:
        """How a column is read and sent; `name` is quoted as statements have it."""

    def counts(self, info: ColumnInfo, column: SourceColumn) -> bool:
        """Whether rows may be read by the numbers of a column: whole ones, as far as its type tells."""
        return column.shape in WHOLE or (info.type_name in ("numeric", "decimal") and not info.scale)

    def _sent(self, info: ColumnInfo, select: str, shape: Shape, item: Shape = Shape.STRING) -> SourceColumn:
        """A column that statements select so, and that is sent in this shape; `item` is that of a list."""
        return source_column(
            info.name,
            select,
            shape,
            self.options,
            optional=info.is_nullable,
            precision=info.precision,
            scale=info.scale,
            item=item,
        )

    @abstractmethod
    def described(self, connection: Connection, query: str) -> list[ColumnInfo]:
        """The columns of a query, without running it."""

    @abstractmethod
    def timestamp_digits(self, info: ColumnInfo) -> int:
        """Digits behind the second that a column of timestamps keeps."""

    @abstractmethod
    def timestamp_cursor(self, names: Sequence[str], infos: Sequence[ColumnInfo]) -> Cursors:
        """The expression that rows are read by, and its literals."""

    @abstractmethod
    def number_cursor(self, name: str) -> str: ...

    @abstractmethod
    def now(self, connection: Connection) -> int:
        """The database's clock: nanoseconds since 1970."""

    @abstractmethod
    def newest(self, connection: Connection, statement: str, cursors: Cursors) -> int | None:
        """The answer to `select_newest`: a number, or nanoseconds since 1970."""

    @abstractmethod
    def quote_value(self, value: Any) -> str:
        """A number or a text as SQL."""

    @abstractmethod
    def open_transactions(
        self, connection: Connection, table: TableId | None, *, by_timestamp: bool
    ) -> OpenTransactions | None:
        """Those that may still add rows to what is read by now; None if the database does not tell."""

    @abstractmethod
    def stream(self, connection: Connection, statement: str, columns: Sequence[SourceColumn]) -> RowStream:
        """Runs a statement. The connection is the stream's until it is at its end."""


class FetchedRows:
    """Rows of a driver that has them as Python's own values."""

    def __init__(self, cursor: Any, columns: Sequence[SourceColumn]) -> None:
        self._cursor = cursor
        self._columns = columns
        self._batches = self._read()

    def read(self) -> pa.RecordBatch | None:
        return next(self._batches, None)

    def close(self) -> None:
        self._batches.close()
        self._cursor.close()

    def _read(self) -> Generator[pa.RecordBatch]:
        names = [f"c{place}" for place in range(len(self._columns))]
        while rows := self._cursor.fetchmany(ROWS_AT_A_TIME):
            arrays = [
                _array(values, column)
                for values, column in zip(zip(*rows, strict=True), self._columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names)


def _array(values: Sequence[Any], column: SourceColumn) -> pa.Array:
    try:
        if pa.types.is_boolean(column.raw):
            return pa.array([None if value is None else bool(value) for value in values], column.raw)
        if pa.types.is_decimal(column.raw) and any(isinstance(value, str) for value in values):
            return pa.array(values, pa.string()).cast(column.raw)
        return pa.array(values, column.raw)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise FatalError(
            f"column '{column.name}' holds a value that is no {column.raw}: {reason}; correct the row, or "
            "cast the column in a 'query'"
        ) from error
