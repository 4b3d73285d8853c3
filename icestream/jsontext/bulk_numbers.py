"""Numbers as JSON, column by column: what `encode.py` would else write one by one.

Java's texts of most floats are the shortest digits that Arrow writes, too; the others are written singly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LETTERS: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8
)
_QUOTE, _PADDING = ord('"'), ord("=")


def float_texts(values: pa.Array, singly: Callable[[Any], str]) -> pa.Array:
    """JSON of floats, null for nulls; `singly` writes those that have an exponent, or are no numbers."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    size = np.abs(numbers)
    is_plain = ((size >= 1e-3) & (size < 1e7)) | (numbers == 0)
    texts = values.cast(pa.string())
    is_whole = is_plain & (np.trunc(np.where(is_plain, numbers, 0)) == numbers)
    if is_whole.any():
        texts = pc.if_else(pa.array(is_whole), pc.binary_join_element_wise(texts, ".0", ""), texts)
    if is_plain.all():
        return texts
    others = values.filter(pa.array(~is_plain)).to_pylist()
    return pc.replace_with_mask(texts, pa.array(~is_plain), pa.array(map(singly, others), pa.string()))


def base64_decimals(values: pa.Array, singly: Callable[[Any], str]) -> pa.Array:
    """The digits of decimals (of 256 bits) as Java's BigInteger has them, in base64 and quotation marks; null
    for nulls. `singly` writes those that do not fit into 64 bits."""
    words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 4)[values.offset :][: len(values)]
    if not len(values):
        return pa.array([], pa.string())
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    low = np.where(valid, words[:, 0], 0)
    fits = (words[:, 1:] == (words[:, :1] >> 63)).all(axis=1) | ~valid
    texts = _base64_integers(np.where(fits, low, 0))
    if not fits.all():
        others = values.filter(pa.array(~fits)).to_pylist()
        texts = pc.replace_with_mask(texts, pa.array(~fits), pa.array(map(singly, others), pa.string()))
    return texts if valid.all() else pc.if_else(pa.array(valid), texts, None)


def _base64_integers(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Each in as few bytes as hold it with its sign."""
    size = numbers ^ (numbers >> 63)
    widths = np.ones(len(numbers), np.int8)
    for width in range(1, 8):
        widths += size >= 2 ** (8 * width - 1)
    data = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    found: list[pa.Array] = []
    places: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    for width in np.unique(widths).tolist():
        places.append(np.flatnonzero(widths == width))
        found.append(_base64_rows(data[places[-1], 8 - width :]))
    return found[0] if len(found) == 1 else _in_order(found, places)


def _base64_rows(data: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.Array:
    """Rows of equally many bytes."""
    count, width = data.shape
    groups = -(-width // 3)
    padded = np.zeros((count, groups * 3), np.uint32)
    padded[:, :width] = data
    bits = (padded[:, 0::3] << 16) | (padded[:, 1::3] << 8) | padded[:, 2::3]
    text = np.empty((count, groups * 4 + 2), np.uint8)
    for place, shift in enumerate((18, 12, 6, 0)):
        text[:, 1 + place : -1 : 4] = _LETTERS[(bits >> shift) & 63]
    text[:, 0] = text[:, -1] = _QUOTE
    if missing := groups * 3 - width:
        text[:, -1 - missing : -1] = _PADDING
    offsets = np.arange(count + 1, dtype=np.int32) * text.shape[1]
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _in_order(found: Sequence[pa.Array], places: Sequence[np.ndarray[Any, np.dtype[np.int64]]]) -> pa.Array:
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(found).take(pa.array(order))
