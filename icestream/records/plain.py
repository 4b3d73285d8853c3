"""Values as Python's own, row by row: for what is rare, and for tests."""

from __future__ import annotations

from typing import Any

from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.records.values import Fields, Listing, Node, Text


def plain(node: Node | None, length: int) -> list[Any]:
    """One Python value per row; ABSENT where a map lacks the key."""
    if node is None:
        return [ABSENT] * length
    if isinstance(node, Text):
        return node.objects()
    if isinstance(node, Listing):
        return node.text.objects()
    if isinstance(node, Fields):
        return _maps(node)
    return _scalars(node)


def _scalars(column: Column) -> list[Any]:
    values: list[Any] = column.values.to_pylist(maps_as_pydicts="strict")
    if column.absent is None:
        return values
    return [ABSENT if gone else value for value, gone in zip(values, column.absent.tolist(), strict=True)]


def _maps(fields: Fields) -> list[dict[str, Any]]:
    rest = [{}] * len(fields) if fields.rest is None else fields.rest.objects()
    if not fields.named:
        return rest
    rows = [dict(row) for row in rest]
    for node in fields.named.values():
        if isinstance(node, Text):
            node.source.expect(node.path)
    for name, node in fields.named.items():
        for row, value in zip(rows, plain(node, len(fields)), strict=True):
            if value is ABSENT:
                row.pop(name, None)
            else:
                row[name] = value
    return rows
