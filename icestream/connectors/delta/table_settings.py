"""The settings of single tables: `delta.table.<name>.<setting>`, or the default of all tables; and where a
table is. Used by the checks of a config and by whoever opens a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config

LOCATION: Final = "delta.location"
AUTO_CREATE_PROPS: Final = "delta.tables.auto-create-props."
WRITE_PROPS: Final = "delta.tables.write-props."


@dataclass(frozen=True)
class Given:
    """What a config says, and under which key: errors name it."""

    key: str
    value: str

    def __bool__(self) -> bool:
        return bool(self.value)


def table_setting(config: Config, table: str, name: str) -> Given:
    """`name` as in `id-columns`; an empty value if nobody gives it."""
    default = f"delta.tables.default-{name}"
    for key in (f"delta.table.{table}.{name}", default):
        if value := config.get(key, "").strip():
            return Given(key, value)
    return Given(default, "")


def names_in(given: Given) -> list[str]:
    """A list of columns."""
    return [name.strip() for name in given.value.split(",") if name.strip()]


def location_of(config: Config, table: str) -> str:
    """Where a table is: its own place, or below that of all tables, a folder for each part of its name."""
    if own := config.get(location_key(table), "").strip():
        return own
    return f"{config.get(LOCATION, '').strip().rstrip('/')}/{table.replace('.', '/')}"


def location_key(table: str) -> str:
    return f"delta.table.{table}.location"
