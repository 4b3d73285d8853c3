"""The settings of single tables: `iceberg.table.<name>.<setting>`, or the default of all tables.

Java looks some of them up by the table's full name and some by its bare one; both are taken here. Used by the
checks of a config and by whoever opens a table.
"""

from __future__ import annotations

from typing import Final

from icestream.api.config import Config
from icestream.tables.given import Given

BY_BARE_NAME: Final = ("id-columns", "partition-by")


def table_setting(config: Config, table: str, name: str) -> Given:
    """`name` as in `id-columns`; an empty value if nobody gives it."""
    default = f"iceberg.tables.default-{name}"
    keys = [f"iceberg.table.{one}.{name}" for one in (table, bare_name(table))]
    for key in (*keys, default):
        if value := config.get(key, "").strip():
            return Given(key, value)
    return Given(default, "")


def bare_name(table: str) -> str:
    """Without the namespace."""
    return table.rpartition(".")[2]
