"""The settings `icestream.maintenance.*` of the Iceberg sink, for a connector and for single tables of it.

`icestream.maintenance.table.<namespace.name>.<key>` holds for one table, and before that of the connector.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.config import Config, ConfigDef, Setting, Type, subset
from icestream.api.errors import Problem
from icestream.api.maintenance import MaintenanceRhythm

PREFIX: Final = "icestream.maintenance."
TABLE_PREFIX: Final = f"{PREFIX}table."

_DAY_MS: Final = 86_400_000

_OF_A_TABLE: Final = (
    Setting(
        "enabled",
        Type.BOOLEAN,
        False,
        "Whether the tables are maintained: small files are merged, old snapshots expire, orphans go.",
    ),
    Setting(
        "compaction.enabled", Type.BOOLEAN, True, "Merge small data files, and apply deletes of rows to them."
    ),
    Setting(
        "compaction.min-files",
        Type.INT,
        10,
        "The small files of a partition are merged once there are so many; a data file with so many delete "
        "files is written again without the deleted rows.",
        at_least=2,
    ),
    Setting(
        "compaction.target-bytes",
        Type.LONG,
        128 * 1024 * 1024,
        "The size of merged files, in bytes. A file of three quarters of it is no longer small.",
        at_least=1024,
    ),
    Setting(
        "compaction.deletes-percent",
        Type.INT,
        10,
        "A data file is written again when this percentage of its rows is deleted.",
        at_least=1,
    ),
    Setting(
        "manifests.min-count", Type.INT, 10, "Small manifests are merged once there are so many.", at_least=2
    ),
    Setting(
        "expire.enabled", Type.BOOLEAN, True, "Expire old snapshots, and remove the files only they had."
    ),
    Setting(
        "expire.older-than-ms",
        Type.LONG,
        5 * _DAY_MS,
        "Snapshots expire at this age, in milliseconds: 5 days.",
        at_least=0,
    ),
    Setting(
        "expire.retain-last",
        Type.INT,
        20,
        "The newest snapshots of each branch that stay, however old.",
        at_least=1,
    ),
    Setting(
        "expire.max-snapshots",
        Type.INT,
        500,
        "The most snapshots that a branch keeps, however young they are: every commit writes the whole list "
        "anew.",
        at_least=1,
    ),
    Setting("orphans.enabled", Type.BOOLEAN, True, "Remove files that no snapshot has, once a day."),
    Setting(
        "orphans.older-than-ms",
        Type.LONG,
        3 * _DAY_MS,
        "Orphans are removed at this age, in milliseconds: 3 days. Never at less than a day, nor what a "
        "live batch has staged.",
        at_least=_DAY_MS,
    ),
)

_OF_A_CONNECTOR: Final = (
    Setting(
        "interval-ms",
        Type.LONG,
        60_000,
        "Milliseconds from one look at a table to the next, if it has had a commit.",
        at_least=1,
    ),
    Setting(
        "commits",
        Type.INT,
        20,
        "After so many commits a table is looked at even if that time has not passed.",
        at_least=1,
    ),
)

MAINTENANCE: Final = ConfigDef(
    tuple(
        Setting(PREFIX + one.name, one.type, one.default, one.doc, at_least=one.at_least)
        for one in (_OF_A_TABLE[0], *_OF_A_CONNECTOR, *_OF_A_TABLE[1:])
    ),
    prefixes=(TABLE_PREFIX,),
)

_KEYS: Final[Mapping[str, Setting]] = {one.name: one for one in _OF_A_TABLE}


@dataclass(frozen=True)
class MaintenanceSettings:
    """What is done to one table."""

    enabled: bool
    compaction: bool
    min_files: int
    target_bytes: int
    deletes_percent: int
    min_manifests: int
    expire: bool
    older_than: dt.timedelta
    retain_last: int
    max_snapshots: int
    orphans: bool
    orphans_older_than: dt.timedelta


def maintenance_of(config: Config, table: str) -> MaintenanceSettings:
    values = MAINTENANCE.parse(config)
    own = subset(config, f"{TABLE_PREFIX}{table}.")

    def value(name: str) -> Any:
        return _KEYS[name].parse(own[name]) if name in own else values[PREFIX + name]

    return MaintenanceSettings(
        enabled=value("enabled"),
        compaction=value("compaction.enabled"),
        min_files=value("compaction.min-files"),
        target_bytes=value("compaction.target-bytes"),
        deletes_percent=value("compaction.deletes-percent"),
        min_manifests=value("manifests.min-count"),
        expire=value("expire.enabled"),
        older_than=dt.timedelta(milliseconds=value("expire.older-than-ms")),
        retain_last=value("expire.retain-last"),
        max_snapshots=value("expire.max-snapshots"),
        orphans=value("orphans.enabled"),
        orphans_older_than=dt.timedelta(milliseconds=value("orphans.older-than-ms")),
    )


def rhythm_of(config: Config, *, aside: bool) -> MaintenanceRhythm | None:
    """None: no table of the connector is maintained."""
    values = MAINTENANCE.parse(config)
    # A word that is neither true nor false is told by `maintenance_problems`.
    switched = [text for key, text in subset(config, TABLE_PREFIX).items() if key.endswith(".enabled")]
    if not values[f"{PREFIX}enabled"] and not any(text.strip().lower() == "true" for text in switched):
        return None
    return MaintenanceRhythm(values[f"{PREFIX}interval-ms"] / 1000, values[f"{PREFIX}commits"], aside)


def maintenance_problems(config: Config) -> list[Problem]:
    """Of the keys of single tables: the others are settings like any."""
    found = []
    for key, text in config.items():
        if not key.startswith(TABLE_PREFIX):
            continue
        rest = key.removeprefix(TABLE_PREFIX)
        # `compaction.enabled` ends like `enabled`: the longest name counts.
        name = max((one for one in _KEYS if rest.endswith(f".{one}")), key=len, default=None)
        if name is None or "." not in rest.removesuffix(f".{name}").strip("."):
            found.append(
                Problem(
                    key,
                    f"'{key}' is not of the form {TABLE_PREFIX}<namespace.table>.<key>; keys are "
                    f"{', '.join(_KEYS)}",
                )
            )
            continue
        setting = _KEYS[name]
        try:
            setting.parse(text)
        except ValueError as error:
            found.append(Problem(key, f"Invalid value {text} for configuration {key}: {error}"))
    return found
