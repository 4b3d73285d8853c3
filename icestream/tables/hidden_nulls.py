"""Nulls of required fields that nobody sees, because a struct around them is null.

Arrow's Parquet writer refuses them all the same. So they are no longer marked as null; readers see the null
of the struct, and never the value below it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt


def may_hide_nulls(kind: pa.DataType) -> bool:
    """Whether columns of the type may have such nulls."""
    if pt.is_struct(kind):
        fields = [kind.field(position) for position in range(kind.num_fields)]
        return any(not one.nullable or may_hide_nulls(one.type) for one in fields)
    if pt.is_list(kind):
        return may_hide_nulls(kind.value_type)
    return pt.is_map(kind) and may_hide_nulls(kind.item_type)


def without_hidden_nulls(rows: pa.Table) -> pa.Table:
    """The rows, of which each required value that is not hidden is there."""
    for position, field in enumerate(rows.schema):
        if may_hide_nulls(field.type):
            chunks = [_shown(chunk, required=not field.nullable) for chunk in rows.column(position).chunks]
            rows = rows.set_column(position, field, pa.chunked_array(chunks, field.type))
    return rows


def _shown(values: pa.Array, *, required: bool) -> pa.Array:
    kind = values.type
    if pt.is_struct(kind):
        fields = [kind.field(position) for position in range(kind.num_fields)]
        children = [
            _shown(values.field(position), required=not field.nullable)
            for position, field in enumerate(fields)
        ]
        mask = None if required or not values.null_count else values.is_null()
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pt.is_list(kind) and may_hide_nulls(kind):
        return _rebuilt(values, [_shown(values.values, required=not kind.value_field.nullable)], required)
    if pt.is_map(kind) and may_hide_nulls(kind):
        items = _shown(values.items, required=not kind.item_field.nullable)
        entries = pa.StructArray.from_arrays([values.keys, items], fields=[kind.key_field, kind.item_field])
        return _rebuilt(values, [entries], required)
    return _without_mask(values) if required and values.null_count else values


def _rebuilt(values: pa.Array, children: list[pa.Array], required: bool) -> pa.Array:
    mask, offsets = values.buffers()[:2]
    kept = None if required else mask
    return pa.Array.from_buffers(
        values.type, len(values), [kept, offsets], offset=values.offset, children=children
    )


def _without_mask(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(values.type, _without_mask(values.storage))
    if pt.is_nested(values.type):
        inner = [values.values] if pt.is_list(values.type) else [_entries(values)]
        return _rebuilt(values, inner, required=True)
    _, *buffers = values.buffers()
    return pa.Array.from_buffers(
        values.type, len(values), [None, *buffers], null_count=0, offset=values.offset
    )


def _entries(values: pa.MapArray) -> pa.Array:
    kind = values.type
    return pa.StructArray.from_arrays([values.keys, values.items], fields=[kind.key_field, kind.item_field])
