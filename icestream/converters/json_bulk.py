"""JSON objects to rows by arrow-rs, which decodes a whole text at once and fails as a whole.

So when a text fails, the records that it cannot decode are looked for, and go one by one; if some are left
that no check finds, the text is cut into pieces until they are few.
Shared by the decoder of the sink and by the converter that reads envelopes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import arro3.io
import numpy as np
import pyarrow as pa

from icestream.converters import json_shapes, json_text
from icestream.records.payloads import Payloads
from icestream.records.rows import Flags, Indexes

SPLIT: Final = 8
ONE_BY_ONE: Final = 16
"""Pieces of this size or less are decoded record by record: a native call costs as much as ten records."""
_BATCH_BYTES: Final = 2**20
"""arrow-rs takes about this much text at a time: what it makes of it stays in the processor's cache."""


@dataclass(frozen=True)
class Piece:
    """Rows with the index of the payload that each is from."""

    rows: pa.Table
    index: Indexes


Bulk = Callable[[Payloads], pa.Table | None]
"""All payloads as rows, or None if any of them does not decode."""
Alone = Callable[[Payloads, Indexes], Piece | None]
"""Those of some payloads that can be decoded one by one; says elsewhere what is wrong with the others."""


def native_rows(payloads: Payloads, wire: pa.Schema) -> pa.Table | None:
    """All payloads as rows of a schema, or None if any of them does not decode."""
    if not wire.names or len(json_text.misread(payloads)):
        return None
    batch = max(1, _BATCH_BYTES * len(payloads) // max(1, len(payloads.text)))
    reader = arro3.io.read_json(io.BytesIO(payloads.text), schema=wire, batch_size=min(batch, len(payloads)))
    try:
        rows = pa.RecordBatchReader.from_stream(reader).read_all()
    except (pa.ArrowException, ValueError):
        return None
    return rows if rows.num_rows == len(payloads) else None


@dataclass
class BulkReader:
    """Kept for all chunks of a task: after a chunk with records that do not decode, the next one is checked
    before it is decoded, because bad records seldom come alone."""

    check: json_shapes.Check
    is_checked: bool = False
    """Whether each payload is known to be one JSON object."""
    _is_wary: bool = False

    def read(self, payloads: Payloads, bulk: Bulk, alone: Alone) -> Piece | None:
        """The rows of all payloads that decode, in their order."""
        suspicious = self._suspicious(payloads)
        if not suspicious.any() and not self._is_wary:
            rows = bulk(payloads)
            if rows is not None:
                return Piece(rows, np.arange(len(payloads)))
        fine = np.flatnonzero(~suspicious)
        misfits = self.check(payloads.take(fine) if len(fine) < len(payloads) else payloads)
        self._is_wary = bool(misfits.any())
        suspicious[fine[misfits]] = True
        return _read(payloads, suspicious, bulk, alone)

    def _suspicious(self, payloads: Payloads) -> Flags:
        flags = np.zeros(len(payloads), np.bool_) if self.is_checked else json_text.not_one_value(payloads)
        flags[json_text.misread(payloads)] = True
        return flags


def _read(payloads: Payloads, suspicious: Flags, bulk: Bulk, alone: Alone) -> Piece | None:
    if not suspicious.any():
        return _together(list(_cut(payloads, np.arange(len(payloads)), bulk, alone)))
    whole, odd = np.flatnonzero(~suspicious), np.flatnonzero(suspicious)
    pieces = list(_cut(payloads.take(whole), whole, bulk, alone)) if len(whole) else []
    found = alone(payloads.take(odd), odd)
    return _together([*pieces, *([found] if found is not None else [])])


def _cut(payloads: Payloads, index: Indexes, bulk: Bulk, alone: Alone) -> Iterator[Piece]:
    rows = bulk(payloads)
    if rows is not None:
        yield Piece(rows, index)
    elif len(payloads) <= ONE_BY_ONE:
        found = alone(payloads, index)
        if found is not None:
            yield found
    else:
        for part in cuts(len(payloads)):
            yield from _cut(payloads[part], index[part], bulk, alone)


def cuts(length: int) -> Iterator[slice]:
    step = max(ONE_BY_ONE, -(-length // SPLIT))
    return (slice(low, min(low + step, length)) for low in range(0, length, step))


def _together(pieces: list[Piece]) -> Piece | None:
    if len(pieces) <= 1:
        return pieces[0] if pieces else None
    rows = pa.concat_tables([piece.rows for piece in pieces])
    index = np.concatenate([piece.index for piece in pieces])
    order = np.argsort(index, kind="stable")
    if np.array_equal(order, np.arange(len(order))):
        return Piece(rows, index)
    return Piece(rows.take(pa.array(order)), index[order])
