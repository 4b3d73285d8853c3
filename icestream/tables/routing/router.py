"""Which tables a record is for: by patterns on a field, by the name that a field holds, or by a template.

A connector reads the plan from its config; its writer asks `Router` in every task. A chunk is routed
by the distinct values of its route field, not record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.api.java_regex import java_pattern
from icestream.api.sink import TASK_PUT
from icestream.records.column import Column, children, filled
from icestream.records.java_text import java_text
from icestream.records.records import Records
from icestream.records.rows import Indexes
from icestream.records.schema import Kind
from icestream.records.values import Fields, Node, Text, Typed, typed
from icestream.tables.routing.routes import RoutePlan, name_problem

UNROUTED: Final = "route-field"
"""Under this name records are counted that match no table's pattern."""

_REMEMBERED: Final = 10_000
"""Values whose tables a task remembers."""


@dataclass(frozen=True, eq=False)
class Routed:
    """The records of one group, by position: those of each table, those that fail, those that match none."""

    tables: Mapping[str, Indexes]
    failed: Mapping[int, Failure] = field(default_factory=dict)
    unmatched: Indexes = field(default_factory=lambda: np.empty(0, np.int64))


class Router:
    """Routes the groups of a task; remembers what became of the values that it has seen."""

    def __init__(self, plan: RoutePlan) -> None:
        self._plan = plan
        self._patterns = [(table, java_pattern(text)) for table, text in (plan.patterns or {}).items()]
        self._tables_of: dict[str, tuple[str, ...] | Failure] = {}

    def route(self, records: Records) -> Routed:
        if self._plan.template:
            return self._by_name(*self._filled_template(records))
        texts, failed = field_texts(records, self._plan.field)
        if self._plan.patterns is None:
            return self._by_name(texts, failed, _missing(self._plan.field))
        return self._by_pattern(texts, failed)

    def _by_pattern(self, texts: pa.Array, failed: Mapping[int, str]) -> Routed:
        """A value that is no text, such as an object, matches nothing."""
        found = self._grouped(texts, self._matching)
        unmatched = np.sort(np.concatenate([found.tables.pop((), _NONE), np.flatnonzero(_nulls(texts))]))
        tables: dict[str, list[Indexes]] = {}
        for names, rows in found.tables.items():
            for name in names:
                tables.setdefault(name, []).append(rows)
        merged = {name: np.sort(np.concatenate(parts)) for name, parts in tables.items()}
        if not self._plan.rejects_unmatched:
            return Routed(merged, {}, unmatched)
        why = f"field '{'.'.join(self._plan.field)}' matches the route-regex of no table"
        return Routed(merged, dict.fromkeys(unmatched.tolist(), Failure(why, stage=TASK_PUT)))

    def _matching(self, value: str) -> tuple[str, ...]:
        return tuple(table for table, pattern in self._patterns if pattern.fullmatch(value) is not None)

    def _by_name(self, texts: pa.Array, failed: Mapping[int, str], missing: str) -> Routed:
        found = self._grouped(texts, self._named)
        failures = {int(row): Failure(missing, stage=TASK_PUT) for row in np.flatnonzero(_nulls(texts))}
        failures |= {row: Failure(why, stage=TASK_PUT) for row, why in failed.items()}
        failures |= found.failed
        return Routed({names[0]: rows for names, rows in found.tables.items()}, failures)

    def _named(self, value: str) -> tuple[str, ...] | Failure:
        name = value.lower()
        why = name_problem(name, bare_names=self._plan.bare_names, reserved=self._plan.reserved)
        return (name,) if why is None else Failure(f"no table can have this name: {why}", stage=TASK_PUT)

    def _grouped(self, texts: pa.Array, tables: Callable[[str], tuple[str, ...] | Failure]) -> _Groups:
        """The rows of each distinct set of tables."""
        encoded = texts.dictionary_encode()
        values = encoded.dictionary.to_pylist()
        if len(self._tables_of) + len(values) > _REMEMBERED:
            self._tables_of.clear()
        numbers: dict[tuple[str, ...] | Failure, int] = {}
        of_value = np.empty(len(values) + 1, np.int64)
        for at, value in enumerate(values):
            if value not in self._tables_of:
                self._tables_of[value] = tables(value)
            of_value[at] = numbers.setdefault(self._tables_of[value], len(numbers))
        # A null goes behind all others.
        of_value[-1] = len(numbers)
        codes = of_value[pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)]
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(numbers) + 1))
        groups = _Groups({}, {})
        for outcome, number in numbers.items():
            rows = order[bounds[number] : bounds[number + 1]]
            if isinstance(outcome, Failure):
                groups.failed |= dict.fromkeys(rows.tolist(), outcome)
            else:
                groups.tables[outcome] = rows
        return groups

    def _filled_template(self, records: Records) -> tuple[pa.Array, dict[int, str], str]:
        """The names that the template makes; what is filled in adds no part to a name."""
        failed: dict[int, str] = {}
        missing = "the record has no value for the route template"
        columns: list[Any] = []
        for kind, said in self._plan.template:
            if kind == "text":
                columns.append(said)
            elif kind == "topic":
                part = _topic_part(records.topic, said)
                if part is None:
                    why = f"topic '{records.topic}' has no part {said}, which the route template asks for"
                    return pa.nulls(len(records), pa.string()), {}, why
                columns.append(part)
            else:
                path = tuple(said.split("."))
                texts, more = field_texts(records, path)
                failed |= more
                missing = _missing(path)
                columns.append(pc.replace_substring(texts, ".", "_"))
        joined = pc.binary_join_element_wise(*columns, "", null_handling="emit_null")
        if isinstance(joined, pa.Scalar):
            joined = pa.array([joined.as_py()] * len(records), pa.string())
        return joined, failed, missing


