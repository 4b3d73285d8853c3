"""One file per kind of database: all that differs between them. `dialect_of` chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.jdbc.addresses import DatabaseAddress
from icestream.connectors.jdbc.dialects.base import Dialect
from icestream.connectors.jdbc.dialects.mysql import MySql
from icestream.connectors.jdbc.dialects.postgresql import PostgreSql
from icestream.connectors.jdbc.dialects.sqlite import Sqlite

_BY_KIND: Final[Mapping[str, Dialect]] = {"postgresql": PostgreSql(), "mysql": MySql(), "sqlite": Sqlite()}
_BY_NAME: Final = {
    "PostgreSqlDatabaseDialect": "postgresql",
    "MySqlDatabaseDialect": "mysql",
    "SqliteDatabaseDialect": "sqlite",
}
"""The values of `dialect.name`."""


def dialect_of(address: DatabaseAddress, name: str = "") -> Dialect:
    """The dialect of an address; `dialect.name` may only say the same."""
    if name and _BY_NAME.get(name) != address.kind:
        known = next(known for known, kind in _BY_NAME.items() if kind == address.kind)
        raise ConfigError(
            [
                Problem(
                    "dialect.name",
                    f"dialect.name: '{name}' is not for {address.scheme}; remove it, or write {known}: "
                    f"this version has {', '.join(_BY_NAME)}.",
                )
            ]
        )
    return _BY_KIND[address.kind]
