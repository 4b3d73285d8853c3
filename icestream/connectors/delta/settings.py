"""The settings of the Delta sink, in the manner of those of the Iceberg sink: who knows these knows them.

Found by name through `icestream.plugins`; validated by the control plane, read by the sink.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final
from urllib.parse import urlsplit

from icestream.api.config import Config, ConfigDef, Setting, Type, subset
from icestream.api.errors import Problem
from icestream.connectors.delta.files.stage import CODEC, TARGET_BYTES
from icestream.connectors.delta.maintenance.settings import MAINTENANCE
from icestream.connectors.delta.storage import S3, S3_SCHEMES
from icestream.connectors.delta.table_settings import (
    AUTO_CREATE_PROPS,
    LOCATION,
    WRITE_PROPS,
    location_key,
    table_setting,
)
from icestream.tables.routing.routes import name_problem
from icestream.tables.routing.settings import RouteSettings

FOLDERS: Final = Setting(
    "icestream.delta.folders",
    Type.LIST,
    [],
    "The folders of the worker's machine in which Delta tables may be; none if it is not set.",
)
ROUTES: Final = RouteSettings("delta", bare_names=True)
_CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed", "none")
_WRITE_PROPS: Final = (TARGET_BYTES, CODEC)
UPSERTS: Final = "delta.tables.upsert-mode-enabled"
CDC_FIELD: Final = "delta.tables.cdc-field"
_OUR_PROPERTIES: Final = "icestream."


def _only_kafka_facts(names: list[str]) -> str | None:
    known = ("topic", "partition", "offset", "timestamp")
    strange = [name for name in names if name not in known]
    return f"'{strange[0]}' is none of {', '.join(known)}" if strange else None


_OF_THE_SINK: Final = ConfigDef(
    (
        Setting(
            "delta.tables",
            Type.LIST,
            [],
            "The tables, as name or namespace.name, separated by commas. Without a route each gets every "
            "record.",
        ),
        Setting(
            LOCATION,
            Type.STRING,
            None,
            "The folder of all tables, such as s3://bucket/lake or /var/lake: table sales.orders is in "
            "sales/orders below it.",
        ),
        *ROUTES.settings(),
        Setting(
            "delta.tables.default-id-columns",
            Type.STRING,
            None,
            "Columns that identify a row, separated by commas, such as id,region. Of tables that are "
            "created they are NOT NULL.",
        ),
        Setting(
            UPSERTS,
            Type.BOOLEAN,
            False,
            "Replace the row with the same id columns, or add one; a record without a value deletes the row "
            "of its key.",
        ),
        Setting(
            CDC_FIELD,
            Type.STRING,
            None,
            "The field that tells the kind of change by its first letter: insert, create, read and update "
            "replace the row with the same id columns, delete deletes it, truncate deletes all rows.",
        ),
        Setting(
            "delta.tables.default-partition-by",
            Type.STRING,
            None,
            "Partition columns of tables that are created, such as day,region. A wrong one is an error, and "
            "no table.",
        ),
        Setting(
            "delta.tables.auto-create-enabled",
            Type.BOOLEAN,
            False,
            "Create tables that do not exist from the records of their first batch.",
        ),
        Setting(
            "delta.tables.evolve-schema-enabled",
            Type.BOOLEAN,
            False,
            "Add the columns and nested fields that the table lacks, and make columns optional where a "
            "schema or a null says so, in a commit before that of the rows. Off: fields that the table lacks "
            "are left out.",
        ),
        Setting(
            "delta.tables.schema-force-optional",
            Type.BOOLEAN,
            False,
            "New columns are optional, whatever the schema of a record says.",
        ),
        Setting(
            "delta.tables.schema-case-insensitive",
            Type.BOOLEAN,
            False,
            "Fields match columns whatever their case, on every level.",
        ),
        Setting(
            "delta.control.commit.interval-ms",
            Type.INT,
            300_000,
            "Milliseconds from commit to commit while records come in; a batch that is full "
            "(icestream.commit.rows, icestream.commit.bytes) is committed at once.",
            at_least=1,
        ),
        Setting(
            "delta.control.commit.timeout-ms",
            Type.INT,
            None,
            "Milliseconds that the commit to one table may take; then its outcome is unknown, and the table "
            "is asked before the batch is planned again. 300000 when absent.",
            at_least=1,
        ),
        Setting(
            "delta.control.commit.threads",
            Type.INT,
            None,
            "How many tables of a batch are committed at the same time; twice the cores when absent.",
            at_least=1,
        ),
        Setting(
            "delta.control.commit.max-consecutive-failures",
            Type.INT,
            None,
            "After so many failed commits in a row (lost races, unknown outcomes, a storage that is away) "
            "the connector is FAILED. Absent, it plans again as long as it takes.",
            at_least=1,
        ),
        Setting(
            "delta.connect.group-id",
            Type.STRING,
            None,
            "The consumer group whose offsets follow the tables; connect-<name> when absent.",
        ),
        Setting(
            "delta.coordinator.transactional.prefix",
            Type.STRING,
            "",
            "Put before the transactional id of the job, which is <group>-coordinator: for clusters that "
            "allow ids of some prefix only.",
        ),
        Setting(
            "icestream.delta.json-columns",
            Type.LIST,
            [],
            "Fields, such as payload or event.attributes, that become columns of JSON text, not structs.",
        ),
        Setting(
            "icestream.delta.kafka-columns",
            Type.LIST,
            [],
            "Which of topic, partition, offset and timestamp each row gets as a column _kafka_metadata_….",
            check=_only_kafka_facts,
        ),
        Setting(
            f"{S3}endpoint", Type.STRING, None, "The address of a store that is not AWS, with its scheme."
        ),
        Setting(f"{S3}region", Type.STRING, None, "The region of the bucket; us-east-1 when absent."),
        Setting(
            f"{S3}access-key-id",
            Type.STRING,
            None,
            "The login to S3; when absent, what the worker's machine has (variables, profile, role).",
        ),
        Setting(f"{S3}secret-access-key", Type.PASSWORD, None, "The secret of the login to S3."),
        Setting(f"{S3}session-token", Type.PASSWORD, None, "The token of a login that ends."),
        Setting(
            f"{S3}path-style-access",
            Type.BOOLEAN,
            True,
            "Whether the bucket is in the path of an address, not in its host name.",
        ),
    ),
    prefixes=(AUTO_CREATE_PROPS, WRITE_PROPS),
)

DELTA_SINK: Final = _OF_THE_SINK + MAINTENANCE.definition

_TABLE_SETTINGS: Final = (
    ("location", "The folder of the table, where it is not below delta.location."),
    ("id-columns", "Columns that identify a row."),
    ("partition-by", "Partition columns, if we create the table."),
    ("route-regex", "Records whose route field it matches as a whole go to this table."),
)
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]*")
_REGION: Final = re.compile(r"[a-z0-9\-]{1,40}")
_ENDPOINT: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._\-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?(?:/[\w./\-]*)?"
)
_TABLE_KEY: Final = re.compile(rf"delta\.table\.(.+)\.(?:{'|'.join(name for name, _ in _TABLE_SETTINGS)})")


def definition(config: Config) -> ConfigDef:
    """The sink's settings together with those of the tables that this config names."""
    return DELTA_SINK + ConfigDef(
        tuple(
            Setting(f"delta.table.{table}.{name}", Type.STRING, None, doc)
            for table in [*tables(config), *_tables_of_keys(config)]
            for name, doc in _TABLE_SETTINGS
        )
    )


