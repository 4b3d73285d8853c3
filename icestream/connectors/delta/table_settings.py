"""The settings of single tables: `delta.table.<name>.<setting>`, or the default of all tables; and where a
table is. Used by the checks of a config and by whoever opens a table."""

from __future__ import annotations

from typing import Final

from icestream.api.config import Config
from icestream.tables.given import Given

LOCATION: Final = "delta.location"
AUTO_CREATE_PROPS: Final = "delta.tables.auto-create-props."
WRITE_PROPS: Final = "delta.tables.write-props."


def table_setting(config: Config, table: str, name: str) -> Given:
    """`name` as in `id-columns`; an empty value if nobody gives it."""
    default = f"delta.tables.default-{name}"
    for key in (f"delta.table.{table}.{name}", default):
        if value := config.get(key, "").strip():
            return Given(key, value)
    return Given(default, "")


def location_of(config: Config, table: str) -> str:
    """Where a table is: its own place, or below that of all tables, a folder for each part of its name."""
    if own := config.get(location_key(table), "").strip():
        return own
    return f"{config.get(LOCATION, '').strip().rstrip('/')}/{table.replace('.', '/')}"


def location_key(table: str) -> str:
    return f"delta.table.{table}.location"
