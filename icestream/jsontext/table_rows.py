"""JSON objects to Arrow rows of a table's schema, natively and in bulk; called by `rows`.

arrow-rs decodes into types that keep what the text said, and casts bring those into the table's own: dates,
times, UUIDs and binary are strings in JSON, and arrow-rs would take a bare number for a timestamp in the
column's own unit, where Kafka Connect means milliseconds. What does not decode natively goes one by one
through `coerce`, which knows the Java sink's rules and can say what is wrong with a value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.jsontext import bulk
from icestream.jsontext.bulk import BulkReader, Piece
from icestream.jsontext.coerce import row_from
from icestream.jsontext.types import check, exact_type
from icestream.records.column import array_of, is_uuid
from icestream.records.payloads import Payloads
from icestream.records.rows import Indexes

_UUID: Final = r"^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$"
_MOST_DIGITS: Final = 38
"""Of a decimal of 128 bits."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """Rows with the index of the payload that each is from; why the others could not be decoded."""

    rows: pa.Table
    index: Indexes
    failed: dict[int, str]


@dataclass
class RowDecoder:
    """Decodes into one schema. `on_drift` is told of payloads some of which seem to hold more keys
    than the schema has."""

    schema: pa.Schema
    on_drift: Callable[[Payloads], None] | None = None
    _wire: pa.Schema = field(init=False)
    _needs_casts: bool = field(init=False)
    _bulk: BulkReader = field(init=False)

    def __post_init__(self) -> None:
        self._wire = wire_schema(self.schema)
        self._needs_casts = not self._wire.equals(self.schema, check_metadata=False)
        self._bulk = BulkReader(check(exact_type(self._wire)))

    def decode(self, payloads: Payloads) -> Decoded:
        failed: dict[int, str] = {}
        found = self._bulk.read(
            payloads, self._in_bulk, lambda odd, index: self._one_by_one(odd, index, failed)
        )
        if found is None:
            return Decoded(self.schema.empty_table(), np.empty(0, np.int64), failed)
        return Decoded(found.rows, found.index, failed)

    def _in_bulk(self, payloads: Payloads) -> pa.Table | None:
        wire = bulk.native_rows(payloads, self._wire)
        if wire is None:
            return None
        rows = self._cast(wire)
        if rows is not None and self.on_drift is not None and not bulk.keys_agree(payloads, wire):
            self.on_drift(payloads)
        return rows

    def _cast(self, wire: pa.Table) -> pa.Table | None:
        if not self._needs_casts:
            return wire.cast(self.schema) if wire.schema != self.schema else wire
        try:
            return from_wire(wire, self.schema)
        except (pa.ArrowException, ValueError):
            return None

    def _one_by_one(self, payloads: Payloads, index: Indexes, failed: dict[int, str]) -> Piece | None:
        rows, good = [], []
        for position, payload in enumerate(payloads):
            try:
                rows.append(row_from(payload, self.schema))
                good.append(position)
            except ValueError as error:
                failed[int(index[position])] = str(error)
        if not rows:
            return None
        if self.on_drift is not None:
            self.on_drift(payloads.take(np.array(good)))
        columns = [array_of([row[one.name] for row in rows], one.type) for one in self.schema]
        return Piece(pa.table(columns, schema=self.schema), index[np.array(good)])


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """The schema to decode with, so that every value keeps what the text said."""
    return pa.schema([_wire_field(field) for field in schema])


def _wire_field(field: pa.Field) -> pa.Field:
    # Nullable whatever the table says: a missing value is found and named later.
    return pa.field(field.name, _wire_type(field.type))


def _wire_type(kind: pa.DataType) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct([_wire_field(kind.field(i)) for i in range(kind.num_fields)])
    if pt.is_list(kind):
        return pa.list_(_wire_field(kind.value_field))
    if pt.is_map(kind):
        return pa.map_(pa.string(), _wire_field(kind.item_field))
    if _is_text_in_json(kind):
        return pa.string()
    if pt.is_decimal(kind):
        # One digit more: by it Kafka Connect rounds half up, and arrow-rs cuts off all that follow.
        wide = pa.decimal128 if kind.precision < _MOST_DIGITS else pa.decimal256
        return wide(kind.precision + 1, kind.scale + 1)
    return kind


def _is_text_in_json(kind: pa.DataType) -> bool:
    return bool(pt.is_temporal(kind) or pt.is_binary(kind) or pt.is_fixed_size_binary(kind) or is_uuid(kind))


def from_wire(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the schema's types; raises if any value does not fit."""
    return pa.table(
        [
            pa.chunked_array([_cast(chunk, field.type) for chunk in column.chunks], field.type)
            for column, field in zip(rows.itercolumns(), schema, strict=True)
        ],
        schema=schema,
    )


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if pt.is_struct(kind):
        children = [_cast(values.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(values))
    if pt.is_list(kind):
        items = _cast(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, items, type=kind, mask=_mask(values))
    if pt.is_map(kind):
        keys, items = _cast(values.keys, kind.key_type), _cast(values.items, kind.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=_mask(values))
    if pt.is_decimal(kind):
        return pc.round(values, kind.scale, "half_towards_infinity").cast(kind)
    return cast_text(values, kind)


def _mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def cast_text(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Text as JSON has it in the type of its column; raises if any of it does not fit."""
    if pt.is_timestamp(kind) and kind.unit == "us":
        # Nine digits of a second are common (Go, Java); the cast to microseconds refuses them, so go by way
        # of
        # nanoseconds and cut.
        precise = pc.cast(text, pa.timestamp("ns", tz=kind.tz))
        return pc.cast(precise, kind, safe=False)
    if pt.is_time(kind):
        # There is no cast from text to a time of day; a moment of the first day has one.
        moments = pc.binary_join_element_wise("1970-01-01T", text, "")
        return pc.cast(pc.cast(moments, pa.timestamp("ns")), kind, safe=False)
    if is_uuid(kind):
        return _uuids(text)
    if pt.is_binary(kind) or pt.is_fixed_size_binary(kind):
        return pa.array([_unbase64(value) for value in text.to_pylist()], kind)
    return pc.cast(text, kind)


def _uuids(text: pa.Array) -> pa.Array:
    if not pc.all(pc.match_substring_regex(text, _UUID)).as_py() and text.null_count < len(text):
        raise ValueError("not a UUID")
    filled = pc.fill_null(pc.replace_substring(text, "-", ""), "0" * 32)
    digits = b"".join(filled.cast(pa.binary()).to_pylist())
    storage = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(text), [None, pa.py_buffer(bytes.fromhex(digits.decode()))]
    )
    if text.null_count:
        storage = pc.if_else(text.is_valid(), storage, pa.nulls(len(text), pa.binary(16)))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _unbase64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
