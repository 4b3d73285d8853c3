"""What in a config of the JDBC source does not go together, and what has no effect. Called by `plugin`."""

from __future__ import annotations

from icestream.api.config import Config
from icestream.api.errors import Problem
from icestream.connectors.jdbc.source.keys import JDBC_SOURCE, WITHOUT_EFFECT


def problems(config: Config) -> list[Problem]:
    """What does not go together. Called where each key by itself is right."""
    given = {key for key in JDBC_SOURCE.names if config.get(key, "").strip()}
    found = []
    query = given & {"query", "query.masked"}
    lists = given & {"table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list"}
    if len(query) > 1:
        found.append(Problem("query.masked", "query.masked: 'query' is set, too; write one of them."))
    if query and lists:
        key = min(lists)
        found.append(
            Problem(key, f"{key}: tables and a query cannot be read together; remove '{key}' or the query.")
        )
    if {"table.blacklist", "table.whitelist"} <= given:
        found.append(
            Problem(
                "table.blacklist",
                "table.blacklist: 'table.whitelist' is set, too, and names all tables that are read; "
                "remove one.",
            )
        )
    if lists & {"table.include.list", "table.exclude.list"} and lists & {
        "table.whitelist",
        "table.blacklist",
    }:
        key = min(lists & {"table.include.list", "table.exclude.list"})
        found.append(
            Problem(
                key, f"{key}: write patterns or names, not both; remove table.whitelist and table.blacklist."
            )
        )
    mode = config.get("mode", "")
    columns = given & {"timestamp.column.name", "timestamp.columns.mapping"}
    if "timestamp" in mode and not columns:
        found.append(
            Problem(
                "timestamp.column.name",
                f"timestamp.column.name: mode '{mode}' needs the columns that tell when a row changed; "
                "name them.",
            )
        )
    if len(columns) > 1:
        found.append(
            Problem(
                "timestamp.columns.mapping",
                "timestamp.columns.mapping: 'timestamp.column.name' is set, too; write one of them.",
            )
        )
    if {"incrementing.column.name", "incrementing.column.mapping"} <= given:
        found.append(
            Problem(
                "incrementing.column.mapping",
                "incrementing.column.mapping: 'incrementing.column.name' is set, too; write one of them.",
            )
        )
    if query and given & {"incrementing.column.mapping", "timestamp.columns.mapping"}:
        key = min(given & {"incrementing.column.mapping", "timestamp.columns.mapping"})
        found.append(
            Problem(
                key,
                f"{key}: a query has no tables; name its column in incrementing.column.name or "
                "timestamp.column.name.",
            )
        )
    if query and "incrementing" in mode and "incrementing.column.name" not in given:
        found.append(
            Problem(
                "incrementing.column.name",
                "incrementing.column.name: a query needs the column whose number grows; name it.",
            )
        )
    if config.get("transaction.isolation.mode", "").strip() == "SQL_SERVER_SNAPSHOT":
        found.append(
            Problem(
                "transaction.isolation.mode",
                "transaction.isolation.mode: SQL_SERVER_SNAPSHOT is of a database that this version has "
                "not; remove it.",
            )
        )
    return found


def warnings(config: Config) -> list[str]:
    return [
        f"'{key}' has no effect: {why}" for key, why in WITHOUT_EFFECT.items() if config.get(key, "").strip()
    ]
