"""The settings by which records find their tables: read, and checked. Used by `settings` and `sink`.

Names of tables may come from records, which anybody may send: what they may be made of is a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import Problem
from icestream.api.java_regex import pattern_problem

DYNAMIC: Final = "iceberg.tables.dynamic-enabled"
ROUTE_FIELD: Final = "iceberg.tables.route-field"
TEMPLATE: Final = "iceberg.tables.route-template"
UNMATCHED: Final = "iceberg.tables.route-unmatched"
MOST_TABLES: Final = "iceberg.tables.route-max-tables"

_PLACEHOLDER: Final = re.compile(r"\$\{(topic(?:\.[1-9][0-9]?)?|value\.[^{}$]+)\}")
_PART: Final = re.compile(r"\w[\w-]*")
_LONGEST_NAME: Final = 255
_DEEPEST: Final = 10
_SHOWN: Final = 60


@dataclass(frozen=True)
class RoutePlan:
    """How the records of a job find their tables. Plain data: it crosses process boundaries."""

    field: tuple[str, ...] = ()
    """The path of the route field; empty with a template."""
    patterns: Mapping[str, str] | None = None
    """By table, the pattern that the field must match as a whole; None: the field holds the table's name."""
    template: Sequence[tuple[str, str]] = ()
    """Parts of a name: ("text", …), ("topic", number of a part, or nothing), ("value", path)."""
    rejects_unmatched: bool = False
    has_keys: bool = False
    """Whether rows have keys: then a record without a value deletes one."""

    @property
    def is_by_topic(self) -> bool:
        return bool(self.template) and all(kind != "value" for kind, _ in self.template)


def parsed_template(text: str) -> list[tuple[str, str]]:
    """ValueError, if the template cannot name a table."""
    parts: list[tuple[str, str]] = []
    at = 0
    for match in _PLACEHOLDER.finditer(text):
        parts.append(("text", text[at : match.start()]))
        kind, _, rest = match.group(1).partition(".")
        parts.append((kind, rest))
        at = match.end()
    parts.append(("text", text[at:]))
    literal = "".join(said for kind, said in parts if kind == "text")
    if "$" in literal or "{" in literal or "}" in literal:
        raise ValueError(
            "it has a placeholder that there is not: use ${topic}, ${topic.1} for its first part, or "
            "${value.field.path}"
        )
    sample = "".join(said if kind == "text" else "x" for kind, said in parts)
    if (why := name_problem(sample.lower())) is not None:
        raise ValueError(f"no table can be named like that: {why}")
    return [part for part in parts if part != ("text", "")]


def name_problem(name: str) -> str | None:
    """Why this cannot be the name of a table; None if it can."""
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    if len(name) > _LONGEST_NAME:
        return f"'{shown}' has {len(name)} characters, and {_LONGEST_NAME} are possible"
    parts = name.split(".")
    if len(parts) < 2:
        return f"'{shown}' has no namespace"
    if len(parts) > _DEEPEST:
        return f"'{shown}' has {len(parts)} parts, and {_DEEPEST} are possible"
    if not all(_PART.fullmatch(part) for part in parts):
        return f"'{shown}' has a part that is not made of letters, digits, '_' and '-'"
    return None


def names_come_from_records(config: Config) -> bool:
    """Whether records name tables that the config does not."""
    return bool(config.get(TEMPLATE, "").strip()) or _is_dynamic(config)


def _is_dynamic(config: Config) -> bool:
    return config.get(DYNAMIC, "").strip().lower() == "true"


def route_plan(config: Config, tables: Sequence[str]) -> RoutePlan | None:
    """None: every table gets every record."""
    template, path = config.get(TEMPLATE, "").strip(), config.get(ROUTE_FIELD, "").strip()
    if template:
        return RoutePlan(template=parsed_template(template))
    if not path:
        return None
    parts = tuple(path.split("."))
    if _is_dynamic(config):
        return RoutePlan(parts)
    return RoutePlan(
        parts,
        {table: pattern for table in tables if (pattern := config.get(_pattern_key(table)))},
        rejects_unmatched=config.get(UNMATCHED, "").strip().lower() == "reject",
    )


def route_problems(config: Config, tables: Sequence[str]) -> list[Problem]:
    """What is wrong with the settings of routes; all others are not looked at."""
    template, path = config.get(TEMPLATE, "").strip(), config.get(ROUTE_FIELD, "").strip()
    grows = names_come_from_records(config)
    problems = []
    if grows and tables:
        key = TEMPLATE if template else DYNAMIC
        problems.append(
            Problem(key, f"'{key}' names tables by records and 'iceberg.tables' names them here; remove one")
        )
    if template and (path or _is_dynamic(config)):
        other = ROUTE_FIELD if path else DYNAMIC
        problems.append(Problem(TEMPLATE, f"'{TEMPLATE}' cannot be used together with '{other}'; remove one"))
    if _is_dynamic(config) and not path and not template:
        problems.append(
            Problem(
                ROUTE_FIELD, f"'{DYNAMIC}=true' needs '{ROUTE_FIELD}': name the field that holds the table"
            )
        )
    if path and not all(path.split(".")):
        problems.append(Problem(ROUTE_FIELD, f"'{ROUTE_FIELD}={path}' is not a path of fields; write a.b.c"))
    if template:
        try:
            parsed_template(template)
        except ValueError as error:
            problems.append(Problem(TEMPLATE, f"'{TEMPLATE}={template}' cannot be used: {error}"))
    for table in tables:
        pattern = config.get(_pattern_key(table))
        if pattern and (why := pattern_problem(pattern)):
            problems.append(Problem(_pattern_key(table), f"'{_pattern_key(table)}': {why}"))
    return problems


def route_warnings(config: Config, tables: Sequence[str]) -> list[str]:
    if names_come_from_records(config) or not config.get(ROUTE_FIELD, "").strip():
        return [
            f"'{_pattern_key(table)}' has no effect without '{ROUTE_FIELD}': every table gets every record"
            for table in tables
            if config.get(_pattern_key(table))
        ]
    return [
        f"table '{table}' gets no records: it has no '{_pattern_key(table)}', and '{ROUTE_FIELD}' is set"
        for table in tables
        if not config.get(_pattern_key(table))
    ]


def _pattern_key(table: str) -> str:
    return f"iceberg.table.{table}.route-regex"
