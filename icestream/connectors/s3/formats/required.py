"""Nulls where the schema wants a value: no format can write such a record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure
from icestream.records.column import Column
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import ConnectSchema, Kind

_MISSING = Failure("null value for a field that is required and has no default value")


def missing_values(column: Column) -> dict[int, Failure]:
    """The rows that lack something, by position."""
    if column.schema is None:
        return {}
    found = _inside(column.values, column.schema)
    return {} if found is None else dict.fromkeys(np.flatnonzero(found).tolist(), _MISSING)


def _lacking(values: pa.Array, schema: ConnectSchema) -> Flags | None:
    """Rows without a value that is wanted, here or inside; None if there are none."""
    found = _inside(values, schema)
    if not values.null_count or schema.optional or schema.default is not None:
        return found
    null: Flags = values.is_null().to_numpy(zero_copy_only=False)
    return null if found is None else null | found


def _inside(values: pa.Array, schema: ConnectSchema) -> Flags | None:
    if schema.kind is Kind.STRUCT:
        return _in_struct(values, schema)
    if schema.kind is Kind.ARRAY and schema.value is not None:
        lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        return _owners(lengths, _lacking(values.flatten(), schema.value))
    if schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        bounds = values.offsets.to_numpy(zero_copy_only=False)
        items = values.items.slice(bounds[0], bounds[-1] - bounds[0])
        return _owners(np.diff(bounds), _lacking(items, schema.value))
    return None


def _in_struct(values: pa.Array, schema: ConnectSchema) -> Flags | None:
    found: Flags | None = None
    for field, child in zip(schema.fields, values.flatten(), strict=True):
        mine = _lacking(child, field.schema)
        if mine is not None:
            found = mine if found is None else found | mine
    if found is not None and values.null_count:
        found = found & values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _owners(lengths: Indexes, items: Flags | None) -> Flags | None:
    """The rows whose items are flagged."""
    if items is None or not items.any():
        return None
    found = np.zeros(len(lengths), np.bool_)
    found[np.repeat(np.arange(len(lengths)), lengths)[items]] = True
    return found
