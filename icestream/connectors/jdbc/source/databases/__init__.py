"""What the source needs of each kind of database. `source_database` chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from icestream.connectors.jdbc.dialects.base import Dialect
from icestream.connectors.jdbc.source.columns import TypeOptions
from icestream.connectors.jdbc.source.databases.base import SourceDatabase
from icestream.connectors.jdbc.source.databases.mysql import MySqlSource
from icestream.connectors.jdbc.source.databases.postgresql import PostgreSqlSource
from icestream.connectors.jdbc.source.databases.sqlite import SqliteSource

_BY_KIND: Final[Mapping[str, Callable[[Dialect, TypeOptions], SourceDatabase]]] = {
    "postgresql": PostgreSqlSource,
    "mysql": MySqlSource,
    "sqlite": SqliteSource,
}


def source_database(dialect: Dialect, options: TypeOptions) -> SourceDatabase:
    return _BY_KIND[dialect.kind](dialect, options)
