"""The job manager of Java workers, configured by environment variables: their names, defaults and checks.

`IcebergPlugin` makes one of these for `icestream job-manager`; `job_manager` has the public names.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.keys import (
    PREFIX,
    key_problems,
    key_warnings,
    known_keys,
    likely_kind,
)
from icestream.connectors.iceberg.catalogs.opening import catalog_kind

_MOST_MINUTES: Final = 60 * 24 * 365


def _minutes_problem(text: str) -> str | None:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    return None if 0 < minutes <= _MOST_MINUTES else "write minutes, such as 5 or 0.5"


def _name_problem(text: str) -> str | None:
    return None if text.isprintable() else "it has characters that cannot be printed"


VARIABLES: Final = ConfigDef(
    (
        Setting("KAFKA_BOOTSTRAP_SERVERS", Type.STRING, REQUIRED, "The Kafka brokers to begin with."),
        Setting(
            "CONNECT_GROUP_ID",
            Type.STRING,
            REQUIRED,
            "The consumer group of the connector: its `iceberg.connect.group-id`, or else `connect-NAME`.",
            check=_name_problem,
        ),
        Setting(
            "SOURCE_GROUP_ID",
            Type.STRING,
            "",
            "The group with which the workers read, if that is another one: then `CONNECT_GROUP_ID` is a "
            "group without members, which keeps the Java coordinator from starting.",
            check=_name_problem,
        ),
        Setting("CONTROL_TOPIC", Type.STRING, REQUIRED, "The connector's `iceberg.control.topic`."),
        Setting("CATALOG_NAME", Type.STRING, REQUIRED, "The connector's `iceberg.catalog`."),
        Setting(
            "JOB_ID",
            Type.STRING,
            "",
            "What logs and metrics call the job; `CONNECT_GROUP_ID` if absent.",
            check=_name_problem,
        ),
        Setting(
            "COMMIT_INTERVAL_MINUTES",
            Type.STRING,
            "5",
            "Time from commit to commit; 0.5 is half a minute.",
            check=_minutes_problem,
        ),
        Setting(
            "COMMIT_TIMEOUT_MINUTES",
            Type.STRING,
            "30",
            "How long a commit waits for workers that do not answer.",
            check=_minutes_problem,
        ),
        Setting(
            "COMMIT_BRANCH",
            Type.LIST,
            [],
            "The branch to commit to; `db.table=branch` for a table with its own, separated by commas.",
        ),
        Setting("COMMIT_THREADS", Type.INT, 4, "How many tables are committed at the same time.", at_least=1),
        Setting(
            "ENABLE_TRANSACTIONS",
            Type.BOOLEAN,
            True,
            "Whether events and offsets of a commit are one Kafka transaction, which shuts out an older "
            "manager.",
        ),
        Setting(
            "TRANSACTIONAL_ID",
            Type.STRING,
            "",
            "Of these transactions; made from `CONNECT_GROUP_ID` if absent, so that each start of the job "
            "has the same.",
            check=_name_problem,
        ),
        Setting(
            "TRANSACTION_TIMEOUT_MINUTES",
            Type.STRING,
            "15",
            "After so long Kafka ends a transaction by itself; at most the brokers' "
            "`transaction.max.timeout.ms`.",
            check=_minutes_problem,
        ),
    )
)
"""Besides these: properties of the catalog (`CATALOG_*`) and Kafka's security (`KAFKA_SASL_*` and others)."""

_CATALOG: Final = "CATALOG_"
_KAFKA_SECURITY: Final = re.compile(r"KAFKA_(?P<key>SECURITY_PROTOCOL|(?:SASL|SSL)_\w+)")
_OF_KUBERNETES: Final = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)")
"""What Kubernetes tells every pod of a service, such as one that is called `catalog`."""
_OURS: Final = re.compile(
    r"(KAFKA_(BOOT|SECUR|SASL|SSL)|CONNECT_GROUP|SOURCE_GROUP|CONTROL_|COMMIT_|TRANSACTION|ENABLE_TRANS|JOB_ID)\w*"
)
"""How the names of our variables begin; many others in a process have nothing to do with us."""


