"""Arrow columns as CSV in the way that PostgreSQL's COPY reads it: a null is nothing, a text is quoted."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.types as pt

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_OPTIONS = pcsv.WriteOptions(include_header=False, quoting_style="needed")


def csv_text(rows: pa.Table) -> bytes:
    """The rows, without a header. Texts are quoted, so that an empty one is told from null."""
    columns = [as_text(column) for column in rows.itercolumns()]
    sink = io.BytesIO()
    pcsv.write_csv(pa.table(columns, names=[str(at) for at in range(len(columns))]), sink, _OPTIONS)
    return sink.getvalue()


def as_text(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], column.type)
    kind = values.type
    if pt.is_binary(kind) or pt.is_fixed_size_binary(kind):
        return hex_text(values, "\\x")
    if pt.is_decimal(kind):
        return values.cast(pa.string())
    if pt.is_list(kind):
        return _array_text(values)
    return values


def hex_text(values: pa.Array, prefix: str) -> pa.Array:
    """Bytes as hexadecimal digits, each value with a prefix."""
    values = values.cast(pa.large_binary())
    start, end = 0, 0
    if len(values):
        offsets = np.frombuffer(values.buffers()[1], np.int64)[
            values.offset : values.offset + len(values) + 1
        ]
        start, end = int(offsets[0]), int(offsets[-1])
    else:
        offsets = np.zeros(1, np.int64)
    held = values.buffers()[2]
    data = (
        np.frombuffer(held, np.uint8)[start:end]
        if held is not None and end > start
        else np.empty(0, np.uint8)
    )
    digits = np.empty(2 * len(data), np.uint8)
    digits[0::2], digits[1::2] = _HEX[data >> 4], _HEX[data & 15]
    made = pa.Array.from_buffers(
        pa.large_string(), len(values), [None, pa.py_buffer((offsets - start) * 2), pa.py_buffer(digits)]
    )
    text = pc.binary_join_element_wise(prefix, made.cast(pa.string()), "")
    if values.null_count:
        return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))
    return text


def _array_text(values: pa.Array) -> pa.Array:
    """PostgreSQL's own form of an array: {"a",NULL,"b"}."""
    items: Any = as_text(pa.chunked_array([values.flatten()]))
    if not pt.is_string(items.type):
        items = items.cast(pa.string())
    items = pc.replace_substring(pc.replace_substring(items, "\\", "\\\\"), '"', '\\"')
    quoted = pc.fill_null(pc.binary_join_element_wise('"', items, '"', ""), "NULL")
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), quoted)
    text = pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
    if values.null_count:
        return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))
    return text
