"""The fields of struct columns as Java's `Struct.get` and `put` see them. For the transforms that rebuild
structs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, children, filled
from icestream.records.records import Failure
from icestream.records.rows import Flags


def read_fields(column: Column, *, defaults: bool) -> dict[str, Column]:
    """By name. A field's default stands in for a null unless the struct itself is null."""
    found = children(column)
    if not defaults:
        return found
    nulls = column.nulls
    return {name: defaulted(field, nulls) for name, field in found.items()}


def defaulted(column: Column, struct_nulls: Flags) -> Column:
    """A field with its default in place of nulls, but not where the struct around it is null."""
    full = filled(column)
    if full is column or not struct_nulls.any():
        return full
    rows = pa.array(np.arange(len(column)), mask=struct_nulls)
    return Column(full.values.take(rows), column.schema)


def nulls_refused(name: str, column: Column) -> dict[int, Failure]:
    """The rows that cannot go into a struct's field, as the field has to have a value there."""
    schema = column.schema
    if schema is None or schema.optional or not column.values.null_count:
        return {}
    why = Failure(f'Invalid value: null used for required field: "{name}", schema type: {schema.kind}')
    return dict.fromkeys(np.flatnonzero(column.nulls).tolist(), why)
