"""The settings `icestream.maintenance.*` of sinks of tables, for a connector and for single tables of it.

`icestream.maintenance.table.<name>.<key>` holds for one table, and before that of the connector. Which keys
there are is each sink's own.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.config import Config, ConfigDef, Setting, Type, subset
from icestream.api.errors import Problem
from icestream.api.maintenance import MaintenanceRhythm

PREFIX: Final = "icestream.maintenance."
TABLE_PREFIX: Final = f"{PREFIX}table."
DAY_MS: Final = 86_400_000

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

TARGET_BYTES: Final = Setting(
    "compaction.target-bytes",
    Type.LONG,
    128 * 1024 * 1024,
    "The size of merged files, in bytes. A file of three quarters of it is no longer small.",
    at_least=1024,
)


def orphans_older_than(days: int) -> Setting:
    return Setting(
        "orphans.older-than-ms",
        Type.LONG,
        days * DAY_MS,
        f"Orphans are removed at this age, in milliseconds: {days} days. Never at less than a day, nor what "
        "a live batch has staged.",
        at_least=DAY_MS,
    )


@dataclass(frozen=True, kw_only=True)
class MaintenanceSettings:
    """What is done to one table, of whatever kind."""

    enabled: bool
    compaction: bool
    min_files: int
    target_bytes: int
    expire: bool
    older_than: dt.timedelta
    orphans: bool
    orphans_older_than: dt.timedelta


def fields_of_settings(value: Callable[[str], Any]) -> dict[str, Any]:
    """The fields of `MaintenanceSettings`, by what the keys of a table say."""
    return {
        "enabled": value("enabled"),
        "compaction": value("compaction.enabled"),
        "min_files": value("compaction.min-files"),
        "target_bytes": value(TARGET_BYTES.name),
        "expire": value("expire.enabled"),
        "older_than": dt.timedelta(milliseconds=value("expire.older-than-ms")),
        "orphans": value("orphans.enabled"),
        "orphans_older_than": dt.timedelta(milliseconds=value("orphans.older-than-ms")),
    }


@dataclass(frozen=True)
class MaintenanceKeys:
    """What can be said of the maintenance of a table."""

    of_a_table: Sequence[Setting]
    """Without the prefix; `enabled` first."""
    bare_names: bool = False
    """Whether a table may have a name without a namespace."""

    @functools.cached_property
    def definition(self) -> ConfigDef:
        return ConfigDef(
            tuple(
                Setting(PREFIX + one.name, one.type, one.default, one.doc, at_least=one.at_least)
                for one in (self.of_a_table[0], *_OF_A_CONNECTOR, *self.of_a_table[1:])
            ),
            prefixes=(TABLE_PREFIX,),
        )

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Setting]:
        return {one.name: one for one in self.of_a_table}

    def of_table(self, config: Config, table: str) -> Callable[[str], Any]:
        """The value of each key for one table."""
        values = self.definition.parse(config)
        own = subset(config, f"{TABLE_PREFIX}{table}.")

        def value(name: str) -> Any:
            return self._by_name[name].parse(own[name]) if name in own else values[PREFIX + name]

        return value

    def rhythm(self, config: Config, *, aside: bool) -> MaintenanceRhythm | None:
        """None: no table of the connector is maintained."""
        values = self.definition.parse(config)
        # A word that is neither true nor false is told by `problems`.
        switched = [text for key, text in subset(config, TABLE_PREFIX).items() if key.endswith(".enabled")]
        if not values[f"{PREFIX}enabled"] and not any(text.strip().lower() == "true" for text in switched):
            return None
        return MaintenanceRhythm(values[f"{PREFIX}interval-ms"] / 1000, values[f"{PREFIX}commits"], aside)

    def problems(self, config: Config) -> list[Problem]:
        """Of the keys of single tables: the others are settings like any."""
        found = []
        for key, text in config.items():
            if not key.startswith(TABLE_PREFIX):
                continue
            rest = key.removeprefix(TABLE_PREFIX)
            # `compaction.enabled` ends like `enabled`: the longest name counts.
            name = max((one for one in self._by_name if rest.endswith(f".{one}")), key=len, default=None)
            if name is None or not self._is_table(rest.removesuffix(f".{name}")):
                shape = "<table>" if self.bare_names else "<namespace.table>"
                found.append(
                    Problem(
                        key,
                        f"'{key}' is not of the form {TABLE_PREFIX}{shape}.<key>; keys are "
                        f"{', '.join(self._by_name)}",
                    )
                )
                continue
            try:
                self._by_name[name].parse(text)
            except ValueError as error:
                found.append(Problem(key, f"Invalid value {text} for configuration {key}: {error}"))
        return found

    def _is_table(self, name: str) -> bool:
        return bool(name.strip(".")) and (self.bare_names or "." in name.strip("."))
