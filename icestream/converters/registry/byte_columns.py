"""Arrow columns made of pieces of one buffer; the readers of Avro and Protobuf share them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.records.rows import Flags, Indexes
from icestream.records.schema import ConnectSchema

_WIDE: Final = 32
"""Bytes of a decimal256."""
_LIMIT: Final = 10**76
_LAYOUTS: Final[dict[pa.DataType, Any]] = {
    pa.date32(): np.int32,
    pa.time32("ms"): np.int32,
    pa.timestamp("ms", "UTC"): np.int64,
}
_TABLE: Final = 4_000_000
"""Up to so many pairs of map and key are looked up in a table; more are sorted."""


def spans(text: bytes, begin: Indexes, end: Indexes, length: int, places: Indexes | None) -> pa.Array:
    """Binary values from pieces of a buffer; `places` says where in the column each goes.

    The pieces come in the order of the buffer. So their bounds are the offsets of an Arrow array in which
    every other value is what lies between them, and taking the wanted ones copies natively.
    """
    if len(text) >= 2**31:
        raise OverflowError("a chunk of 2 GiB or more")
    if not len(begin):
        return pa.nulls(length, pa.binary())
    bounds = np.empty(2 * len(begin), np.int32)
    bounds[0::2], bounds[1::2] = begin, end
    if np.any(bounds[1:] < bounds[:-1]):
        return _spans_one_by_one(text, begin, end, length, places)
    whole = pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(text)]
    )
    wanted = np.arange(0, len(bounds), 2)
    if places is None:
        return whole.take(pa.array(wanted))
    index, nulls = np.zeros(length, np.int64), np.ones(length, np.bool_)
    index[places], nulls[places] = wanted, False
    return whole.take(pa.array(index, mask=nulls))


def _spans_one_by_one(
    text: bytes, begin: Indexes, end: Indexes, length: int, places: Indexes | None
) -> pa.Array:
    """Pieces that overlap, because a broken value read into the next."""
    values: list[bytes | None] = [None] * length
    where = range(length) if places is None else places.tolist()
    for place, low, high in zip(where, begin.tolist(), end.tolist(), strict=True):
        values[place] = text[low:high]
    return pa.array(values, pa.binary())


def varints(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], at: Indexes
) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], Indexes]:
    """The variable-length numbers at some places, which move behind them; and which of them never end."""
    byte = data.take(at, mode="clip")
    at += 1
    value = (byte & 0x7F).astype(np.uint64)
    more = np.flatnonzero(byte > 0x7F)
    shift = 7
    while len(more) and shift <= 63:
        byte = data.take(at[more], mode="clip")
        at[more] += 1
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        more = more[byte > 0x7F]
        shift += 7
    return value, more


def texts(column: pa.Array) -> pa.Array:
    """Binary as strings; what is no UTF-8 is replaced, as Java does."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        values = column.to_pylist()
        return pa.array([None if value is None else value.decode("utf-8", "replace") for value in values])


def strict_texts(column: pa.Array) -> tuple[pa.Array, Flags]:
    """Binary as strings, and which values are no UTF-8; null stands for those."""
    broken: Flags = np.zeros(len(column), np.bool_)
    try:
        return column.cast(pa.string()), broken
    except pa.ArrowInvalid:
        found: list[str | None] = []
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                found.append(None)
                broken[row] = True
        return pa.array(found, pa.string()), broken


def booleans(values: np.ndarray[Any, Any], nulls: Flags | None) -> pa.Array:
    return pa.array(values.astype(np.bool_), mask=nulls)


def numbers(values: np.ndarray[Any, Any], nulls: Flags | None, kind: pa.DataType) -> pa.Array:
    """Values in the layout of an Arrow type (dates and times are numbers there; a decimal is 32 bytes)."""
    if pa.types.is_decimal(kind):
        layout = values
    else:
        layout = values.astype(_LAYOUTS.get(kind) or kind.to_pandas_dtype(), copy=False)
    validity = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(np.ascontiguousarray(layout))])


def decimals(column: pa.Array) -> tuple[np.ndarray[Any, Any], Flags]:
    """Big-endian two's complement of any length as that of 32 bytes, little-endian; and which do not fit."""
    bounds = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    raw = column.buffers()[2]
    data = np.frombuffer(raw, np.uint8) if raw is not None and raw.size else np.zeros(1, np.uint8)
    begin, end = bounds[:-1].astype(np.int64), bounds[1:].astype(np.int64)
    lengths = end - begin
    sign = np.where((lengths > 0) & (data.take(begin, mode="clip") > 0x7F), 0xFF, 0).astype(np.uint8)
    made = np.repeat(sign[:, None], _WIDE, axis=1)
    for place in range(min(_WIDE, int(lengths.max(initial=0)))):
        has = lengths > place
        made[has, place] = data[end[has] - 1 - place]
    return made, _too_wide(column, lengths)


def _too_wide(column: pa.Array, lengths: Indexes) -> Flags:
    wide: Flags = np.zeros(len(column), np.bool_)
    for row in np.flatnonzero(lengths >= _WIDE).tolist():  # 31 bytes always fit into 76 digits
        wide[row] = abs(int.from_bytes(column[row].as_py(), "big", signed=True)) >= _LIMIT
    return wide


def map_array(
    schema: ConnectSchema, keys: pa.Array, values: pa.Array, counts: Indexes, nulls: Flags | None = None
) -> pa.Array:
    """Maps of `counts` entries each, one after the other."""
    owners = np.repeat(np.arange(len(counts)), counts)
    repeated = _repeated(keys, owners, len(counts)) if len(owners) and counts.max() > 1 else None
    if repeated is not None:
        kept = np.flatnonzero(~repeated)
        keys, values = keys.take(pa.array(kept)), values.take(pa.array(kept))
        counts = np.bincount(owners[kept], minlength=len(counts))
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    mask = None if nulls is None else np.append(nulls, False)
    return pa.MapArray.from_arrays(pa.array(offsets, mask=mask), keys, values, type=schema.arrow_type)


def _repeated(keys: pa.Array, owners: Indexes, maps: int) -> Flags | None:
    """Entries whose key comes again later in their map; None if there are none."""
    if pa.types.is_nested(keys.type):
        return None
    encoded = keys.dictionary_encode()
    distinct = len(encoded.dictionary) + 1
    codes = encoded.indices.fill_null(distinct - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = owners * distinct + codes
    if maps * distinct <= _TABLE:
        seen = np.zeros(maps * distinct, np.bool_)
        seen[pairs] = True
        if np.count_nonzero(seen) == len(pairs):
            return None
    _, last = np.unique(pairs[::-1], return_index=True)
    if len(last) == len(pairs):
        return None
    flags = np.ones(len(pairs), np.bool_)
    flags[len(pairs) - 1 - last] = False
    return flags
