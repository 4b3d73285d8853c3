"""The settings by which records find their tables: read, and checked. Used by the sink and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import Problem
from icestream.api.java_regex import pattern_problem
from icestream.tables.routes import RoutePlan, parsed_template

DYNAMIC: Final = "iceberg.tables.dynamic-enabled"
ROUTE_FIELD: Final = "iceberg.tables.route-field"
TEMPLATE: Final = "iceberg.tables.route-template"
UNMATCHED: Final = "iceberg.tables.route-unmatched"
MOST_TABLES: Final = "iceberg.tables.route-max-tables"


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
