"""Lines in bytes: where they end, and what is in them. Pure; used by `source`.

Line ends are those of the Java connector: \\n, \\r\\n, and \\r once the byte after it is known.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_LF, _CR = 10, 13


def line_ends(block: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where lines end: the index of the last byte of each line's end. A final \\r may yet become \\r\\n."""
    array = np.frombuffer(block, np.uint8)
    ends = array == _LF
    if _CR in block:
        returns = array == _CR
        returns[:-1] &= ~ends[1:]
        returns[-1:] = False
        ends = ends | returns
    return np.flatnonzero(ends)


def lines(block: bytes, ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """The lines as a column of strings, without their ends; bytes that are no UTF-8 become U+FFFD."""
    array = np.frombuffer(block, np.uint8)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    if _CR in block:
        lengths -= (array[ends] == _LF) & (lengths > 0) & (array[ends - 1] == _CR)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    text = block.translate(None, b"\r\n")
    column = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    try:
        text.decode()
    except UnicodeDecodeError:
        return pa.array([line.decode(errors="replace") for line in column.to_pylist()], pa.string())
    return column.view(pa.string())
