"""Confluent's wire format: a zero byte, the schema's id in four bytes, then the datum. Used by every
converter of a registry."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from icestream.records.payloads import Payloads
from icestream.records.rows import Indexes

HEAD: Final = 5
UNKNOWN_MAGIC: Final = "Unknown magic byte!"


@dataclass(frozen=True, eq=False)
class Bodies:
    """What follows the heads of some messages, in one buffer."""

    text: bytes
    begin: Indexes
    end: Indexes

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def data(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return np.frombuffer(self.text or b"\0", np.uint8)

    def take(self, rows: Indexes) -> Bodies:
        return Bodies(self.text, self.begin[rows], self.end[rows])

    def one(self, row: int) -> bytes:
        return self.text[self.begin[row] : self.end[row]]

    def each(self) -> list[bytes]:
        bounds = zip(self.begin.tolist(), self.end.tolist(), strict=True)
        return [self.text[low:high] for low, high in bounds]


@dataclass(frozen=True, eq=False)
class Split:
    """The messages of a chunk by the schema that they name. Rows are those of the chunk."""

    by_id: Sequence[tuple[int, Indexes, Bodies]]
    nulls: Indexes
    broken: Indexes
    """Messages that are not in the wire format."""


def split(values: Sequence[bytes | None]) -> Split:
    nulls = np.fromiter((row for row, value in enumerate(values) if value is None), np.int64)
    rows = np.setdiff1d(np.arange(len(values)), nulls, assume_unique=True)
    payloads = Payloads.of([value for value in values if value is not None])
    whole = Bodies(payloads.text, payloads.offsets[:-1], payloads.offsets[1:])
    good = (whole.end - whole.begin >= HEAD) & (whole.data.take(whole.begin, mode="clip") == 0)
    chosen = np.flatnonzero(good)
    begin = whole.begin[chosen]
    heads = np.ascontiguousarray(whole.data.take(begin[:, None] + np.arange(1, HEAD), mode="clip"))
    ids = heads.view(">u4").ravel().astype(np.int64)
    by_id = [
        (schema_id, rows[chosen[mine]], Bodies(payloads.text, begin[mine] + HEAD, whole.end[chosen[mine]]))
        for schema_id, mine in _positions(ids)
    ]
    return Split(by_id, nulls, rows[np.flatnonzero(~good)])


def _positions(ids: Indexes) -> list[tuple[int, Indexes]]:
    """Where each id is."""
    known = np.unique(ids).tolist()
    if len(known) <= 1:
        return [(schema_id, np.arange(len(ids))) for schema_id in known]
    order = np.argsort(ids, kind="stable")
    return list(zip(known, np.split(order, np.searchsorted(ids[order], known[1:])), strict=True))


def head(schema_id: int) -> bytes:
    return struct.pack(">bI", 0, schema_id)
