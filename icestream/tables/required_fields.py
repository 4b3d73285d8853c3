"""Which rows lack a value that their table requires. Used by the writers of tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def missing_required(rows: pa.Table) -> dict[int, str]:
    """Row number → which required field it lacks. Almost always empty, and then cheap."""
    found: dict[int, str] = {}
    if not rows.num_rows:
        return found  # Arrow cannot combine no chunks of every type
    for field, column in zip(rows.schema, rows.itercolumns(), strict=True):
        if not _requires_something(field):
            continue
        values = column.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks)
        _look(field, values, np.arange(len(values)), field.name, found)
    return found


def _requires_something(field: pa.Field) -> bool:
    return not field.nullable or any(_requires_something(child) for child in _children(field.type))


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pt.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if pt.is_list(kind):
        return [kind.value_field]
    if pt.is_map(kind):
        return [kind.item_field]
    return []


def _look(
    field: pa.Field,
    values: pa.Array,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    path: str,
    found: dict[int, str],
) -> None:
    """`rows` tells for each value the row that it belongs to."""
    if not field.nullable and values.null_count:
        for row in rows[values.is_null().to_numpy(zero_copy_only=False)].tolist():
            found.setdefault(row, f"field '{path}' is required by the table and has no value")
    inner = [child for child in _children(field.type) if _requires_something(child)]
    if not inner:
        return
    there = values.is_valid().to_numpy(zero_copy_only=False)
    if pt.is_struct(field.type):
        present = values.filter(pa.array(there))
        for child in inner:
            column = present.field(field.type.get_field_index(child.name))
            _look(child, column, rows[there], f"{path}.{child.name}", found)
        return
    lengths = pc.fill_null(pc.list_value_length(_as_list(values)), 0).to_numpy(zero_copy_only=False)
    items = _as_list(values).flatten()
    if pt.is_map(field.type):
        items = items.field(1)
    _look(inner[0], items, np.repeat(rows, lengths), f"{path}[]", found)


def _as_list(values: pa.Array) -> pa.Array:
    if not pt.is_map(values.type):
        return values
    entries = pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
    return pa.ListArray.from_arrays(
        values.offsets, entries, mask=values.is_null() if values.null_count else None
    )
