"""Fields that payloads have and a schema lacks, with inferred types; for schema evolution.

Inference follows Java's table sinks: whole numbers are long, fractions double, objects structs; a null, an
empty object and an empty list tell nothing and make no column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from icestream.records.json_source import parsed

Path = tuple[str, ...]

LIST_ELEMENT = "element"
MAP_VALUE = "value"
NO_LONGER_REQUIRED = "(optional)"
"""Ends the path of a field that the table requires and should not; its type is `pa.null()`, which no field
has."""
_MOST_LEVELS = 30
"""What is nested deeper becomes text: readers of tables recurse into types."""


def new_fields(payloads: Iterable[bytes], schema: pa.Schema) -> dict[Path, pa.DataType]:
    """Every field that the schema lacks, by path; the type fits all payloads given."""
    found: dict[Path, pa.DataType] = {}
    for payload in payloads:
        value = parsed(payload)
        for field_path, kind in missing_in(value, pa.struct(list(schema)), ()):
            found[field_path] = merged(found[field_path], kind) if field_path in found else kind
    return found


def missing_in(value: Any, kind: pa.DataType, path: Path) -> Iterable[tuple[Path, pa.DataType]]:
    """The fields of one value that its type lacks."""
    if isinstance(value, dict) and pt.is_struct(kind):
        for name, item in value.items():
            position = kind.get_field_index(name)
            if position >= 0:
                yield from missing_in(item, kind.field(position).type, (*path, name))
            elif (inferred := inferred_type(item, len(path))) is not None:
                yield (*path, name), inferred
    elif isinstance(value, dict) and pt.is_map(kind):
        for item in value.values():
            yield from missing_in(item, kind.item_type, (*path, MAP_VALUE))
    elif isinstance(value, list) and pt.is_list(kind):
        for item in value:
            yield from missing_in(item, kind.value_type, (*path, LIST_ELEMENT))


_OTHERS: Mapping[type, pa.DataType] = {
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us", "UTC"),
    dt.date: pa.date32(),
    dt.time: pa.time64("us"),
}


def inferred_type(value: Any, level: int = 0) -> pa.DataType | None:
    """The type of a new column for a value, so many levels below the top; None: it tells nothing."""
    if level > _MOST_LEVELS:
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -(2**63) <= value < 2**63 else pa.string()
    if isinstance(value, float):
        return pa.float64()
    for python, kind in _OTHERS.items():
        if isinstance(value, python):
            return kind
    if isinstance(value, dict):
        fields = {name: inferred_type(item, level + 1) for name, item in value.items()}
        known = [pa.field(name, kind) for name, kind in fields.items() if kind is not None]
        return pa.struct(known) if known else None
    if isinstance(value, list):
        element: pa.DataType | None = None
        for kind in (inferred_type(item, level + 1) for item in value):
            if kind is not None:
                element = kind if element is None else merged(element, kind)
        return None if element is None else pa.list_(element)
    return None


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds values of both; text if nothing else does, because text holds everything."""
    if one == other:
        return one
    if pt.is_struct(one) and pt.is_struct(other):
        fields = {one.field(i).name: one.field(i).type for i in range(one.num_fields)}
        for i in range(other.num_fields):
            field = other.field(i)
            fields[field.name] = (
                merged(fields[field.name], field.type) if field.name in fields else field.type
            )
        return pa.struct([pa.field(name, kind) for name, kind in fields.items()])
    if pt.is_list(one) and pt.is_list(other):
        return pa.list_(merged(one.value_type, other.value_type))
    if pt.is_map(one) and pt.is_map(other):
        return pa.map_(merged(one.key_type, other.key_type), merged(one.item_type, other.item_type))
    if pt.is_integer(one) and pt.is_integer(other):
        return pa.int64()
    if _is_number(one) and _is_number(other):
        return pa.float64()
    return pa.string()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def combined(fields: Mapping[Path, pa.DataType], more: Mapping[Path, pa.DataType]) -> dict[Path, pa.DataType]:
    """Both sets of new fields as one; a field inside another new one becomes part of that one's type."""
    result = dict(fields)
    for path, kind in sorted(more.items(), key=lambda item: len(item[0])):
        if pt.is_null(kind):
            result[path] = kind
            continue
        outer = next((path[:end] for end in range(1, len(path)) if path[:end] in result), None)
        if outer is not None:
            result[outer] = merged(result[outer], _wrapped(path[len(outer) :], kind, result[outer]))
        else:
            result[path] = merged(result[path], kind) if path in result else kind
    return result


def _wrapped(rest: Path, kind: pa.DataType, around: pa.DataType) -> pa.DataType:
    """The type that holds `kind` at the path `rest`, in the shape of what is around it."""
    if not rest:
        return kind
    if pt.is_list(around) and rest[0] == LIST_ELEMENT:
        return pa.list_(_wrapped(rest[1:], kind, around.value_type))
    if pt.is_map(around) and rest[0] == MAP_VALUE:
        return pa.map_(around.key_type, _wrapped(rest[1:], kind, around.item_type))
    position = around.get_field_index(rest[0]) if pt.is_struct(around) else -1
    inside = around.field(position).type if position >= 0 else pa.null()
    return pa.struct([pa.field(rest[0], _wrapped(rest[1:], kind, inside))])
