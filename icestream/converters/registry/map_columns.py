"""Arrow maps of entries that were read; of equal keys the last one wins, as in Java's maps."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from icestream.records.rows import Flags, Indexes
from icestream.records.schema import ConnectSchema

_TABLE: Final = 4_000_000
"""Up to so many pairs of map and key are looked up in a table; more are sorted."""


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
