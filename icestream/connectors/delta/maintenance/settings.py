"""The settings `icestream.maintenance.*` of the Delta sink."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.tables.maintenance_settings import DAY_MS, MaintenanceKeys

MAINTENANCE: Final = MaintenanceKeys(
    (
        Setting(
            "enabled",
            Type.BOOLEAN,
            False,
            "Whether the tables are maintained: small files are merged, files that the table no longer has "
            "are removed.",
        ),
        Setting("compaction.enabled", Type.BOOLEAN, True, "Merge small data files (OPTIMIZE)."),
        Setting(
            "compaction.min-files",
            Type.INT,
            10,
            "The small files of a partition are merged once there are so many.",
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
            "expire.enabled",
            Type.BOOLEAN,
            True,
            "Remove files that commits have taken out of the table (VACUUM), once a day.",
        ),
        Setting(
            "expire.older-than-ms",
            Type.LONG,
            7 * DAY_MS,
            "They are removed so long after that, in milliseconds: 7 days. Never sooner than the table's "
            "delta.deletedFileRetentionDuration.",
            at_least=0,
        ),
        Setting("orphans.enabled", Type.BOOLEAN, True, "Remove files that the table never had, once a day."),
        Setting(
            "orphans.older-than-ms",
            Type.LONG,
            7 * DAY_MS,
            "Orphans are removed at this age, in milliseconds: 7 days. Never at less than a day, nor what a "
            "live batch has staged.",
            at_least=DAY_MS,
        ),
    ),
    bare_names=True,
)


@dataclass(frozen=True)
class MaintenanceSettings:
    """What is done to one table."""

    enabled: bool
    compaction: bool
    min_files: int
    target_bytes: int
    expire: bool
    older_than: dt.timedelta
    orphans: bool
    orphans_older_than: dt.timedelta


def maintenance_of(config: Config, table: str) -> MaintenanceSettings:
    value = MAINTENANCE.of_table(config, table)
    return MaintenanceSettings(
        enabled=value("enabled"),
        compaction=value("compaction.enabled"),
        min_files=value("compaction.min-files"),
        target_bytes=value("compaction.target-bytes"),
        expire=value("expire.enabled"),
        older_than=dt.timedelta(milliseconds=value("expire.older-than-ms")),
        orphans=value("orphans.enabled"),
        orphans_older_than=dt.timedelta(milliseconds=value("orphans.older-than-ms")),
    )