def _tables_of_keys(config: Config) -> list[str]:
    """Where records name the tables: those that the config has settings for."""
    if not ROUTES.names_come_from_records(config):
        return []
    found = (_TABLE_KEY.fullmatch(key) for key in config)
    return sorted({match.group(1) for match in found if match})


def tables(config: Config) -> list[str]:
    return [table.strip() for table in config.get("delta.tables", "").split(",") if table.strip()]


def own_locations(config: Config) -> dict[str, str]:
    """The tables that have a place of their own."""
    named = [*tables(config), *_tables_of_keys(config)]
    return {table: place for table in named if (place := config.get(location_key(table), "").strip())}


def is_upsert(config: Config) -> bool:
    """Whether records change the rows of their keys."""
    return config.get(UPSERTS, "").strip().lower() == "true" or bool(config.get(CDC_FIELD, "").strip())


def locations(config: Config) -> list[tuple[str, str]]:
    """The keys that say where tables are, with their values."""
    of_all = config.get(LOCATION, "").strip()
    own = [(location_key(table), place) for table, place in own_locations(config).items()]
    return [(LOCATION, of_all), *own] if of_all else own


def problems(config: Config) -> list[Problem]:
    """What this version cannot honour, and what no version could."""
    return [
        *_table_problems(config),
        *_location_problems(config),
        *_storage_problems(config),
        *_property_problems(config),
        *_id_problems(config),
        *MAINTENANCE.problems(config),
    ]


def warnings(config: Config) -> list[str]:
    return ROUTES.warnings(config, tables(config))


def _table_problems(config: Config) -> list[Problem]:
    named = tables(config)
    if found := ROUTES.problems(config, named):
        return found
    if ROUTES.names_come_from_records(config):
        return []
    if not named:
        return [Problem("delta.tables", "'delta.tables' is missing: name the table to write to")]
    return [
        Problem("delta.tables", f"'delta.tables' names a table that cannot be: {why}; correct it")
        for name in named
        if (why := name_problem(name, bare_names=True)) is not None
    ]


