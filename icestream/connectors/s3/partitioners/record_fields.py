"""A field of each record by its dotted name, whether the value has a schema or not. Used by the partitioners
that look into records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from icestream.records.column import Column, children, filled, nulls
from icestream.records.rows import Indexes
from icestream.records.schema import Kind
from icestream.records.values import Fields, Listing, Node, Text, Typed, Value, typed


class NoSuchField(Exception):
    """The schema has no such field, or the value can have none; says why."""


@dataclass(frozen=True, eq=False)
class FoundValues:
    """What some records have in the field: values of one Java type."""

    positions: Indexes
    value: Column | Fields | Listing


def values_at(value: Value, path: Sequence[str], length: int) -> Iterator[FoundValues]:
    """What all records have; null where a map lacks the key, or the path ends early. NoSuchField."""
    if value is None:
        raise NoSuchField("the record has no value")
    if isinstance(value, Column):
        yield FoundValues(np.arange(length), _in_column(value, path))
        return
    if isinstance(value, Listing):
        raise NoSuchField("the value is a list, and not a Struct or Map")
    yield from _in_map(value, path, np.arange(length))


def _in_column(column: Column, path: Sequence[str]) -> Column:
    for name in path:
        if column.schema is None or column.schema.kind is not Kind.STRUCT:
            raise NoSuchField("the value is not of Struct or Map type")
        if name not in column.schema:
            raise NoSuchField(f"the schema has no field '{'.'.join(path)}'")
        column = filled(children(column)[name])
    return column


def _in_map(value: Fields, path: Sequence[str], positions: Indexes) -> Iterator[FoundValues]:
    name, *rest = path
    node: Node | None = value.get(name)
    if isinstance(node, Text):
        # The last step of the path tells what is asked for, so that one pass over the text finds it.
        for step in rest:
            node = node.child(step)
        rest = []
    for part in typed(node, len(positions)):
        mine = positions if part.rows is None else positions[part.rows]
        yield from _further(part.value, rest, mine)


def _further(value: Typed, path: Sequence[str], positions: Indexes) -> Iterator[FoundValues]:
    if not path:
        yield FoundValues(positions, value)
    elif isinstance(value, Fields):
        yield from _in_map(value, path, positions)
    elif isinstance(value, Column) and value.schema is not None:
        yield FoundValues(positions, _in_column(value, path))
    else:
        yield FoundValues(positions, nulls(len(positions)))
