"""Values as Python's own, row by row. For who must see every key, and for tests; columns are the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.records.values import Fields, Listing, Node, Text


def _objects(column: Column) -> list[Any]:
    values: list[Any] = column.values.to_pylist(maps_as_pydicts="strict")
    return values


def plain(node: Node | None, length: int, of_column: Callable[[Column], list[Any]] = _objects) -> list[Any]:
    """One Python value per row; ABSENT where a map lacks the key. Who wants decoded values in another form
    than Arrow's says how."""
    if node is None:
        return [ABSENT] * length
    if isinstance(node, Text):
        return node.objects()
    if isinstance(node, Listing):
        return node.text.objects()
    if isinstance(node, Fields):
        return _maps(node, of_column)
    values = of_column(node)
    if node.absent is None:
        return values
    return [ABSENT if gone else value for value, gone in zip(values, node.absent.tolist(), strict=True)]


def _maps(fields: Fields, of_column: Callable[[Column], list[Any]]) -> list[dict[str, Any]]:
    rest = [{} for _ in range(len(fields))] if fields.rest is None else fields.rest.objects()
    if not fields.named:
        return rest
    rows = [dict(row) for row in rest]
    for node in fields.named.values():
        if isinstance(node, Text):
            node.source.expect(node.path)
    for name, node in fields.named.items():
        for row, value in zip(rows, plain(node, len(fields), of_column), strict=True):
            if value is ABSENT:
                row.pop(name, None)
            else:
                row[name] = value
    return rows
