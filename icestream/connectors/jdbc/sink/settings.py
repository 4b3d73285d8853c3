"""The settings of the JDBC sink: Confluent's keys, those that Aiven's has beside or instead of them, and
Debezium's; and what each config means, in one form. Read by the plugins, and by `sink`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from zoneinfo import ZoneInfo

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.errors import Problem
from icestream.connectors.jdbc.connections import Access, access_from
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
    Keys,
    RowRules,
    Zones,
)
from icestream.connectors.jdbc.sink.table_names import TableNames, name_problem
from icestream.rows.new_columns import GrowthLimit

_CREDENTIALS: Final = "jdbc.credentials.provider."
_DEFAULT_CREDENTIALS: Final = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"
_NO_PROVIDER: Final = (
    "classes of Java are not loaded; remove it, and give connection.user and connection.password"
)


def _zone(value: str) -> str | None:
    try:
        ZoneInfo(value)
    except (ValueError, OSError, KeyError):
        return "Invalid time zone identifier"
    return None


def _only(known: str, why: str) -> Any:
    return lambda value: None if value in ("", known) else f"{why}; remove it"


_TABLE_TYPES: Final = ("TABLE", "PARTITIONED_TABLE", "VIEW")


def _table_types(values: list[str]) -> str | None:
    strange = [one for one in values if one.upper().replace(" ", "_") not in _TABLE_TYPES]
    return f"'{strange[0]}' is none of {', '.join(_TABLE_TYPES)}" if strange else None


CONNECTION: Final = ConfigDef(
    (
        Setting(
            "connection.url",
            Type.STRING,
            "",
            "The address of the database: jdbc:postgresql://host/db, "
            "jdbc:mysql://host/db, jdbc:mariadb://host/db or jdbc:sqlite:path.",
            importance="HIGH",
        ),
        Setting("connection.user", Type.STRING, None, "The user to log in with.", importance="HIGH"),
        Setting("connection.password", Type.PASSWORD, None, "The user's password.", importance="HIGH"),
        Setting(
            "connection.attempts",
            Type.INT,
            3,
            "How often a connection is tried.",
            at_least=1,
            importance="LOW",
        ),
        Setting(
            "connection.backoff.ms",
            Type.LONG,
            10_000,
            "The wait between two tries.",
            at_least=0,
            importance="LOW",
        ),
        Setting(
            "dialect.name",
            Type.STRING,
            "",
            "The dialect: by default that of the address; "
            "PostgreSqlDatabaseDialect, MySqlDatabaseDialect or SqliteDatabaseDialect.",
            importance="LOW",
        ),
        Setting(
            f"{_CREDENTIALS}class",
            Type.CLASS,
            _DEFAULT_CREDENTIALS,
            "Who gives the login: only the default, which is connection.user and connection.password.",
            check=_only(_DEFAULT_CREDENTIALS, _NO_PROVIDER),
            importance="LOW",
        ),
    ),
    prefixes=("connection.",),
)
"""Of Confluent's sink and source alike."""

