"""The settings by which records find their tables: read, and checked. Used by sinks of tables and their
settings; each has them under a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, Setting, Type
from icestream.api.errors import Problem
from icestream.api.java_regex import pattern_problem
from icestream.tables.routing.routes import RoutePlan, parsed_template

_DYNAMIC: Final = "dynamic-enabled"
_ROUTE_FIELD: Final = "route-field"
_TEMPLATE: Final = "route-template"
_UNMATCHED: Final = "route-unmatched"
_MOST_TABLES: Final = "route-max-tables"


@dataclass(frozen=True)
class RouteSettings:
    """Of the sink whose keys begin with `product`, as in `<product>.tables.route-field`."""

    product: str
    bare_names: bool = False
    """Whether a table may have no namespace."""

    @property
    def _tables(self) -> str:
        return f"{self.product}.tables"

    @property
    def most_tables(self) -> str:
        return f"{self._tables}.{_MOST_TABLES}"

    def settings(self) -> tuple[Setting, ...]:
        """For the sink's table of settings."""
        return (
            Setting(
                f"{self._tables}.{_DYNAMIC}",
                Type.BOOLEAN,
                False,
                f"The value of route-field, in lower case, is the name of a record's table; {self._tables} "
                "is left out.",
            ),
            Setting(
                f"{self._tables}.{_ROUTE_FIELD}",
                Type.STRING,
                None,
                "The field that decides the table, a path such as kind or a.b: by the route-regex of tables, "
                "or by dynamic-enabled.",
            ),
            Setting(
                f"{self._tables}.{_TEMPLATE}",
                Type.STRING,
                None,
                "A record's table by a name such as lake.${topic}, with parts of the topic (${topic.1}) and "
                f"fields (${{value.a.b}}); {self._tables} is left out.",
            ),
            Setting(
                f"{self._tables}.{_UNMATCHED}",
                Type.STRING,
                "filter",
                "What becomes of records that match no route-regex: filter leaves them out and counts them, "
                "reject makes them bad records.",
                choices=("filter", "reject"),
                ignores_case=True,
            ),
            Setting(
                self.most_tables,
                Type.INT,
                1_000,
                "How many tables the records of one batch may name, and a run of the job create.",
                at_least=1,
            ),
        )

    def names_come_from_records(self, config: Config) -> bool:
        """Whether records name tables that the config does not."""
        return bool(self._given(config, _TEMPLATE)) or self._is_dynamic(config)

    def plan(self, config: Config, tables: Sequence[str]) -> RoutePlan | None:
        """None: every table gets every record."""
        template, path = self._given(config, _TEMPLATE), self._given(config, _ROUTE_FIELD)
        if template:
            return RoutePlan(
                template=parsed_template(template, bare_names=self.bare_names), bare_names=self.bare_names
            )
        if not path:
            return None
        parts = tuple(path.split("."))
        if self._is_dynamic(config):
            return RoutePlan(parts, bare_names=self.bare_names)
        return RoutePlan(
            parts,
            {table: pattern for table in tables if (pattern := config.get(self._pattern_key(table)))},
            rejects_unmatched=self._given(config, _UNMATCHED).lower() == "reject",
        )

    def problems(self, config: Config, tables: Sequence[str]) -> list[Problem]:
        """What is wrong with the settings of routes; all others are not looked at."""
        template, path = self._given(config, _TEMPLATE), self._given(config, _ROUTE_FIELD)
        dynamic, field, by_template = (self._key(one) for one in (_DYNAMIC, _ROUTE_FIELD, _TEMPLATE))
        problems = []
        if self.names_come_from_records(config) and tables:
            key = by_template if template else dynamic
            why = f"'{key}' names tables by records and '{self._tables}' names them here; remove one"
            problems.append(Problem(key, why))
        if template and (path or self._is_dynamic(config)):
            other = field if path else dynamic
            why = f"'{by_template}' cannot be used together with '{other}'; remove one"
            problems.append(Problem(by_template, why))
        if self._is_dynamic(config) and not path and not template:
            why = f"'{dynamic}=true' needs '{field}': name the field that holds the table"
            problems.append(Problem(field, why))
        if path and not all(path.split(".")):
            problems.append(Problem(field, f"'{field}={path}' is not a path of fields; write a.b.c"))
        if template:
            try:
                parsed_template(template, bare_names=self.bare_names)
            except ValueError as error:
                problems.append(Problem(by_template, f"'{by_template}={template}' cannot be used: {error}"))
        for table in tables:
            pattern = config.get(self._pattern_key(table))
            if pattern and (why_not := pattern_problem(pattern)):
                problems.append(Problem(self._pattern_key(table), f"'{self._pattern_key(table)}': {why_not}"))
        return problems

    def warnings(self, config: Config, tables: Sequence[str]) -> list[str]:
        field = self._key(_ROUTE_FIELD)
        if self.names_come_from_records(config) or not self._given(config, _ROUTE_FIELD):
            return [
                f"'{self._pattern_key(table)}' has no effect without '{field}': every table gets every record"
                for table in tables
                if config.get(self._pattern_key(table))
            ]
        return [
            f"table '{table}' gets no records: it has no '{self._pattern_key(table)}', and '{field}' is set"
            for table in tables
            if not config.get(self._pattern_key(table))
        ]

    def _key(self, name: str) -> str:
        return f"{self._tables}.{name}"

    def _given(self, config: Config, name: str) -> str:
        return config.get(self._key(name), "").strip()

    def _is_dynamic(self, config: Config) -> bool:
        return self._given(config, _DYNAMIC).lower() == "true"

    def _pattern_key(self, table: str) -> str:
        return f"{self.product}.table.{table}.route-regex"
