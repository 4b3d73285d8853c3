"""The settings of the Iceberg sink: keys of the Apache and Tabular connectors, and which of them we honour.

Found by name through `icestream.plugins`; validated by the control plane, read by the sink.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type, subset
from icestream.api.errors import Problem
from icestream.connectors.iceberg.catalogs.hadoop_settings import hadoop_problems, hadoop_warnings
from icestream.connectors.iceberg.catalogs.keys import key_problems, key_warnings, likely_kind
from icestream.connectors.iceberg.maintenance.settings import MAINTENANCE, maintenance_problems
from icestream.connectors.iceberg.partition_by import terms
from icestream.connectors.iceberg.table_settings import BY_BARE_NAME, bare_name, table_setting
from icestream.connectors.iceberg.write_properties import manifest_problems, write_problems, write_warnings
from icestream.tables.given import names_in
from icestream.tables.routing.settings import RouteSettings

ROUTES: Final = RouteSettings("iceberg")
WRITE_PREFIXES: Final = ("iceberg.tables.write-props.", "iceberg.table.write-props.")
AUTO_CREATE_PROPS: Final = "iceberg.tables.auto-create-props."
_UPSERTS: Final = "iceberg.tables.upsert-mode-enabled"
_CDC_FIELD: Final = "iceberg.tables.cdc-field"
_MOST_LEVELS: Final = 30
"""Of the path of a field: types of thousands of levels end the process that looks at them."""
_OUR_PROPERTIES: Final = "icestream."
_PARTITION_BY: Final = re.compile(r"iceberg\.tables\.default-partition-by|iceberg\.table\..+\.partition-by")


def _only_kafka_facts(names: list[str]) -> str | None:
    known = ("topic", "partition", "offset", "timestamp")
    strange = [name for name in names if name not in known]
    return f"'{strange[0]}' is none of {', '.join(known)}" if strange else None


def _setting(name: str, type_: Type, default: object, doc: str, *, at_least: int | None = None) -> Setting:
    return Setting(name, type_, default, doc, at_least=at_least)


ICEBERG_SINK: Final = (
    ConfigDef(
        (
            _setting(
                "iceberg.tables",
                Type.LIST,
                [],
                "The tables, as namespace.name, separated by commas. Without a route each gets every record.",
            ),
            *ROUTES.settings(),
            _setting(
                "iceberg.tables.default-commit-branch",
                Type.STRING,
                None,
                "The branch of each table to commit to; main when absent.",
            ),
            _setting(
                "iceberg.tables.default-id-columns",
                Type.STRING,
                None,
                "Columns that identify a row, separated by commas, such as id,region: for upserts, and the "
                "identifier fields of tables that are created.",
            ),
            _setting(
                "iceberg.tables.default-partition-by",
                Type.STRING,
                None,
                "Partitions of tables that are created, such as day(time),bucket(id, 16),region. A wrong one "
                "is an error, and no table.",
            ),
            _setting(
                "iceberg.tables.auto-create-enabled",
                Type.BOOLEAN,
                False,
                "Create tables that do not exist, and namespaces, from the records of their first batch.",
            ),
            _setting(
                "iceberg.tables.evolve-schema-enabled",
                Type.BOOLEAN,
                False,
                "Add the columns and nested fields that the table lacks, widen int to long, float to double "
                "and decimals, and make columns optional where a schema or a null says so, all in the commit "
                "of the rows. Off: fields that the table lacks are left out.",
            ),
            _setting(
                "iceberg.tables.schema-force-optional",
                Type.BOOLEAN,
                False,
                "New columns are optional on every level, whatever the schema of a record says.",
            ),
            _setting(
                "iceberg.tables.schema-case-insensitive",
                Type.BOOLEAN,
                False,
                "Fields match columns whatever their case, on every level.",
            ),
            _setting(
                "iceberg.tables.cdc-field",
                Type.STRING,
                None,
                "The field with the kind of change, such as _cdc.op: records insert, update and delete rows. "
                "Needs id columns, and Iceberg's jar in the worker's Spark. A key of Tabular's sink, taken "
                "with both classes.",
            ),
            _setting(
                "iceberg.tables.upsert-mode-enabled",
                Type.BOOLEAN,
                False,
                "A record replaces the row with the same id columns; one without a value deletes it. Needs "
                "what cdc-field needs. A key of Tabular's sink, taken with both classes.",
            ),
            _setting(
                "iceberg.control.topic",
                Type.STRING,
                "control-iceberg",
                "The topic of the events about commits; created with one partition if it is missing.",
            ),
            _setting(
                "iceberg.control.group-id",
                Type.STRING,
                None,
                "With Tabular's class: the consumer group in which the offsets of the topics are, such as "
                "cg-control-<name>, where Tabular's sink left them. Apache's class never had it.",
            ),
            _setting(
                "iceberg.control.group-id-prefix",
                Type.STRING,
                "cg-control-",
                "How the names of the groups begin in which Java's tasks read the control topic.",
            ),
            _setting(
                "iceberg.control.commit.interval-ms",
                Type.INT,
                300_000,
                "Milliseconds from commit to commit while records come in; a batch that is full "
                "(icestream.commit.rows, icestream.commit.bytes) is committed at once.",
                at_least=1,
            ),
            _setting(
                "iceberg.control.commit.timeout-ms",
                Type.INT,
                None,
                "Milliseconds that the commit to one table may take; then its outcome is unknown, and the "
                "table is asked before the batch is planned again. 300000 when absent. (In Java, 30000: how "
                "long the coordinator waits for its workers, before it commits a part. Here a batch is "
                "committed whole.)",
                at_least=1,
            ),
            _setting(
                "iceberg.control.commit.threads",
                Type.INT,
                None,
                "How many tables of a batch are committed at the same time; when absent, twice the cores, "
                "or 1 for upserts, whose commits are Spark jobs.",
                at_least=1,
            ),
            _setting(
                "iceberg.control.commit.max-consecutive-failures",
                Type.INT,
                None,
                "After so many failed commits in a row (lost races, unknown outcomes, a catalog that is "
                "away) the connector is FAILED. Absent, it plans again as long as it takes. (In Java: 1.)",
                at_least=1,
            ),
            _setting(
                "iceberg.connect.group-id",
                Type.STRING,
                None,
                "The consumer group whose offsets follow the tables; connect-<name> when absent.",
            ),
            _setting(
                "iceberg.coordinator.transactional.prefix",
                Type.STRING,
                "",
                "Put before the transactional id of the job, which is <group>-coordinator: for clusters "
                "that allow ids of some prefix only.",
            ),
            _setting(
                "iceberg.coordinator-executor-keep-alive-timeout-ms",
                Type.LONG,
                120_000,
                "How long Java's coordinator keeps idle threads.",
            ),
            _setting(
                "iceberg.catalog",
                Type.STRING,
                "iceberg",
                "The catalog's name: in events, and in the rows of a SQL catalog, where other engines must "
                "give the same.",
            ),
            _setting(
                "icestream.iceberg.json-columns",
                Type.LIST,
                [],
                "Fields, such as payload or event.attributes, that become columns of JSON text, not structs.",
            ),
            Setting(
                "icestream.iceberg.kafka-columns",
                Type.LIST,
                [],
                "Which of topic, partition, offset and timestamp each row gets as a column "
                "_kafka_metadata_….",
                check=_only_kafka_facts,
            ),
            _setting(
                "iceberg.hadoop-conf-dir",
                Type.STRING,
                None,
                "A folder with Hadoop's files, core-site.xml and so on, below one of the worker's "
                "icestream.hadoop.conf.folders.",
            ),
        ),
        prefixes=(
            "iceberg.catalog.",
            "iceberg.hadoop.",
            "iceberg.kafka.",
            "iceberg.tables.auto-create-props.",
            "iceberg.tables.write-props.",
            "iceberg.table.write-props.",
        ),
    )
    + MAINTENANCE
)

_TABLE_SETTINGS: Final = (
    ("commit-branch", "The branch to commit to; main when absent."),
    ("id-columns", "Columns that identify a row, for upserts and if we create the table."),
    ("partition-by", "Partitions, if we create the table."),
    ("route-regex", "Records whose route field it matches as a whole go to this table."),
)

_TABLE_KEY: Final = re.compile(rf"iceberg\.table\.(.+)\.(?:{'|'.join(name for name, _ in _TABLE_SETTINGS)})")

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "iceberg.catalog.name": "the catalog's name is that of 'iceberg.catalog', as in the Java sink",
    "iceberg.control.group-id-prefix": "tasks do not read the control topic, so they have no groups there",
    "iceberg.coordinator-executor-keep-alive-timeout-ms": "threads that commit end with their commit",
}


def definition(config: Config) -> ConfigDef:
    """The sink's settings together with those of the tables that this config names."""
    return ICEBERG_SINK + ConfigDef(
        tuple(
            _setting(f"iceberg.table.{table}.{name}", Type.STRING, None, doc)
            for table in [*tables(config), *_tables_of_keys(config)]
            for name, doc in _TABLE_SETTINGS
        )
        + tuple(
            _setting(f"iceberg.table.{table}.{name}", Type.STRING, None, doc)
            for table in sorted({bare_name(table) for table in tables(config)})
            for name, doc in _TABLE_SETTINGS
            if name in BY_BARE_NAME
        )
    )