_CHECKPOINTS: Final = Setting(
    "icestream.jdbc.checkpoint.table",
    Type.STRING,
    CHECKPOINTS,
    "The table that keeps how far the job is, as table or schema.table; created if it is missing.",
    check=name_problem,
    group="Icestream",
)
_MOST_TABLES: Final = "icestream.jdbc.tables.max"
_OUR_OWN: Final = (
    _CHECKPOINTS,
    Setting(
        _MOST_TABLES,
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
_SHARED: Final = (
    Setting(
        "insert.mode",
        Type.STRING,
        INSERT,
        "insert, upsert or update.",
        choices=(INSERT, UPSERT, UPDATE),
        ignores_case=True,
        importance="HIGH",
    ),
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
        Setting(
            "insert.mode",
            Type.STRING,
            INSERT,
            "insert, upsert or update.",
            choices=(INSERT, UPSERT, UPDATE),
            ignores_case=True,
            importance="HIGH",
        ),
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


def warnings(config: Config, without_effect: Mapping[str, str]) -> list[str]:
    return [
        f"'{key}' has no effect: {why}"
        for key in config
        for known, why in without_effect.items()
        if key == known or (known.endswith(".") and key.startswith(known))
    ]


@dataclass(frozen=True)
class SinkSettings:
    """What a config means, in whoever's words."""

    access: Access
    names: TableNames
    rules: RowRules
    checkpoints: str
    creates: bool
    growth: GrowthLimit | None
    limit: GrowthLimit
    types: tuple[str, ...]
    most_tables: int
    most_retries: int
    retry_seconds: float
    commit_seconds: float
    keys: Mapping[str, str] = field(default_factory=dict)
    """Names of keys in this config, for messages."""


def of_confluent(config: Config) -> SinkSettings:
    own = CONFLUENT.parse(config)
    zone = own["db.timezone"]
    unit = "us" if own["timestamp.precision.mode"].upper() == "MICROSECONDS" else "ns"
    rules = RowRules(
        Keys(own["pk.mode"].lower(), tuple(own["pk.fields"])),
        own["insert.mode"].lower(),
        own["delete.enabled"],
        tuple(own["fields.whitelist"]),
        zones=Zones(zone, zone if own["date.timezone"].upper() == "DB_TIMEZONE" else "UTC"),
        moments=dict.fromkeys(own["timestamp.fields.list"], unit),
        defaults=own["replace.null.with.default"],
        text_column=own["string.output.value.column.name"],
    )
    types = tuple(one.upper().replace("_", " ") for one in own["table.types"])
    return _settings(config, own, rules, TableNames(own["table.name.format"]), types)


def of_aiven(config: Config) -> SinkSettings:
    own = AIVEN.parse(config)
    zone = own["db.timezone"]
    rules = RowRules(
        Keys(own["pk.mode"].lower(), tuple(own["pk.fields"])),
        own["insert.mode"].lower(),
        own["delete.enabled"],
        tuple(own["fields.whitelist"]),
        zones=Zones(zone, zone),
    )
    tables = dict(one.split(":", 1) for one in own["topics.to.tables.mapping"] if ":" in one)
    names = TableNames(own["table.name.format"], tables, own["table.name.normalize"])
    quotes = "ALWAYS" if own["sql.quote.identifiers"] else "NEVER"
    return _settings({**config, "quote.sql.identifiers": quotes}, own, rules, names, ("TABLE",))


def of_debezium(config: Config) -> SinkSettings:
    own = DEBEZIUM.parse(config)
    rules = RowRules(
        Keys(own["primary.key.mode"].lower(), tuple(own["primary.key.fields"])),
        own["insert.mode"].lower(),
        own["delete.enabled"],
        tuple(one.rpartition(":")[2] for one in own["field.include.list"]),
        tuple(one.rpartition(":")[2] for one in own["field.exclude.list"]),
        zones=Zones(own["use.time.zone"], "UTC"),
    )
    names = TableNames(own["table.name.format"] or own["collection.name.format"], normalizes=True)
    grows = own["schema.evolution"].lower() == "basic"
    meant = {
        **own,
        "auto.create": grows,
        "auto.evolve": grows,
        "max.retries": own["flush.max.retries"],
        "retry.backoff.ms": own["flush.retry.delay.ms"],
    }
    return _settings(config, meant, rules, names, ("TABLE", "PARTITIONED TABLE"))


def _settings(
    config: Config, own: Mapping[str, Any], rules: RowRules, names: TableNames, types: tuple[str, ...]
) -> SinkSettings:
    limit = GrowthLimit.from_config(config)
    return SinkSettings(
        access_from(config),
        names,
        rules,
        own[_CHECKPOINTS.name],
        own["auto.create"],
        limit if own["auto.evolve"] else None,
        limit,
        types,
        own[_MOST_TABLES],
        own["max.retries"],
        own["retry.backoff.ms"] / 1000,
        own["icestream.jdbc.commit.interval.ms"] / 1000,
    )


def problems(settings: SinkSettings, mode_key: str, fields_key: str) -> list[Problem]:
    """What does not go together. `mode_key` and `fields_key` are the names of these keys in the config."""
    rules = settings.rules
    found = []
    if rules.deletes and rules.keys.mode != RECORD_KEY:
        found.append(
            Problem(
                "delete.enabled", f"delete.enabled=true needs {mode_key}=record_key; set it, or remove this."
            )
        )
    if rules.mode != INSERT and rules.keys.mode == NONE:
        found.append(
            Problem(
                mode_key,
                f"insert.mode={rules.mode} needs a primary key: set {mode_key} to where it is from, such as "
                f"record_key or record_value.",
            )
        )
    if rules.keys.mode == KAFKA and len(rules.keys.fields) not in (0, 3):
        found.append(
            Problem(
                fields_key,
                f"{mode_key}=kafka has three columns, for topic, partition and offset: name three "
                f"in {fields_key}, or none.",
            )
        )
    if settings.names.is_fixed and (why := name_problem(settings.names.format)):
        found.append(Problem("table.name.format", f"table.name.format: {why}."))
    if rules.mode == UPDATE and not rules.keys.fields and rules.keys.mode == RECORD_HEADER:
        found.append(Problem(fields_key, f"{mode_key}=record_header needs {fields_key}: name the headers."))
    return found
