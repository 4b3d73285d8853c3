"""JSON objects to rows by arrow-rs, which decodes a whole text at once and fails as a whole.

So when a text fails, the payloads that it cannot decode are looked for, and go one by one; if some are left
that no check finds, the text is cut into pieces until they are few. Shared by the readers of payloads with a
schema (`with_schema`) and without (`table_rows`). All payloads given are known to be one JSON object each.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import arro3.io
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.jsontext.types import Check
from icestream.records.payloads import Payloads
from icestream.records.rows import Flags, Indexes

ONE_BY_ONE: Final = 16
"""Pieces of this size or less are decoded record by record: a native call costs as much as ten records."""
_SPLIT: Final = 8
_BATCH_BYTES: Final = 2**20
"""arrow-rs takes about this much text at a time: what it makes of it stays in the processor's cache."""
_ESCAPE: Final = 6
"""Characters of an escape such as \\ud840."""
_MISREAD_LETTERS: Final = [np.frombuffer(one, np.uint8) for one in (b"u", b"dD", b"89abAB", b"4567cdefCDEF")]
_COLON, _SPACE = ord(":"), ord(" ")


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows with the index of the payload that each is from."""

    rows: pa.Table
    index: Indexes


Bulk = Callable[[Payloads], pa.Table | None]
"""All payloads as rows, or None if any of them does not decode."""
Alone = Callable[[Payloads, Indexes], Piece | None]
"""Those of some payloads that can be decoded one by one; says elsewhere what is wrong with the others."""


def native_rows(payloads: Payloads, wire: pa.Schema) -> pa.Table | None:
    """All payloads as rows of a schema, or None if any of them does not decode; called by way of BulkReader,
    which keeps those back that arrow-rs would misread."""
    if not wire.names:
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
    """Kept for all chunks of a task: after a chunk with payloads that do not decode, the next one is checked
    before it is decoded, because bad records seldom come alone."""

    check: Check
    _is_wary: bool = False

    def read(
        self, payloads: Payloads, bulk: Bulk, alone: Alone, not_objects: Flags | None = None
    ) -> Piece | None:
        """The rows of all payloads that decode, in their order."""
        suspicious = np.zeros(len(payloads), np.bool_) if not_objects is None else not_objects.copy()
        suspicious[_misread(payloads)] = True
        if not suspicious.any() and not self._is_wary:
            rows = bulk(payloads)
            if rows is not None:
                return Piece(rows, np.arange(len(payloads)))
        fine = np.flatnonzero(~suspicious)
        odd = self.check(payloads.take(fine) if len(fine) < len(payloads) else payloads)
        self._is_wary = bool(odd.any())
        suspicious[fine[odd]] = True
        return _read(payloads, suspicious, bulk, alone)


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
    step = max(ONE_BY_ONE, -(-length // _SPLIT))
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


def _misread(payloads: Payloads) -> Indexes:
    """Payloads with an escaped pair of surrogates that arrow-rs takes for another character: it forgets to
    carry a bit where the first of the pair is \\uD840 to \\uD87F, \\uD8C0 to \\uD8FF and so on."""
    text = payloads.codes
    places = payloads.backslashes[payloads.backslashes + _ESCAPE <= len(text)]
    # Letter by letter: after the first hardly any place is left.
    for at, letters in enumerate(_MISREAD_LETTERS, start=1):
        places = places[np.isin(text[places + at], letters)]
    return np.unique(np.searchsorted(payloads.offsets, places, side="right") - 1)


def keys_agree(payloads: Payloads, rows: pa.Table) -> bool:
    """Whether the decoded rows account for every key of the text; False means only: look closer.

    Counts quotation marks, two for each key and each string (docs/decisions/001-quotes.md).
    """
    pairs = sum(_pairs_in_column(chunk) for column in rows.itercolumns() for chunk in column.chunks)
    more = int(np.count_nonzero(payloads.quotes)) - 2 * pairs
    return more == 0 or more == 2 * _null_keys(payloads)


def _null_keys(payloads: Payloads) -> int:
    """Keys whose value is null, written with or without a space: as in Kafka Connect they make no column."""
    text = payloads.codes
    colons = np.flatnonzero(text == _COLON)
    colons = colons[(colons > 0) & (colons + 5 < len(text))]
    values = colons + 1 + (text[colons + 1] == _SPACE)
    nulls = colons[text[values] == ord("n")]
    marks = np.flatnonzero(payloads.quotes)
    places = np.searchsorted(marks, nulls - 1)
    # The mark before the colon must end a string: every second one does.
    ends_key = payloads.quotes[nulls - 1] & (places % 2 == 1)
    return int(np.count_nonzero(ends_key))


def _pairs_in_column(column: pa.Array) -> int:
    return _valid(column) + _pairs_in(column)


def _valid(values: pa.Array) -> int:
    return int(len(values) - values.null_count)


def _pairs_in(values: pa.Array) -> int:
    kind = values.type
    if pt.is_string(kind):
        return _valid(values)
    if pt.is_struct(kind):
        return sum(_pairs_in_column(values.field(child)) for child in range(kind.num_fields))
    if pt.is_map(kind):
        low, high = values.offsets[0].as_py(), values.offsets[-1].as_py()
        items = values.items.slice(low, high - low)
        return _pairs_in_column(items)
    if pt.is_list(kind):
        return _pairs_in(values.flatten())
    return 0
