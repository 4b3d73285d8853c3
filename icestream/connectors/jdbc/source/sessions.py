"""A task's connections: one to ask by, and those that rows arrive on. Opened by `source`, used by its readers
of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from icestream.api.errors import FatalError, OriginUnavailable, SinkUnavailable
from icestream.connectors.jdbc.connections import Access, close, connect, database_errors
from icestream.connectors.jdbc.dialects.base import Connection
from icestream.connectors.jdbc.source.columns import SourceColumn
from icestream.connectors.jdbc.source.databases.base import RowStream, SourceDatabase

T = TypeVar("T")


class Session:
    """Not for two threads at once. Errors of the driver are raised as ours."""

    def __init__(self, access: Access, database: SourceDatabase, isolation: str = "") -> None:
        self.access = access
        self.database = database
        self._isolation = isolation
        self._asking: Connection | None = None
        self._idle: list[Connection] = []

    def ask(self, question: Callable[[Connection], T], doing: str) -> T:
        """The answer of the connection that questions are asked by."""

        def asked() -> T:
            if self._asking is None:
                self._asking = self._connected()
            return question(self._asking)

        try:
            return self._told(asked, doing)
        except BaseException:
            self.close()
            raise

    def stream(self, statement: str, columns: Sequence[SourceColumn], doing: str) -> SessionStream:
        def opened() -> SessionStream:
            connection = self._idle.pop() if self._idle else self._connected()
            try:
                rows = self.database.stream(connection, statement, columns)
            except BaseException:
                close(self.access, connection)
                raise
            return SessionStream(self, connection, rows, doing)

        return self._told(opened, doing)

    def close(self) -> None:
        connections = [*([self._asking] if self._asking is not None else ()), *self._idle]
        self._asking, self._idle = None, []
        for connection in connections:
            close(self.access, connection)

    def keep(self, connection: Connection) -> None:
        self._idle.append(connection)

    def told(self, action: Callable[[], T], doing: str) -> T:
        return self._told(action, doing)

    def _connected(self) -> Connection:
        connection = connect(self.access)
        try:
            self.database.prepare(connection, self._isolation)
        except BaseException:
            close(self.access, connection)
            raise
        return connection

    def _told(self, action: Callable[[], T], doing: str) -> T:
        try:
            with database_errors(self.access, doing):
                return action()
        except SinkUnavailable as error:
            raise OriginUnavailable(*error.args) from error.__cause__


class SessionStream:
    """Rows of one statement. At its end the connection is kept for the next."""

    def __init__(self, session: Session, connection: Connection, rows: RowStream, doing: str) -> None:
        self._session = session
        self._connection: Connection | None = connection
        self._rows = rows
        self._doing = doing

    def read(self) -> pa.RecordBatch | None:
        if self._connection is None:
            return None
        try:
            found = self._session.told(self._rows.read, self._doing)
        except BaseException:
            self.close()
            raise
        if found is None:
            self._rows.close()
            connection, self._connection = self._connection, None
            self._session.keep(connection)
        return found

    def close(self) -> None:
        """What has not arrived is given up, with the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                self._session.told(self._rows.close, self._doing)
            except (FatalError, OriginUnavailable):
                pass
            finally:
                close(self._session.access, connection)