def _id_problems(config: Config) -> list[Problem]:
    if not is_upsert(config):
        return []
    default = "delta.tables.default-id-columns"
    without = [table for table in tables(config) if not table_setting(config, table, "id-columns")]
    if ROUTES.names_come_from_records(config) and not config.get(default, "").strip():
        return [Problem(default, f"'{default}' is missing: upserts need columns that identify a row")]
    return [
        Problem(
            f"delta.table.{table}.id-columns",
            f"'delta.table.{table}.id-columns' is missing: upserts need columns that identify a row; set it "
            f"or {default}",
        )
        for table in without
    ]


def _location_problems(config: Config) -> list[Problem]:
    found = [
        Problem(key, f"'{key}={_without_login(value)}' {why}")
        for key, value in locations(config)
        if (why := location_problem(value)) is not None
    ]
    without = [table for table in tables(config) if not config.get(location_key(table), "").strip()]
    if not config.get(LOCATION, "").strip() and (without or ROUTES.names_come_from_records(config)):
        found.append(
            Problem(
                LOCATION, f"'{LOCATION}' is missing: name the folder of the tables, such as s3://bucket/lake"
            )
        )
    return found


def _without_login(value: str) -> str:
    return re.sub(r"//[^/@]*@", "//", value)


def location_problem(value: str) -> str | None:
    try:
        parts = urlsplit(value)
    except ValueError:
        return "is no address; write s3://bucket/folder or /folder"
    if parts.scheme not in ("", "file", *S3_SCHEMES):
        return "is neither a folder of this machine nor S3; write s3://bucket/folder or /folder"
    if parts.query or parts.fragment or "@" in parts.netloc or "\\" in value or "\0" in value:
        return "has parts that a folder has not; write s3://bucket/folder or /folder"
    if any(part == ".." for part in parts.path.split("/")):
        return "leads upwards by '..'; write the folder itself"
    if parts.scheme in S3_SCHEMES:
        if not _BUCKET.fullmatch(parts.netloc):
            return "has no name of a bucket; write s3://bucket/folder"
        return None if parts.path.strip("/") else "lacks bucket or folder; write both"
    if parts.netloc:
        return "is neither a folder of this machine nor S3; write s3://bucket/folder or /folder"
    if not parts.path.startswith("/") or posixpath.normpath(parts.path) == "/":
        return "is not the whole path of a folder; begin with '/'"
    return None


def _storage_problems(config: Config) -> list[Problem]:
    endpoint, region = (config.get(f"{S3}{name}", "").strip() for name in ("endpoint", "region"))
    found = []
    if endpoint and not _ENDPOINT.fullmatch(endpoint):
        # Not shown: it may hold a password.
        found.append(
            Problem(
                f"{S3}endpoint",
                f"'{S3}endpoint' lacks its scheme or is no address; write it as https://host:port",
            )
        )
    if region and not _REGION.fullmatch(region):
        # It is part of the name of a host.
        found.append(Problem(f"{S3}region", f"'{S3}region' is no region of AWS, such as eu-central-1"))
    given = [bool(config.get(f"{S3}{name}", "").strip()) for name in ("access-key-id", "secret-access-key")]
    if any(given) and not all(given):
        key = f"{S3}{'secret-access-key' if given[0] else 'access-key-id'}"
        found.append(Problem(key, f"'{key}' is missing: a login has an id and a secret"))
    return found


def _property_problems(config: Config) -> list[Problem]:
    found = []
    for key in subset(config, AUTO_CREATE_PROPS):
        if key.startswith(_OUR_PROPERTIES):
            whole = f"{AUTO_CREATE_PROPS}{key}"
            found.append(Problem(whole, f"'{whole}' has a name that is kept for jobs; remove it"))
    for prefix in (WRITE_PROPS, AUTO_CREATE_PROPS):
        given = subset(config, prefix)
        size, codec = given.get(TARGET_BYTES), given.get(CODEC)
        if size is not None and not re.fullmatch(r"[1-9][0-9]{0,17}", size.strip()):
            key = f"{prefix}{TARGET_BYTES}"
            found.append(Problem(key, f"Invalid value '{size}' for {key}: write a number of bytes."))
        if codec is not None and codec.strip().lower() not in _CODECS:
            key = f"{prefix}{CODEC}"
            found.append(Problem(key, f"Invalid value '{codec}' for {key}: one of {', '.join(_CODECS)}."))
    for key in subset(config, WRITE_PROPS):
        if key not in _WRITE_PROPS:
            whole = f"{WRITE_PROPS}{key}"
            known = ", ".join(_WRITE_PROPS)
            found.append(Problem(whole, f"'{whole}' is none that decides how files are written: {known}"))
    return found
