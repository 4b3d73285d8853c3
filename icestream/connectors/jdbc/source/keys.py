"""The keys of the JDBC source: Confluent's with their defaults, Aiven's, and one of ours. Declared by the
plugin; `checks` tells what does not go together, `settings` what a config means."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from typing import Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.java_regex import pattern_problem
from icestream.connectors.jdbc.connection_settings import CONNECTION

MODES: Final = ("bulk", "timestamp", "incrementing", "timestamp+incrementing")
_GRANULARITIES: Final = (
    "connect_logical",
    *(f"{unit}_{form}" for unit in ("micros", "nanos") for form in ("long", "string", "iso_datetime_string")),
)
_NUMERIC: Final = ("none", "precision_only", "best_fit", "best_fit_eager_double")
ISOLATIONS: Final = {
    "DEFAULT": "",
    "READ_UNCOMMITED": "READ_UNCOMMITTED",
    "READ_UNCOMMITTED": "READ_UNCOMMITTED",
    "READ_COMMITED": "READ_COMMITTED",
    "READ_COMMITTED": "READ_COMMITTED",
    "REPEATABLE_READ": "REPEATABLE_READ",
    "SERIALIZABLE": "SERIALIZABLE",
    "SQL_SERVER_SNAPSHOT": "SQL_SERVER_SNAPSHOT",
}
WITHOUT_EFFECT: Final = {
    "poll.linger.ms": "rows are sent as soon as they are read",
    "max.buffer.size": "a turn holds at most 100 × batch.max.rows",
    "table.monitoring.startup.polling.limit.ms": "a task looks for its tables itself",
    "date.calendar.system": "dates are those of the Gregorian calendar, also before 1582",
    "table.names.qualify": "tables always have their full names in statements",
    "sql.quote.identifiers": "names are always quoted, see quote.sql.identifiers",
    "engine.shutdown.timeout": "a statement under way is cancelled",
}


def _patterns(values: Sequence[str]) -> str | None:
    for value in values:
        if reason := pattern_problem(value.strip()):
            return f"'{value}' is no pattern: {reason}"
    return None


def _mapping(values: Sequence[str]) -> str | None:
    for value in values:
        pattern, colon, column = value.rpartition(":")
        if not colon or not pattern or not column.strip():
            return f"'{value}' is not of the form PATTERN:COLUMN"
        if reason := pattern_problem(pattern.strip()):
            return f"'{pattern}' is no pattern: {reason}"
    return None


def _numeric(value: str) -> str | None:
    return None if value.lower() in _NUMERIC else f"String must be one of: {', '.join(_NUMERIC)}"


def _zone(value: str) -> str | None:
    try:
        zoneinfo.ZoneInfo(value)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return "no such time zone; write a name such as UTC or Europe/Berlin"
    return None


def _is_prefix(value: str) -> str | None:
    if len(value) > 249:
        return "Topic prefix may be at most 249 characters long"
    return (
        None
        if all(c.isascii() and (c.isalnum() or c in "._-") for c in value)
        else ("only letters, digits, '.', '_' and '-' are allowed in names of topics")
    )


JDBC_SOURCE: Final = CONNECTION + ConfigDef(
    (
        Setting(
            "catalog.pattern",
            Type.STRING,
            None,
            "Only tables whose catalog is like this pattern of SQL; of MySQL: whose database is.",
            importance="MEDIUM",
        ),
        Setting(
            "schema.pattern",
            Type.STRING,
            None,
            "Only tables whose schema is like this pattern of SQL.",
            importance="HIGH",
        ),
        Setting(
            "table.whitelist",
            Type.LIST,
            [],
            "The tables to read: NAME, SCHEMA.NAME or CATALOG.SCHEMA.NAME.",
            importance="MEDIUM",
        ),
        Setting("table.blacklist", Type.LIST, [], "Tables not to read.", importance="MEDIUM"),
        Setting(
            "table.include.list",
            Type.LIST,
            [],
            "Patterns (Java's) of the names of the tables to read.",
            check=_patterns,
            importance="MEDIUM",
        ),
        Setting(
            "table.exclude.list",
            Type.LIST,
            [],
            "Patterns (Java's) of the names of tables not to read.",
            check=_patterns,
            importance="MEDIUM",
        ),
        Setting(
            "table.types",
            Type.LIST,
            ["TABLE"],
            "Kinds of tables to read: TABLE, VIEW, PARTITIONED TABLE, MATERIALIZED VIEW, FOREIGN TABLE.",
            importance="LOW",
        ),
        Setting(
            "numeric.precision.mapping",
            Type.BOOLEAN,
            False,
            "The same as numeric.mapping=precision_only.",
            importance="LOW",
        ),
        Setting(
            "numeric.mapping",
            Type.STRING,
            None,
            "What NUMERIC columns become: none: Decimal; precision_only: whole numbers where there is no "
            "digit behind the point; best_fit: whole numbers or FLOAT64 where they fit; "
            "best_fit_eager_double: FLOAT64 also where they do not.",
            check=_numeric,
            importance="LOW",
        ),
        Setting(
            "date.calendar.system",
            Type.STRING,
            "LEGACY",
            "The calendar of dates before 1582.",
            choices=("LEGACY", "PROLEPTIC_GREGORIAN"),
            importance="LOW",
        ),
        Setting(
            "db.timezone", Type.STRING, "UTC", "The time zone of timestamps that have none.", check=_zone
        ),
        Setting(
            "quote.sql.identifiers",
            Type.STRING,
            "ALWAYS",
            "ALWAYS: names are as they are written; NEVER: they are found in any case. Statements always "
            "quote them.",
            choices=("ALWAYS", "NEVER"),
            ignores_case=True,
        ),
        Setting(
            "mode",
            Type.STRING,
            REQUIRED,
            "What is read in each poll: bulk: all rows; incrementing: those with a greater number; "
            "timestamp: those with a later timestamp; timestamp+incrementing: by both.",
            choices=MODES,
            importance="HIGH",
        ),
        Setting(
            "incrementing.column.name",
            Type.STRING,
            "",
            "The column whose number grows with each new row; empty: the one that the database counts up "
            "itself.",
            importance="MEDIUM",
        ),
        Setting(
            "incrementing.column.mapping",
            Type.LIST,
            [],
            "Such columns by table, as PATTERN:COLUMN.",
            check=_mapping,
        ),
        Setting(
            "incrementing.initial",
            Type.LONG,
            None,
            "Where an incrementing read without an offset begins (Aiven's): after this number.",
        ),
        Setting(
            "timestamp.column.name",
            Type.LIST,
            [],
            "The columns that tell when a row changed; the first that is not null counts.",
            importance="MEDIUM",
        ),
        Setting(
            "timestamp.columns.mapping",
            Type.LIST,
            [],
            "Such columns by table, as PATTERN:[COLUMN|COLUMN].",
            check=_mapping,
        ),
        Setting(
            "timestamp.initial",
            Type.LONG,
            None,
            "Where a read by timestamps without an offset begins, in milliseconds since 1970; -1: at the "
            "time of the first start.",
            importance="MEDIUM",
        ),
        Setting("timestamp.initial.ms", Type.LONG, None, "The same as timestamp.initial (Aiven's)."),
        Setting(
            "timestamp.granularity",
            Type.STRING,
            "connect_logical",
            "How timestamps are sent: connect_logical: Connect's Timestamp, in milliseconds; the others: "
            "numbers or texts.",
            choices=_GRANULARITIES,
            ignores_case=True,
            importance="LOW",
        ),
        Setting(
            "validate.non.null",
            Type.BOOLEAN,
            True,
            "Whether the columns that are read by must be NOT NULL.",
            importance="LOW",
        ),
        Setting(
            "query",
            Type.STRING,
            "",
            "Read the rows of this query rather than tables. It may have a WHERE of its own.",
            importance="MEDIUM",
        ),
        Setting("query.masked", Type.PASSWORD, None, "The same, hidden in answers and logs."),
        Setting(
            "query.suffix",
            Type.STRING,
            "",
            "Is added at the end of every statement that reads rows.",
            importance="LOW",
        ),
        Setting(
            "query.retry.attempts",
            Type.INT,
            -1,
            "How often a read that fails is tried again; -1: as icestream.retry.max says.",
            at_least=-1,
            importance="LOW",
        ),
        Setting(
            "transaction.isolation.mode",
            Type.STRING,
            "DEFAULT",
            "The isolation of the statements that read; DEFAULT: the database's own.",
            choices=tuple(ISOLATIONS),
            importance="LOW",
        ),
        Setting(
            "poll.interval.ms",
            Type.INT,
            5000,
            "How often each table is asked for new rows.",
            at_least=0,
            importance="HIGH",
        ),
        Setting(
            "batch.max.rows",
            Type.INT,
            1000,
            "Rows at a time. A turn, which is one transaction, has at most 100 times as many.",
            at_least=1,
            importance="LOW",
        ),
        Setting("max.buffer.size", Type.INT, 0, "Of Java's task.", importance="LOW"),
        Setting("poll.linger.ms", Type.LONG, 5000, "Of Java's task.", importance="LOW"),
        Setting(
            "table.poll.interval.ms",
            Type.LONG,
            60000,
            "How often tables that are new or gone are looked for.",
            at_least=1,
            importance="LOW",
        ),
        Setting(
            "table.monitoring.startup.polling.limit.ms",
            Type.LONG,
            10000,
            "Of Java's connector.",
            importance="LOW",
        ),
        Setting(
            "timestamp.delay.interval.ms",
            Type.LONG,
            0,
            "Rows are read this long after their timestamps: for timestamps that others than the "
            "database choose.",
            at_least=0,
            importance="HIGH",
        ),
        Setting(
            "topic.prefix",
            Type.STRING,
            REQUIRED,
            "Goes before the name of the table, for the name of the topic; with a query it is the whole "
            "name.",
            check=_is_prefix,
            importance="HIGH",
        ),
        Setting("table.names.qualify", Type.BOOLEAN, True, "Of Aiven's connector.", importance="LOW"),
        Setting("sql.quote.identifiers", Type.BOOLEAN, True, "Of Aiven's connector.", importance="LOW"),
        Setting("engine.shutdown.timeout", Type.LONG, 0, "Of Java's task.", importance="LOW"),
        Setting(
            "icestream.jdbc.transaction.wait.ms",
            Type.LONG,
            60000,
            "How long new rows wait for open transactions of the database that have not written to the "
            "table yet. For those that have, they always wait.",
            at_least=0,
        ),
    ),
    prefixes=("jdbc.credentials.provider.",),
)
