"""Transforms that users write in Python: functions over Arrow tables, found by entry point.

A package registers a function under the entry point group `icestream.transforms`; a connector uses it with
`transforms.x.type=<name>`, and its other keys `transforms.x.*` are the function's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.json_source import ABSENT
from icestream.records.plain import plain
from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Indexes
from icestream.records.schema import Kind
from icestream.records.values import Fields
from icestream.transforms.catalog import USER_GROUP
from icestream.transforms.failures import GroupFailed, is_null, refused_setting
from icestream.transforms.function_tables import ROW, Misuse, SchemalessTable, StructTable, Tabular
from icestream.transforms.groups import Side, all_failed, merged, pick_keys, without_failed

_MOST_FIELDS: Final = 1000
_TAKEN: Final = f"the records have a field {ROW}, the name of the column that numbers them; rename it"
Function = Callable[[pa.Table, Mapping[str, str]], pa.Table]


@dataclass(frozen=True)
class UserFunction:
    name: str
    function: Function
    settings: Mapping[str, str]

    @classmethod
    def named(cls, name: str, settings: Mapping[str, str]) -> UserFunction:
        """Raises ConfigError if there is no such function, or if it cannot be loaded."""
        point = next(iter(entry_points(group=USER_GROUP, name=name)), None)
        if point is None:
            raise _refused(f"no package has a function '{name}' in the entry point group '{USER_GROUP}'")
        try:
            function = point.load()
        except Exception as error:  # a user's module may raise anything
            why = f"{type(error).__name__}: {error}"
            raise _refused(f"the function '{name}' cannot be loaded from {point.value}: {why}") from None
        if not callable(function):
            raise _refused(f"'{point.value}', which '{name}' stands for, is no function")
        return cls(name, function, dict(settings))

    def apply(self, records: Records) -> Applied:
        value = records.value
        if is_null(value):
            return Applied([records])
        if isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
            if ROW in value.schema:
                return all_failed(records, self._failure(_TAKEN))
            return self._run(records, StructTable.of(value, value.schema))
        if isinstance(value, Fields):
            return self._schemaless(records, value)
        return all_failed(records, self._failure(f"takes records with fields, found: {java_class(value)}"))

    def _schemaless(self, records: Records, fields: Fields) -> Applied:
        expanded = fields.expanded(_MOST_FIELDS)
        if expanded is None:
            return self._halved(records)
        names = list(expanded.named)
        if ROW in names:
            return self._without_taken(records, expanded)
        groups = pick_keys(replace(records, value=expanded), Side.VALUE, names)
        return merged([self._run(one.records, SchemalessTable.of(names, one)) for one in groups])

    def _without_taken(self, records: Records, fields: Fields) -> Applied:
        values = plain(fields.get(ROW), len(records))
        taken = [row for row, value in enumerate(values) if value is not ABSENT]
        outcome = without_failed(
            replace(records, value=fields.put({ROW: None})), dict.fromkeys(taken, self._failure(_TAKEN))
        )
        return merged([Applied([], outcome.failed), *map(self.apply, outcome.records)])

    def _halved(self, records: Records) -> Applied:
        """Fewer records have fewer names."""
        if len(records) == 1:
            return all_failed(records, self._failure(f"takes records of at most {_MOST_FIELDS} fields"))
        middle = len(records) // 2
        halves = np.arange(middle), np.arange(middle, len(records))
        return merged([self.apply(records.take(half)) for half in halves])

    def _run(self, records: Records, tabular: Tabular) -> Applied:
        try:
            results, failed = self._called(tabular.table)
            made = [self._made(records, tabular, one) for one in _of_one_schema(results)]
        except Misuse as misuse:
            return all_failed(records, self._failure(str(misuse)))
        except GroupFailed as refused:
            return all_failed(records, refused.failure)
        why = {int(records.rows[at]): failure for at, failure in failed.items()}
        seen = {*why, *(row for group in made for row in group.rows.tolist())}
        return Applied(made, why, [row for row in records.rows.tolist() if row not in seen])

    def _called(self, table: pa.Table) -> tuple[list[pa.Table], dict[int, Failure]]:
        """Halves the records where the function fails, until those that it fails for are alone."""
        try:
            result = self.function(table, self.settings)
        except Exception as error:  # a user's function may raise anything
            if table.num_rows == 1:
                return [], {table[ROW][0].as_py(): _raised(error)}
            middle = table.num_rows // 2
            results, failed = self._called(table.slice(0, middle))
            more, others = self._called(table.slice(middle))
            return [*results, *more], failed | others
        return [_checked(result, table)], {}

    def _made(self, records: Records, tabular: Tabular, result: pa.Table) -> Records:
        rows: Indexes = result[ROW].to_numpy()
        if not np.all(rows[1:] > rows[:-1]):
            order = np.argsort(rows, kind="stable")
            result, rows = result.take(pa.array(order)), rows[order]
        value = tabular.value(result.drop_columns([ROW]), rows)
        return replace(records.take(rows), value=value)

    def _failure(self, what: str) -> Failure:
        return Failure(f"the function '{self.name}': {what}")


def _raised(error: Exception) -> Failure:
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return Failure(str(error) or name, name)


def _refused(message: str) -> ConfigError:
    return refused_setting("type", message)


def _checked(result: Any, given: pa.Table) -> pa.Table:
    """The result with the numbers of its rows."""
    if not isinstance(result, pa.Table):
        raise Misuse(f"it returned a {type(result).__name__}, and not a pyarrow.Table")
    twice = next((name for name in result.column_names if result.column_names.count(name) > 1), None)
    if twice is not None:
        raise Misuse(f"its result has two columns '{twice}'")
    if ROW not in result.column_names:
        if result.num_rows != given.num_rows:
            raise Misuse(
                f"it returned {result.num_rows} rows for {given.num_rows} records; keep the column {ROW} to "
                "drop records"
            )
        return result.append_column(ROW, given[ROW])
    rows = result[ROW].to_pylist()
    if len(set(rows)) != len(rows) or not set(rows) <= set(given[ROW].to_pylist()):
        raise Misuse(f"its column {ROW} has numbers twice, or others than it was given")
    return result


def _of_one_schema(results: list[pa.Table]) -> list[pa.Table]:
    groups: dict[pa.Schema, list[pa.Table]] = {}
    for one in results:
        if one.num_rows:
            bare = one.replace_schema_metadata(None)
            groups.setdefault(bare.schema, []).append(bare)
    return [pa.concat_tables(group) for group in groups.values()]