def _tables_of_keys(config: Config) -> list[str]:
    """Where records name the tables: those that the config has settings for."""
    if not ROUTES.names_come_from_records(config):
        return []
    found = (_TABLE_KEY.fullmatch(key) for key in config)
    return sorted({match.group(1) for match in found if match})


def tables(config: Config) -> list[str]:
    return [table.strip() for table in config.get("iceberg.tables", "").split(",") if table.strip()]


def is_upsert(config: Config) -> bool:
    """Whether records change the rows of their keys."""
    values = ICEBERG_SINK.parse(config)
    return bool(values["iceberg.tables.upsert-mode-enabled"] or values["iceberg.tables.cdc-field"])


def id_columns(config: Config, table: str) -> list[str]:
    """The columns that identify a row, as the config has them; empty: as the table has them."""
    return names_in(table_setting(config, table, "id-columns"))


def commit_branch(config: Config, table: str) -> str:
    """The branch that a table's rows are committed to."""
    own = config.get(f"iceberg.table.{table}.commit-branch", "").strip()
    return own or config.get("iceberg.tables.default-commit-branch", "").strip() or "main"


def group_of(name: str, config: Config) -> str:
    """The consumer group of a connector."""
    return own_group(config) or f"connect-{name}"


def own_group(config: Config) -> str | None:
    """The consumer group that the config names: Tabular's sink keeps the offsets of the topics in its own."""
    values = ICEBERG_SINK.parse(config)
    of_tabular = values["iceberg.control.group-id"] if _is_tabular(config) else None
    return values["iceberg.connect.group-id"] or of_tabular or None


