"""Values of a group as Python's own, in the form in which the JSON converter would write them without
schemas; used by `validator` for all that is not JSON text.
"""

from __future__ import annotations

import base64
import math
from itertools import islice
from typing import Any

import pyarrow as pa

from icestream.records.column import Column, children, filled
from icestream.records.plain import plain
from icestream.records.values import Node
from icestream.validation.used_fields import UsedFields


def as_json(node: Node, used: UsedFields | None = None) -> list[Any]:
    """ABSENT where a map lacks the key. Fields of structs that nobody used at may be left out."""
    return plain(node, len(node), lambda column: _values(filled(column), used))


def _values(column: Column, used: UsedFields | None) -> list[Any]:
    kind = column.values.type
    if pa.types.is_struct(kind):
        return _structs(column, used)
    if pa.types.is_map(kind):
        return _entries(column)
    if pa.types.is_list(kind):
        return _cut(column.values, as_json(Column(column.values.flatten(), _schema_of_values(column))))
    if pa.types.is_temporal(kind):
        whole = pa.int64() if kind.bit_width == 64 else pa.int32()
        return list(column.values.cast(whole).to_pylist())
    objects: list[Any] = column.values.to_pylist()
    if pa.types.is_binary(kind):
        return [None if one is None else base64.b64encode(one).decode() for one in objects]
    if pa.types.is_floating(kind):
        return [one if one is None or math.isfinite(one) else _spelt(one) for one in objects]
    return objects


def _structs(column: Column, used: UsedFields | None) -> list[Any]:
    fields = {
        name: as_json(field, None if used is None else used[name])
        for name, field in children(column).items()
        if used is None or name in used
    }
    rows = zip(*fields.values(), strict=True) if fields else iter([()] * len(column))
    return [
        None if null else dict(zip(fields, row, strict=True))
        for row, null in zip(rows, column.nulls.tolist(), strict=True)
    ]


def _entries(column: Column) -> list[Any]:
    """Objects where keys are strings, otherwise lists of pairs."""
    kind, schema = column.values.type, column.schema
    entry = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
    lists = column.values.cast(pa.list_(entry))
    keys, values = lists.flatten().flatten()
    pairs = zip(
        as_json(Column(keys, schema.key if schema else None)),
        as_json(Column(values, _schema_of_values(column))),
        strict=True,
    )
    cut = _cut(lists, [list(pair) for pair in pairs])
    return [None if one is None else dict(one) for one in cut] if pa.types.is_string(kind.key_type) else cut


def _schema_of_values(column: Column) -> Any:
    return column.schema.value if column.schema else None


def _cut(lists: pa.Array, elements: list[Any]) -> list[Any]:
    coming = iter(elements)
    lengths = lists.value_lengths().to_pylist()
    return [None if length is None else list(islice(coming, length)) for length in lengths]


def _spelt(number: float) -> str:
    """JSON has no such numbers; Java writes their names."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