@dataclass(eq=False)
class _Groups:
    tables: dict[tuple[str, ...], Indexes]
    failed: dict[int, Failure]


_NONE: Final[Indexes] = np.empty(0, np.int64)


def _missing(path: Sequence[str]) -> str:
    return f"field '{'.'.join(path)}', which names the table, is missing, null or no plain value"


def _nulls(texts: pa.Array) -> Any:
    return texts.is_null().to_numpy(zero_copy_only=False)


def _topic_part(topic: str, number: str) -> str | None:
    if not number:
        return topic.replace(".", "_")
    parts = topic.split(".")
    return parts[int(number) - 1] if int(number) <= len(parts) else None


# -- the route field of a group --


def field_texts(records: Records, path: Sequence[str]) -> tuple[pa.Array, dict[int, str]]:
    """The values at a path as Java prints them; null where there is none. Rows whose value is an object or a
    list are null, too, and told with the reason."""
    failed: dict[int, str] = {}
    parts = list(_at_path(records.value, path, np.arange(len(records))))
    if len(parts) == 1 and len(parts[0][0]) == len(records) and _is_scalar(parts[0][1]):
        return _texts(parts[0][1]), failed
    texts = np.full(len(records), None, object)
    for rows, value in parts:
        if _is_scalar(value):
            texts[rows] = _texts(value).to_numpy(zero_copy_only=False)
        elif value is not None:
            why = f"field '{'.'.join(path)}' is an object or a list, and no name of a table"
            nulls = value.nulls if isinstance(value, Column) else np.zeros(len(rows), np.bool_)
            failed |= dict.fromkeys(rows[~nulls].tolist(), why)
    return pa.array(texts, pa.string(), from_pandas=True), failed


def _at_path(
    value: Node | None, path: Sequence[str], rows: Indexes
) -> Iterator[tuple[Indexes, Typed | None]]:
    """What some rows have at a path, in parts of one Java type each."""
    if isinstance(value, Text):
        value = _descended(value, path)
        path = ()
    if not path:
        for part in typed(value, len(rows)) if value is not None else ():
            yield (rows if part.rows is None else rows[part.rows]), part.value
        return
    name, *rest = path
    if isinstance(value, Fields):
        yield from _at_path(value.get(name), rest, rows)
    elif isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
        held = children(filled(value))
        yield from _at_path(filled(held[name]) if name in held else None, rest, rows)
    elif isinstance(value, Column) and pt.is_map(value.values.type):
        item = value.schema.value if value.schema is not None else None
        found = pc.map_lookup(value.values, pa.scalar(name, value.values.type.key_type), "last")
        yield from _at_path(Column(found, item), rest, rows)


def _descended(text: Text, path: Sequence[str]) -> Text:
    for name in path:
        text = text.child(name)
    return text


def _is_scalar(value: Typed | None) -> TypeGuard[Column]:
    return isinstance(value, Column) and not pt.is_nested(value.values.type)


def _texts(column: Column) -> pa.Array:
    """Scalars as Java prints them, by their distinct values."""
    values = column.values
    if pt.is_string(values.type) or pt.is_null(values.type):
        return values.cast(pa.string())
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    encoded = values.dictionary_encode()
    printed = [java_text(one) if _is_plain(one) else str(one) for one in encoded.dictionary.to_pylist()]
    return pa.array(printed, pa.string()).take(encoded.indices)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | bool | int | float)
