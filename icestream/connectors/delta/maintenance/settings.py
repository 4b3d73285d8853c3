"""The settings `icestream.maintenance.*` of the Delta sink."""

from __future__ import annotations

from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.tables.maintenance.settings import (
    DAY_MS,
    TARGET_BYTES,
    MaintenanceKeys,
    MaintenanceSettings,
    fields_of_settings,
    orphans_older_than,
)

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
        TARGET_BYTES,
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
        orphans_older_than(days=7),
    ),
    bare_names=True,
)


def maintenance_of(config: Config, table: str) -> MaintenanceSettings:
    return MaintenanceSettings(**fields_of_settings(MAINTENANCE.of_table(config, table)))
