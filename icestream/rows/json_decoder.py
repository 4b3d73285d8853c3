"""JSON values to Arrow rows of a given schema, natively and in bulk; called by the pipeline's worker.

What does not decode natively goes one by one through `json_records`, which knows Kafka Connect's coercions
and can say what is wrong with a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from icestream.converters import json_bulk, json_shapes, json_text
from icestream.converters.json_bulk import BulkReader, Piece
from icestream.records.payloads import Payloads
from icestream.records.rows import Indexes
from icestream.rows import json_casts, json_records


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


@dataclass
class JsonDecoder:
    """Decodes into one schema. `on_surplus` is told of payloads that hold more keys than the schema has."""

    schema: pa.Schema
    on_surplus: Callable[[Payloads], None] | None = None
    checked: bool = False
    """Whether each payload is known to be one JSON object."""
    _wire: pa.Schema = field(init=False)
    _needs_casts: bool = field(init=False)
    _bulk: BulkReader = field(init=False)

    def __post_init__(self) -> None:
        self._wire = json_casts.wire_schema(self.schema)
        self._needs_casts = not self._wire.equals(self.schema, check_metadata=False)
        self._bulk = BulkReader(json_shapes.misfits(self._wire), self.checked)

    def decode(self, payloads: Payloads) -> Decoded:
        rejected: list[Refused] = []
        found = self._bulk.read(
            payloads, self._in_bulk, lambda odd, index: self._one_by_one(odd, index, rejected)
        )
        if found is None:
            return Decoded(self.schema.empty_table(), np.empty(0, np.int64), sorted(rejected))
        return Decoded(found.rows, found.index, sorted(rejected))

    def _in_bulk(self, payloads: Payloads) -> pa.Table | None:
        wire = json_bulk.native_rows(payloads, self._wire)
        if wire is None:
            return None
        rows = self._cast(wire)
        return rows if rows is not None and self._keys_are_known(payloads, wire) else None

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
        if len(payloads) <= json_bulk.ONE_BY_ONE:
            self.on_surplus(payloads)
            return
        for part in json_bulk.cuts(len(payloads)):
            self._compare_keys(payloads[part], wire.slice(part.start, part.stop - part.start))

    def _one_by_one(self, payloads: Payloads, index: Indexes, rejected: list[Refused]) -> Piece | None:
        rows, good = [], []
        for position, payload in enumerate(payloads):
            try:
                rows.append(json_records.row_from(payload, self.schema))
                good.append(position)
            except ValueError as error:
                is_misfit = isinstance(error, json_records.Misfit)
                rejected.append(Refused(int(index[position]), str(error), is_misfit))
        if not rows:
            return None
        if self.on_surplus is not None:
            self.on_surplus(payloads.take(np.array(good)))
        return Piece(pa.Table.from_pylist(rows, schema=self.schema), index[np.array(good)])
