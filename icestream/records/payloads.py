"""Byte strings back to back in one buffer, as native decoders want them; made from the values of a chunk."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from icestream.records.rows import Flags, Indexes

_QUOTE, _BACKSLASH = ord('"'), ord("\\")


@dataclass(frozen=True, eq=False)
class Payloads:
    """Byte strings, back to back in one buffer."""

    text: bytes
    offsets: Indexes
    """Where each begins, and where the last one ends."""

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Payloads:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
        return cls(b"".join(values), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[bytes]:
        return (self.text[low:high] for low, high in pairwise(self.offsets.tolist()))

    def __getitem__(self, part: slice) -> Payloads:
        low, high, _ = part.indices(len(self))
        bounds = self.offsets[low : high + 1]
        return Payloads(self.text[bounds[0] : bounds[-1]], bounds - bounds[0])

    def take(self, index: Indexes) -> Payloads:
        starts, ends = self.offsets[index].tolist(), self.offsets[index + 1].tolist()
        return Payloads.of([self.text[low:high] for low, high in zip(starts, ends, strict=True)])

    def is_utf8(self) -> bool:
        """Whether each of them is."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.text)]
        try:
            pa.Array.from_buffers(pa.large_string(), len(self), buffers).validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    @functools.cached_property
    def codes(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return np.frombuffer(self.text, np.uint8)

    @functools.cached_property
    def quotes(self) -> Flags:
        """Which bytes are quotation marks that begin or end a string."""
        marks: Flags = np.equal(self.codes, _QUOTE)
        marks[self._escaped()] = False
        return marks

    @functools.cached_property
    def backslashes(self) -> Indexes:
        if b"\\" not in self.text:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.codes == _BACKSLASH)

    def _escaped(self) -> Indexes:
        """Where a byte follows an odd run of backslashes."""
        places = self.backslashes
        begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        lengths = np.diff(begins, append=len(places))
        after: Indexes = np.add(places[begins], lengths)
        escapes: Indexes = after[(lengths % 2 == 1) & (after < len(self.codes))]
        return escapes


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