@dataclass(frozen=True)
class IcebergJobConfig:
    """One job that coordinates Java workers. Durations are seconds."""

    bootstrap_servers: str
    group_id: str
    control_topic: str
    catalog_name: str
    # Not in the repr: passwords are among both.
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of the catalog, by the names that they have after `iceberg.catalog.`."""
    kafka_security: Mapping[str, str] = field(default_factory=dict, repr=False)
    source_group_id: str = ""
    job_id: str = ""
    commit_interval: float = 300.0
    commit_timeout: float = 1800.0
    commit_branches: Sequence[str] = ()
    """A branch for all tables, and `table=branch` for those with their own."""
    commit_threads: int = 4
    transactions: bool = True
    transactional_id: str = ""
    transaction_timeout: float = 900.0
    unknown_variables: Sequence[str] = ()
    """Names that look like ours and are not."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> IcebergJobConfig:
        """Raises ConfigError with every variable that is missing or wrong."""
        # An empty variable is one that a template has left out.
        given = {name: value for name, value in environ.items() if value.strip()}
        catalog = _catalog_properties(given)
        problems = [*_variable_problems(given), *_catalog_problems(catalog)]
        if problems:
            raise ConfigError(problems)
        values = VARIABLES.parse({name: given[name] for name in VARIABLES.names if name in given})
        return cls(
            bootstrap_servers=values["KAFKA_BOOTSTRAP_SERVERS"],
            group_id=values["CONNECT_GROUP_ID"],
            control_topic=values["CONTROL_TOPIC"],
            catalog_name=values["CATALOG_NAME"],
            catalog=catalog,
            kafka_security=_kafka_security(given),
            source_group_id=values["SOURCE_GROUP_ID"],
            job_id=values["JOB_ID"] or values["CONNECT_GROUP_ID"],
            commit_interval=_seconds(values["COMMIT_INTERVAL_MINUTES"]),
            commit_timeout=_seconds(values["COMMIT_TIMEOUT_MINUTES"]),
            commit_branches=tuple(values["COMMIT_BRANCH"]),
            commit_threads=values["COMMIT_THREADS"],
            transactions=values["ENABLE_TRANSACTIONS"],
            # Never a random one: it is what shuts out a manager that is still alive somewhere.
            transactional_id=values["TRANSACTIONAL_ID"] or f"{values['CONNECT_GROUP_ID']}-job-manager",
            transaction_timeout=_seconds(values["TRANSACTION_TIMEOUT_MINUTES"]),
            unknown_variables=_unknown_variables(given),
        )

    @property
    def kafka(self) -> dict[str, str]:
        """Settings of Kafka's clients, by Java's names."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.kafka_security}

    @property
    def catalog_config(self) -> dict[str, str]:
        """As a connector's config has them: for `open_catalog`."""
        properties = {f"{PREFIX}{key}": value for key, value in self.catalog.items()}
        return {"iceberg.catalog": self.catalog_name, **properties}

    @property
    def warnings(self) -> list[str]:
        """Variables that have no effect."""
        return [
            *map(_unknown_warning, self.unknown_variables),
            *key_warnings(likely_kind(self.catalog), self.catalog_config),
        ]

    @property
    def secrets(self) -> dict[str, str]:
        """Values that no log may show."""
        hidden = [*self.catalog.items(), *self.kafka_security.items()]
        return {value: f"[{key}]" for key, value in hidden if _SECRET.search(key)}


_SECRET: Final = re.compile(r"password|secret|token|credential|jaas|key", re.IGNORECASE)


def _seconds(minutes: str) -> float:
    return float(minutes) * 60


def _variable_problems(given: Mapping[str, str]) -> Iterator[Problem]:
    for setting in VARIABLES.settings:
        if setting.name in given:
            yield from (
                Problem(setting.name, message.replace("configuration ", "environment variable "))
                for message in setting.problems(given[setting.name])
            )
        elif setting.is_required:
            doc = setting.doc[0].lower() + setting.doc[1:].rstrip(".")
            yield Problem(setting.name, f"environment variable {setting.name} is missing: set it to {doc}")


def _unknown_variables(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        name
        for name in sorted(given)
        if _OURS.fullmatch(name)
        and name not in VARIABLES.names
        and not _KAFKA_SECURITY.fullmatch(name)
        and not _OF_KUBERNETES.fullmatch(name)
    )


def _unknown_warning(name: str) -> str:
    likely = difflib.get_close_matches(name, VARIABLES.names, 1)
    advice = f"did you mean {likely[0]}?" if likely else "docs/job-manager.md has all of them"
    return f"environment variable {name} has no effect: no variable is called so; {advice}"


def _kafka_security(given: Mapping[str, str]) -> dict[str, str]:
    found = ((_KAFKA_SECURITY.fullmatch(name), value) for name, value in given.items())
    return {match["key"].lower().replace("_", "."): value for match, value in found if match}


def _catalog_properties(given: Mapping[str, str]) -> dict[str, str]:
    known = {_as_variable(key): key for key in sorted(known_keys())}
    return {
        _catalog_key(name.removeprefix(_CATALOG), known): value.strip()
        for name, value in given.items()
        if name.startswith(_CATALOG) and name != "CATALOG_NAME" and not _OF_KUBERNETES.fullmatch(name)
    }


def _as_variable(key: str) -> str:
    return re.sub(r"[.\-]", "_", key).upper()


def _catalog_key(name: str, known: Mapping[str, str]) -> str:
    """`JDBC_USER` is `jdbc.user`, `S3_ACCESS_KEY_ID` is `s3.access-key-id`: a variable has neither dots nor
    dashes, so that its key is looked for among those that we know. A name that has some is the key itself."""
    if name in known:
        return known[name]
    if name != name.upper() or "." in name or "-" in name:
        return name
    return name.lower().replace("___", "-").replace("_", ".")


def _catalog_problems(catalog: Mapping[str, str]) -> Iterator[Problem]:
    if not catalog:
        yield Problem(
            "CATALOG_URI",
            "no environment variable says which catalog it is: set CATALOG_CATALOG_IMPL or CATALOG_TYPE, and "
            "CATALOG_URI",
        )
    else:
        try:
            catalog_kind(catalog)
        except ConfigError as error:
            yield from (_of_variable(one.key, one.message) for one in error.problems)
    yield from key_problems({f"{PREFIX}{key}": value for key, value in catalog.items()})


def _of_variable(key: str, message: str) -> Problem:
    variable = f"{_CATALOG}{_as_variable(key.removeprefix(PREFIX))}"
    return Problem(variable, message.replace(key, f"environment variable {variable}"))
