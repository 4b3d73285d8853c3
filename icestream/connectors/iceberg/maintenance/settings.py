"""The settings `icestream.maintenance.*` of the Iceberg sink."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.tables.maintenance_settings import DAY_MS as _DAY_MS
from icestream.tables.maintenance_settings import MaintenanceKeys

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

_KEYS: Final = MaintenanceKeys(_OF_A_TABLE)
MAINTENANCE: Final = _KEYS.definition
rhythm_of: Final = _KEYS.rhythm
maintenance_problems: Final = _KEYS.problems


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
    value = _KEYS.of_table(config, table)
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