def _is_tabular(config: Config) -> bool:
    return config.get("connector.class", "").startswith("io.tabular.")


def write_props(config: Config) -> dict[str, str]:
    """The table properties that the connector sets for its own writes."""
    return {key: value for prefix in WRITE_PREFIXES for key, value in subset(config, prefix).items()}


def problems(config: Config) -> list[Problem]:
    """What this version cannot honour, and what no version could."""
    return [
        *_table_problems(config),
        *_catalog_problems(config),
        *key_problems(config),
        *hadoop_problems(config),
        *write_problems(config, WRITE_PREFIXES),
        *_new_table_problems(config),
        *_cdc_problems(config),
        *maintenance_problems(config),
    ]


def warnings(config: Config) -> list[str]:
    return [
        *(f"'{key}' has no effect: {reason}" for key, reason in WITHOUT_EFFECT.items() if config.get(key)),
        *_group_warnings(config),
        *key_warnings(likely_kind(subset(config, "iceberg.catalog.")), config),
        *hadoop_warnings(config),
        *ROUTES.warnings(config, tables(config)),
        *_deletion_warnings(config),
        *write_warnings(config, WRITE_PREFIXES),
    ]


def _cdc_problems(config: Config) -> list[Problem]:
    levels = config.get(_CDC_FIELD, "").count(".") + 1
    if levels <= _MOST_LEVELS:
        return []
    return [
        Problem(
            _CDC_FIELD,
            f"'{_CDC_FIELD}' leads {levels} levels deep, and {_MOST_LEVELS} are possible; correct it",
        )
    ]


