"""JSON values to Arrow rows of a given schema, natively and in bulk; called by the pipeline's worker.

arrow-rs decodes a whole chunk at once and fails as a whole. So a chunk that fails is cut into pieces until
the records that it cannot decode are few; those go one by one through `json_records`, which knows
Kafka Connect's coercions and can say what is wrong with a record.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import arro3.io
import numpy as np
import pyarrow as pa

from icestream.converters import json_casts, json_records, json_text
from icestream.records.payloads import Payloads
from icestream.records.rows import Indexes

_SPLIT = 8
_ONE_BY_ONE = 16
"""Pieces of this size or less are decoded record by record: a native call costs as much as ten records."""


class Refused(NamedTuple):
    at: int
    reason: str
    is_misfit: bool
    """Valid JSON, with a value that its column cannot hold."""


@dataclass(frozen=True)
class Decoded:
    """Rows with the index of the payload that each is from, and what could not be decoded."""

    rows: pa.Table
    index: Indexes
    rejected: list[Refused]


@dataclass(frozen=True)
class _Piece:
    rows: pa.Table
    index: Indexes


@dataclass
class JsonDecoder:
    """Decodes into one schema. `on_surplus` is told of payloads that hold more keys than the schema has."""

    schema: pa.Schema
    on_surplus: Callable[[Payloads], None] | None = None
    _wire: pa.Schema = field(init=False)
    _needs_casts: bool = field(init=False)

    def __post_init__(self) -> None:
        self._wire = json_casts.wire_schema(self.schema)
        self._needs_casts = not self._wire.equals(self.schema, check_metadata=False)

    def decode(self, payloads: Payloads) -> Decoded:
        rejected: list[Refused] = []
        suspicious = json_text.not_one_value(payloads)
        pieces: list[_Piece] = []
        if not suspicious.any():
            pieces.extend(self._decode_piece(payloads, np.arange(len(payloads)), rejected))
        else:
            whole = np.flatnonzero(~suspicious)
            if len(whole):
                pieces.extend(self._decode_piece(payloads.take(whole), whole, rejected))
            odd = np.flatnonzero(suspicious)
            pieces.extend(self._decode_one_by_one(payloads.take(odd), odd, rejected))
        return self._assemble(pieces, rejected)

    def _assemble(self, pieces: list[_Piece], rejected: list[Refused]) -> Decoded:
        if len(pieces) == 1:
            return Decoded(pieces[0].rows, pieces[0].index, rejected)
        if not pieces:
            return Decoded(self.schema.empty_table(), np.empty(0, np.int64), rejected)
        rows = pa.concat_tables([piece.rows for piece in pieces])
        index = np.concatenate([piece.index for piece in pieces])
        order = np.argsort(index, kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            rows, index = rows.take(pa.array(order)), index[order]
        return Decoded(rows, index, sorted(rejected))

    def _decode_piece(
        self,
        payloads: Payloads,
        index: Indexes,
        rejected: list[Refused],
    ) -> Iterator[_Piece]:
        wire = self._read(payloads)
        if wire is not None:
            rows = self._cast(wire)
            if rows is not None and self._keys_are_known(payloads, wire):
                yield _Piece(rows, index)
                return
        if len(payloads) <= _ONE_BY_ONE:
            yield from self._decode_one_by_one(payloads, index, rejected)
            return
        step = max(_ONE_BY_ONE, -(-len(payloads) // _SPLIT))
        for low in range(0, len(payloads), step):
            part = slice(low, min(low + step, len(payloads)))
            yield from self._decode_piece(payloads[part], index[part], rejected)

    def _read(self, payloads: Payloads) -> pa.Table | None:
        """All payloads as rows, or None if any of them does not decode."""
        if not self.schema.names:
            return None
        reader = arro3.io.read_json(io.BytesIO(payloads.text), schema=self._wire, batch_size=len(payloads))
        try:
            rows = pa.RecordBatchReader.from_stream(reader).read_all()
        except (pa.ArrowException, ValueError):
            return None
        return rows if rows.num_rows == len(payloads) else None

    def _cast(self, wire: pa.Table) -> pa.Table | None:
        if not self._needs_casts:
            return wire.cast(self.schema) if wire.schema != self.schema else wire
        try:
            return json_casts.from_wire(wire, self.schema)
        except (pa.ArrowException, ValueError):
            return None

    def _keys_are_known(self, payloads: Payloads, wire: pa.Table) -> bool:
        """Tell of surplus keys; False if a payload is not JSON after all, although arrow-rs forgave it."""
        try:
            self._compare_keys(payloads, wire)
        except ValueError:
            return False
        return True

    def _compare_keys(self, payloads: Payloads, wire: pa.Table) -> None:
        """Find the payloads with keys that were not decoded, by cutting into ever smaller pieces."""
        if self.on_surplus is None or json_text.keys_agree(payloads, wire):
            return
        if len(payloads) <= _ONE_BY_ONE:
            self.on_surplus(payloads)
            return
        step = max(_ONE_BY_ONE, -(-len(payloads) // _SPLIT))
        for low in range(0, len(payloads), step):
            part = slice(low, min(low + step, len(payloads)))
            self._compare_keys(payloads[part], wire.slice(low, step))

    def _decode_one_by_one(
        self,
        payloads: Payloads,
        index: Indexes,
        rejected: list[Refused],
    ) -> Iterator[_Piece]:
        rows, good = [], []
        for position, payload in enumerate(payloads):
            try:
                rows.append(json_records.row_from(payload, self.schema))
                good.append(position)
            except ValueError as error:
                is_misfit = isinstance(error, json_records.Misfit)
                rejected.append(Refused(int(index[position]), str(error), is_misfit))
        if good and self.on_surplus is not None:
            self.on_surplus(payloads.take(np.array(good)))
        if rows:
            yield _Piece(pa.Table.from_pylist(rows, schema=self.schema), index[np.array(good)])
