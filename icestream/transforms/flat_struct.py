"""Structs that carry a schema, flattened. For Flatten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icestream.records.column import Column, children
from icestream.records.records import Failure
from icestream.records.schema import ConnectSchema, Kind
from icestream.transforms.failures import GroupFailed
from icestream.transforms.flat_text import Join
from icestream.transforms.structs import defaulted, nulls_refused, rebuilt, rebuilt_column


@dataclass(frozen=True)
class FlatStructs:
    column: Column
    failed: Mapping[int, Failure]
    """By position."""


@dataclass(frozen=True)
class _Leaf:
    name: str
    schema: ConnectSchema
    values: pa.Array
    failed: Mapping[int, Failure]


@dataclass(frozen=True)
class _Around:
    """What the structs around a field mean for it."""

    prefix: str
    optional: bool
    default: Mapping[str, Any] | None


def flattened(column: Column, schema: ConnectSchema, join: Join) -> FlatStructs:
    """Raises GroupFailed if the schema cannot be flattened."""
    around = _Around("", schema.optional, schema.default)
    leaves = list(_leaves(column, schema, around, join))
    flat = rebuilt(schema, [(leaf.name, leaf.schema) for leaf in leaves])
    failed: dict[int, Failure] = {}
    for leaf in leaves:
        failed = {**leaf.failed, **failed}
    return FlatStructs(rebuilt_column(flat, [leaf.values for leaf in leaves], len(column)), failed)


def _leaves(column: Column, schema: ConnectSchema, around: _Around, join: Join) -> Iterator[_Leaf]:
    nulls = column.nulls
    for name, child in children(column).items():
        inner = schema[name]
        default = inner.default
        if default is None and around.default is not None:
            default = around.default.get(name)
        within = _Around(join(around.prefix, name), around.optional or inner.optional, default)
        if inner.kind is Kind.STRUCT:
            yield from _leaves(child, inner, within, join)
        elif inner.kind is Kind.MAP:
            raise GroupFailed(
                f"Flatten transformation does not support {inner.kind} for record with schemas (for field "
                f"{within.prefix})."
            )
        else:
            flat = replace(inner, optional=within.optional, default=default)
            values = defaulted(child, nulls).values
            refused = nulls_refused(within.prefix, Column(values, flat))
            failed = {row: why for row, why in refused.items() if not nulls[row]}
            yield _Leaf(within.prefix, flat, values, failed)
