"""The settings `icestream.maintenance.*` of the Iceberg sink."""

from __future__ import annotations

from dataclasses import dataclass
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
    TARGET_BYTES,
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
        5 * DAY_MS,
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
    orphans_older_than(days=3),
)

_KEYS: Final = MaintenanceKeys(_OF_A_TABLE)
MAINTENANCE: Final = _KEYS.definition
rhythm_of: Final = _KEYS.rhythm
maintenance_problems: Final = _KEYS.problems


@dataclass(frozen=True, kw_only=True)
class IcebergMaintenance(MaintenanceSettings):
    """What is done to one table."""

    deletes_percent: int
    min_manifests: int
    retain_last: int
    max_snapshots: int


def maintenance_of(config: Config, table: str) -> IcebergMaintenance:
    value = _KEYS.of_table(config, table)
    return IcebergMaintenance(
        **fields_of_settings(value),
        deletes_percent=value("compaction.deletes-percent"),
        min_manifests=value("manifests.min-count"),
        retain_last=value("expire.retain-last"),
        max_snapshots=value("expire.max-snapshots"),
    )
