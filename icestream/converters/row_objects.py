"""Schemaless values row by row, as Python's own objects. For who must see every key; columns are the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.records.values import Fields, Listing, Node

Leaves = Callable[[Column], list[Any]]
"""What the values of a scalar column become, one for each row; None for nulls."""


def row_objects(node: Node, leaves: Leaves) -> list[Any]:
    """Dicts, lists and what `leaves` makes of scalars; ABSENT where a key is missing."""
    if isinstance(node, Fields):
        return _dicts(node, leaves)
    if isinstance(node, Listing):
        return node.text.objects()
    if isinstance(node, Column):
        found = leaves(node)
        if node.absent is None:
            return found
        return [ABSENT if absent else one for absent, one in zip(node.absent.tolist(), found, strict=True)]
    return node.objects()


def _dicts(fields: Fields, leaves: Leaves) -> list[Any]:
    rows = [{} for _ in range(len(fields))] if fields.rest is None else map(dict, fields.rest.objects())
    found: list[dict[str, Any]] = list(rows)
    for name, node in fields.named.items():
        values = [ABSENT] * len(found) if node is None else row_objects(node, leaves)
        for row, value in zip(found, values, strict=True):
            if value is ABSENT:
                row.pop(name, None)
            else:
                row[name] = value
    return found