def _deletion_warnings(config: Config) -> list[str]:
    """A record without a value has no field that names its table."""
    upserts = config.get(_UPSERTS, "").strip().lower() == "true" and not config.get(_CDC_FIELD)
    if not upserts or ROUTES.problems(config, tables(config)):
        return []
    plan = ROUTES.plan(config, tables(config))
    if plan is None or plan.is_by_topic:
        return []
    return [
        f"records without a value delete nothing, and are counted as filtered: with '{_UPSERTS}' they delete "
        "the row of their key, but a field of the value names the table here; route by "
        "'iceberg.tables.route-template' with ${topic} alone, or mark deletions by 'iceberg.tables.cdc-field'"
    ]


def _group_warnings(config: Config) -> list[str]:
    if not config.get("iceberg.control.group-id") or not config.get("connector.class"):
        return []
    if _is_tabular(config) and not config.get("iceberg.connect.group-id"):
        return []
    return [
        "'iceberg.control.group-id' has no effect: it names the group of the offsets with Tabular's class "
        "only, and unless 'iceberg.connect.group-id' does"
    ]


def _table_problems(config: Config) -> list[Problem]:
    named = tables(config)
    if problems := ROUTES.problems(config, named):
        return problems
    if ROUTES.names_come_from_records(config):
        return []
    if not named:
        return [
            Problem(
                "iceberg.tables", "'iceberg.tables' is missing: name the table to write to, as namespace.name"
            )
        ]
    return [
        Problem(
            "iceberg.tables", f"'iceberg.tables' names '{name}' without a namespace; write namespace.{name}"
        )
        for name in named
        if "." not in name.strip(".")
    ]


def _new_table_problems(config: Config) -> list[Problem]:
    """What would be wrong with any table that is created."""
    found: list[Problem] = write_problems(config, (AUTO_CREATE_PROPS,))
    found += [
        Problem(f"{AUTO_CREATE_PROPS}{key}", f"'{AUTO_CREATE_PROPS}{key}': {why}")
        for key, why in manifest_problems(subset(config, AUTO_CREATE_PROPS))
    ]
    version = config.get(f"{AUTO_CREATE_PROPS}format-version", "2").strip()
    if version not in ("1", "2"):
        key = f"{AUTO_CREATE_PROPS}format-version"
        found.append(Problem(key, f"Invalid value '{version}' for {key}: 1 and 2 are written here; set 2."))
    elif version == "1" and is_upsert(config):
        key = f"{AUTO_CREATE_PROPS}format-version"
        found.append(Problem(key, f"Invalid value '1' for {key}: upserts need 2; set 2, or remove the key."))
    for key in subset(config, AUTO_CREATE_PROPS):
        if key.startswith(_OUR_PROPERTIES):
            found.append(
                Problem(
                    f"{AUTO_CREATE_PROPS}{key}",
                    f"'{AUTO_CREATE_PROPS}{key}' is where a job writes its offsets; remove it",
                )
            )
    for key, value in config.items():
        if not _PARTITION_BY.fullmatch(key) or not value.strip():
            continue
        try:
            terms(value)
        except ValueError as error:
            found.append(Problem(key, f"Invalid value '{value}' for {key}: {error}; correct it."))
    return found


def _catalog_problems(config: Config) -> list[Problem]:
    if any(key.startswith("iceberg.catalog.") for key in config):
        return []
    return [
        Problem(
            "iceberg.catalog",
            "no 'iceberg.catalog.*' key is set; begin with 'iceberg.catalog.type' and 'iceberg.catalog.uri'",
        )
    ]
