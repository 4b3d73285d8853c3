"""Numbers that Protobuf packs into pieces of bytes; used by the reader of messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icestream.converters.registry.byte_columns import spans, varints
from icestream.converters.registry.protobuf_cursor import VARINT, WIDTHS
from icestream.converters.registry.wire import Bodies
from icestream.records.rows import Indexes


@dataclass(frozen=True)
class Unpacked:
    pieces: Indexes
    """Of each number: the piece it is from."""
    bits: Indexes
    cut_off: Indexes
    """Pieces that end within a number; they have no numbers here."""
    endless: Indexes
    """Pieces with a number that is too long."""


def unpacked(bodies: Bodies, first: Indexes, last: Indexes, kind: int) -> Unpacked:
    """The numbers in some pieces, in their order."""
    sizes = last - first
    if kind == VARINT:
        is_cut = (sizes > 0) & (bodies.data.take(last - 1, mode="clip") > 0x7F)
    else:
        is_cut = sizes % WIDTHS[kind] != 0
    # A piece that is cut off would take what it lacks from the next.
    whole = np.flatnonzero(~is_cut)
    sizes = sizes[whole]
    raw = spans(bodies.text, first[whole], last[whole], len(whole), None).buffers()[2]
    data = np.frombuffer(raw or b"", np.uint8)[: int(sizes.sum())]
    if kind == VARINT:
        numbers, bits, endless = _varints(data, sizes)
    else:
        width = WIDTHS[kind]
        numbers, endless = sizes // width, whole[:0]
        bits = data.view(f"<u{width}").astype(np.uint64).view(np.int64)
    return Unpacked(np.repeat(whole, numbers), bits, np.flatnonzero(is_cut), whole[endless])


def _varints(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], sizes: Indexes
) -> tuple[Indexes, Indexes, Indexes]:
    """How many numbers each piece has, their bits, and which pieces have one that is too long."""
    ends = np.flatnonzero(data < 0x80) + 1
    if not len(ends):
        return np.zeros_like(sizes), ends, ends
    values, endless = varints(data, np.concatenate(([0], ends[:-1])))
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    pieces = np.searchsorted(bounds, ends - 1, side="right") - 1
    return np.bincount(pieces, minlength=len(sizes)), values.view(np.int64), pieces[endless]
