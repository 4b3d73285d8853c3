"""Which tables are read: lists of names, lists of patterns, and how the tasks share them. Pure."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icestream.api.errors import FatalError
from icestream.api.java_regex import java_pattern
from icestream.connectors.jdbc.dialects.base import TableId
from icestream.connectors.jdbc.own_tables import is_own


@dataclass(frozen=True)
class TableChoice:
    """What the config says of the tables to read; empty lists say nothing."""

    names: Sequence[str] = ()
    """`table.whitelist`."""
    without: Sequence[str] = ()
    """`table.blacklist`."""
    patterns: Sequence[str] = ()
    """`table.include.list`."""
    without_patterns: Sequence[str] = ()
    """`table.exclude.list`."""

    def has(self, table: TableId) -> bool:
        forms = name_forms(table)
        if not self.names and is_own(table.name):
            return False
        if self.names and not any(_plain(name) in forms for name in self.names):
            return False
        if any(_plain(name) in forms for name in self.without):
            return False
        if self.patterns and not matches(self.patterns, table):
            return False
        return not matches(self.without_patterns, table)


@dataclass(frozen=True)
class TaskShare:
    """Which tables are one task's: by their names, so that a table that appears moves no other."""

    number: int = 0
    tasks: int = 1

    def has(self, table: TableId) -> bool:
        return zlib.crc32(str(table).encode()) % self.tasks == self.number

    def __str__(self) -> str:
        return f"{self.number} of {self.tasks}"


def name_forms(table: TableId) -> list[str]:
    """How a config may name a table, the fullest form first."""
    return list(dict.fromkeys((str(table), str(TableId("", table.schema, table.name)), table.name)))


def _plain(name: str) -> str:
    return name.replace('"', "").replace("`", "").strip()


def matches(patterns: Iterable[str], table: TableId) -> bool:
    forms = name_forms(table)
    return any(java_pattern(pattern.strip()).fullmatch(form) for pattern in patterns for form in forms)


def mapped(mapping: Sequence[str], table: TableId) -> str | None:
    """What a list of `pattern:value` says for a table; the first that matches counts."""
    for item in mapping:
        pattern, _, value = item.rpartition(":")
        if matches([pattern], table):
            return value.strip()
    return None


def chosen_tables(found: Iterable[TableId], choice: TableChoice) -> list[TableId]:
    """The tables to read. Their topics have their bare names, so no two may share one."""
    tables = [table for table in found if choice.has(table)]
    doubled = [name for name, count in Counter(table.name for table in tables).items() if count > 1]
    if doubled:
        same = ", ".join(str(table) for table in tables if table.name == doubled[0])
        raise FatalError(
            f"the tables {same} would share one topic, which has the bare name; choose one of them with "
            "schema.pattern, catalog.pattern or table.whitelist"
        )
    return tables
