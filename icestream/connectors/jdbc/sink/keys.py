"""The keys of the JDBC sink: Confluent's, those that Aiven's has beside or instead of them, and Debezium's.
Declared by the plugins; `settings` tells what a config with them means."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo

from icestream.api.config import ConfigDef, Setting, Type
from icestream.connectors.jdbc.connection_settings import CONNECTION
from icestream.connectors.jdbc.own_tables import CHECKPOINTS
from icestream.connectors.jdbc.sink.plans import (
    INSERT,
    KAFKA,
    NONE,
    RECORD_HEADER,
    RECORD_KEY,
    RECORD_VALUE,
    UPDATE,
    UPSERT,
)
from icestream.connectors.jdbc.sink.table_names import name_problem


def _zone(value: str) -> str | None:
    try:
        ZoneInfo(value)
    except (ValueError, OSError, KeyError):
        return "Invalid time zone identifier"
    return None


_TABLE_TYPES: Final = ("TABLE", "PARTITIONED_TABLE", "VIEW")


def _table_types(values: list[str]) -> str | None:
    strange = [one for one in values if one.upper().replace(" ", "_") not in _TABLE_TYPES]
    return f"'{strange[0]}' is none of {', '.join(_TABLE_TYPES)}" if strange else None


CHECKPOINT_TABLE: Final = Setting(
    "icestream.jdbc.checkpoint.table",
    Type.STRING,
    CHECKPOINTS,
    "The table that keeps how far the job is, as table or schema.table; created if it is missing.",
    check=name_problem,
    group="Icestream",
)
MOST_TABLES: Final = "icestream.jdbc.tables.max"
_OUR_OWN: Final = (
    CHECKPOINT_TABLE,
    Setting(
        MOST_TABLES,
        Type.INT,
        1_000,
        "How many tables the topics of a job may name.",
        at_least=1,
        group="Icestream",
    ),
    Setting(
        "icestream.jdbc.commit.interval.ms",
        Type.LONG,
        1_000,
        "Time from commit to commit while records come in; 0: a commit as soon as there are records.",
        at_least=0,
        group="Icestream",
    ),
)

_MOST_RETRIES: Final = (
    "How often in a row a database that does not answer is asked again before the connector fails; if it is "
    "not set, for as long as it takes."
)
_INSERT_MODE: Final = Setting(
    "insert.mode",
    Type.STRING,
    INSERT,
    "insert, upsert or update.",
    choices=(INSERT, UPSERT, UPDATE),
    ignores_case=True,
    importance="HIGH",
)
_SHARED: Final = (
    _INSERT_MODE,
    Setting(
        "batch.size",
        Type.INT,
        3000,
        "Rows of one statement.",
        at_least=0,
    ),
    Setting(
        "delete.enabled",
        Type.BOOLEAN,
        False,
        "Whether a record without a value deletes the row of its key; needs pk.mode=record_key.",
    ),
    Setting("table.name.format", Type.STRING, "${topic}", "The table; ${topic} is the record's topic."),
    Setting(
        "pk.mode",
        Type.STRING,
        NONE,
        "Where the primary key is from: none, kafka, record_key, record_value.",
        choices=(NONE, KAFKA, RECORD_KEY, RECORD_VALUE),
        ignores_case=True,
        importance="HIGH",
    ),
    Setting(
        "pk.fields",
        Type.LIST,
        [],
        "The columns of the primary key; empty: with kafka __connect_topic, "
        "__connect_partition and __connect_offset, otherwise those of the table, and of a new table all "
        "fields of the key or value.",
    ),
    Setting("fields.whitelist", Type.LIST, [], "The fields of values that are taken; empty: all."),
    Setting("db.timezone", Type.STRING, "UTC", "The clock of columns without a time zone.", check=_zone),
    Setting("auto.create", Type.BOOLEAN, False, "Whether a table that is missing is created."),
    Setting(
        "auto.evolve", Type.BOOLEAN, False, "Whether columns are added that records have and the table lacks."
    ),
    Setting(
        "max.retries",
        Type.INT,
        10,
        _MOST_RETRIES,
        at_least=0,
    ),
    Setting(
        "retry.backoff.ms",
        Type.INT,
        3000,
        "The wait after the first failure, where it is set; it doubles.",
        at_least=0,
    ),
)
CONFLUENT: Final = CONNECTION + ConfigDef(
    (
        *_SHARED,
        Setting(
            "table.types",
            Type.LIST,
            ["TABLE"],
            "Kinds of tables that are written to: TABLE, PARTITIONED_TABLE, VIEW.",
            check=_table_types,
        ),
        Setting(
            "date.timezone",
            Type.STRING,
            "DB_TIMEZONE",
            "The clock of days: DB_TIMEZONE or UTC.",
            choices=("DB_TIMEZONE", "UTC"),
            ignores_case=True,
        ),
        Setting(
            "timestamp.precision.mode",
            Type.STRING,
            "MICROSECONDS",
            "What the numbers of timestamp.fields.list are: MICROSECONDS or NANOSECONDS since 1970.",
            choices=("MICROSECONDS", "NANOSECONDS"),
            ignores_case=True,
        ),
        Setting("timestamp.fields.list", Type.LIST, [], "Fields with numbers that are moments."),
        Setting(
            "date.calendar.system",
            Type.STRING,
            "LEGACY",
            "How old days are counted: LEGACY or PROLEPTIC_GREGORIAN.",
            choices=("LEGACY", "PROLEPTIC_GREGORIAN"),
            ignores_case=True,
        ),
        Setting(
            "string.output.value.column.name",
            Type.STRING,
            "record_value",
            "The column of values that are mere texts.",
        ),
        Setting(
            "quote.sql.identifiers",
            Type.STRING,
            "ALWAYS",
            "Whether names are quoted: ALWAYS or NEVER.",
            choices=("ALWAYS", "NEVER"),
            ignores_case=True,
        ),
        Setting(
            "replace.null.with.default",
            Type.BOOLEAN,
            True,
            "Whether the default of a record's schema takes the place of a null.",
        ),
        Setting(
            "mssql.use.merge.holdlock",
            Type.BOOLEAN,
            True,
            "Of SQL Server, which is not there.",
            importance="LOW",
        ),
        Setting(
            "trim.sensitive.log",
            Type.BOOLEAN,
            False,
            "Whether values are left out of the log.",
            importance="LOW",
        ),
        *_OUR_OWN,
    )
)
AIVEN: Final = CONNECTION + ConfigDef(
    (
        *_SHARED,
        Setting("sql.quote.identifiers", Type.BOOLEAN, True, "Whether names are quoted."),
        Setting("topics.to.tables.mapping", Type.LIST, [], "Tables of topics, as topic:table."),
        Setting(
            "table.name.normalize",
            Type.BOOLEAN,
            False,
            "Whether signs of a topic that are no letters or digits become _.",
        ),
        *_OUR_OWN,
    )
)
DEBEZIUM: Final = ConfigDef(
    (
        Setting("connection.url", Type.STRING, "", "The address of the database.", importance="HIGH"),
        Setting("connection.username", Type.STRING, None, "The user to log in with.", importance="HIGH"),
        Setting("connection.password", Type.PASSWORD, None, "The user's password.", importance="HIGH"),
        _INSERT_MODE,
        Setting(
            "delete.enabled",
            Type.BOOLEAN,
            False,
            "Whether a record without a value deletes the row of its key; needs primary.key.mode=record_key.",
        ),
        Setting(
            "primary.key.mode",
            Type.STRING,
            NONE,
            "Where the primary key is from: none, kafka, record_key, record_value or record_header.",
            choices=(NONE, KAFKA, RECORD_KEY, RECORD_VALUE, RECORD_HEADER),
            ignores_case=True,
        ),
        Setting("primary.key.fields", Type.LIST, [], "The columns of the primary key."),
        Setting(
            "schema.evolution",
            Type.STRING,
            NONE,
            "none, or basic: tables are created and columns added.",
            choices=(NONE, "basic"),
            ignores_case=True,
        ),
        Setting(
            "collection.name.format", Type.STRING, "${topic}", "The table; ${topic} is the record's topic."
        ),
        Setting("table.name.format", Type.STRING, "", "The same by its earlier name."),
        Setting("field.include.list", Type.LIST, [], "Fields that are taken, as field or topic:field."),
        Setting("field.exclude.list", Type.LIST, [], "Fields that are not, as field or topic:field."),
        Setting(
            "use.time.zone", Type.STRING, "UTC", "The clock of columns without a time zone.", check=_zone
        ),
        Setting("quote.identifiers", Type.BOOLEAN, False, "Whether names are quoted."),
        Setting("batch.size", Type.INT, 500, "Rows of one statement.", at_least=1),
        Setting(
            "use.reduction.buffer", Type.BOOLEAN, False, "Whether only the last state of a key is written."
        ),
        Setting(
            "flush.max.retries",
            Type.INT,
            5,
            _MOST_RETRIES,
            at_least=0,
        ),
        Setting(
            "flush.retry.delay.ms",
            Type.LONG,
            1000,
            "The wait after the first failure, where it is set; it doubles.",
            at_least=0,
        ),
        Setting("connection.restart.on.errors", Type.BOOLEAN, False, "Whether connections are opened again."),
        *_OUR_OWN,
    ),
    prefixes=("connection.pool.",),
)


WITHOUT_EFFECT: Final = {
    "batch.size": "rows are copied as they come, and committed every icestream.jdbc.commit.interval.ms",
    "date.calendar.system": "days are counted by the Gregorian calendar, also before it was made",
    "mssql.use.merge.holdlock": "it is about SQL Server",
    "trim.sensitive.log": "values of records are not logged",
}
WITHOUT_EFFECT_OF_DEBEZIUM: Final = {
    "batch.size": WITHOUT_EFFECT["batch.size"],
    "quote.identifiers": "names are always quoted",
    "use.reduction.buffer": "of a key only its last record in a batch is written",
    "connection.restart.on.errors": "connections that break are opened again",
    "connection.pool.": "each task has one connection",
}
"""Keys, or what they begin with, and why."""
