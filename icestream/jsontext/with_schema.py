"""JSON payloads of one schema to a column of it, in bulk; called by the reader of envelopes.

arrow-rs decodes into types that keep what the text said; casts bring them into the schema's own. Where text
could mean something else to Java (a string for a number, a missing required field), it is not decoded here.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.jsontext import bulk
from icestream.jsontext.bulk import BulkReader, Piece
from icestream.jsontext.connect_values import connect_value
from icestream.jsontext.one_value import NO_ENVELOPE, NotConvertible, exact_one, failure_of
from icestream.jsontext.types import Check, check, exact_type, odd_ones
from icestream.records.column import Column, filled
from icestream.records.json_source import object_type
from icestream.records.payloads import Payloads
from icestream.records.records import Failure
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Kind

_is_object: Final = msgspec.json.Decoder(object_type({})).decode
_PAYLOAD: Final = "payload"
_MOMENTS: Final = {DATE: (-(2**31), 2**31 - 1), TIME: (0, 86_399_999), TIMESTAMP: (-(2**53), 2**53)}
"""Logical types that are numbers in JSON, with the least and the greatest."""
_DIGITS: Final = 76
_WIDE: Final = Context(prec=_DIGITS)


@dataclass(frozen=True)
class PayloadReader:
    """Reads payloads of one schema; nulls become defaults if `fills`."""

    schema: ConnectSchema
    fills: bool

    def read(self, payloads: Sequence[bytes]) -> tuple[Indexes, Column, dict[int, Failure]]:
        """Which payloads are in the column, and why the others are not."""
        failed: dict[int, Failure] = {}
        texts = self._wrapped(payloads)
        found = self._bulk.read(
            Payloads.of(texts),
            self._in_bulk,
            lambda some, index: self._alone(some, index, failed),
            odd_ones(_is_object, texts),
        )
        if found is None:
            return np.empty(0, np.int64), Column(pa.array([], self.schema.arrow_type), self.schema), failed
        column = Column(found.rows.column(0).combine_chunks(), self.schema)
        return found.index, column, failed

    @functools.cached_property
    def _bulk(self) -> BulkReader:
        return BulkReader(self._odd)

    def _odd(self, payloads: Payloads) -> Flags:
        """Of the form that fits more of them: a chunk has its decimals in one form, or all in the other."""
        if not self._checks:
            return np.ones(len(payloads), np.bool_)
        return min((check(payloads) for check in self._checks), key=np.count_nonzero)

    @functools.cached_property
    def _checks(self) -> list[Check]:
        return [check(exact_type(wire, closed=self._is_wrapped)) for wire in self._wires]

    def of_nodes(self, nodes: Sequence[Any]) -> Column:
        """Decoded JSON values, or MISSING, as a column; raises ValueError with Java's words."""
        values = [connect_value(self.schema, node, self.fills) for node in nodes]
        return Column(pa.array(values, self.schema.arrow_type), self.schema)

    def _wrapped(self, payloads: Sequence[bytes]) -> list[bytes]:
        if self._is_wrapped:
            return [b'{"payload":%b}' % payload for payload in payloads]
        return list(payloads)

    @property
    def _is_wrapped(self) -> bool:
        """Only objects are read in bulk: everything else is made the one field of an object."""
        return self.schema.kind is not Kind.STRUCT or not self.schema.fields

    @functools.cached_property
    def _wires(self) -> list[pa.Schema]:
        """What to decode with: decimals as base64 or, if there are any and that fails, as numbers."""
        if not _is_native(self.schema):
            return []
        forms = (False, True) if _has_decimals(self.schema) else (False,)
        return [self._wire(numeric) for numeric in forms]

    def _wire(self, numeric: bool) -> pa.Schema:
        if self._is_wrapped:
            return pa.schema([(_PAYLOAD, _wire_type(self.schema, numeric))])
        return pa.schema(_wire_type(self.schema, numeric))

    def _in_bulk(self, payloads: Payloads) -> pa.Table | None:
        for wire, odd in zip(self._wires, self._checks, strict=True):
            rows = bulk.native_rows(payloads, wire)
            # More quotation marks than keys and strings have: unknown keys, or text where no text should be.
            if rows is not None and (bulk.keys_agree(payloads, rows) or not odd(payloads).any()):
                values = self._cast(rows)
                if values is not None:
                    return pa.table({_PAYLOAD: values})
        return None

    def _cast(self, rows: pa.Table) -> pa.Array | None:
        struct = rows.to_struct_array().combine_chunks()
        try:
            return _cast(struct.field(0) if self._is_wrapped else struct, self.schema, self.fills)
        except (pa.ArrowException, ValueError):
            return None

    def _alone(self, payloads: Payloads, index: Indexes, failed: dict[int, Failure]) -> Piece | None:
        values: list[Any] = []
        good: list[int] = []
        for at, payload in zip(index.tolist(), payloads, strict=True):
            try:
                values.append(connect_value(self.schema, self._node(payload), self.fills))
                good.append(at)
            except ValueError as error:
                failed[at] = failure_of(error)
        if not good:
            return None
        rows = pa.table({_PAYLOAD: pa.array(values, self.schema.arrow_type)})
        return Piece(rows, np.array(good, np.int64))

    def _node(self, payload: bytes) -> Any:
        node = exact_one(payload)
        if not self._is_wrapped:
            return node
        if len(node) != 1:
            raise NotConvertible(NO_ENVELOPE)
        return node[_PAYLOAD]


def _is_native(schema: ConnectSchema) -> bool:
    """False where arrow-rs cannot read what Java writes: a map with other keys than strings is a list."""
    if schema.kind is Kind.MAP and (schema.key is None or schema.key.kind is not Kind.STRING):
        return False
    inner = [field.schema for field in schema.fields]
    if schema.kind is Kind.STRUCT and not inner:
        return False
    return all(map(_is_native, inner if schema.value is None else [*inner, schema.value]))


def _has_decimals(schema: ConnectSchema) -> bool:
    inner = [field.schema for field in schema.fields]
    inner += [schema.value] if schema.value is not None else []
    return schema.name == DECIMAL or any(map(_has_decimals, inner))


def _wire_type(schema: ConnectSchema, numeric: bool) -> pa.DataType:
    if schema.name == DECIMAL:
        # Far more digits than the schema has, so that one too many is seen.
        scale = int(schema.parameter(SCALE) or 0)
        return pa.decimal256(_DIGITS, min(_DIGITS, scale + _DIGITS // 2)) if numeric else pa.string()
    if schema.name in _MOMENTS:
        # Where a number is, arrow-rs would cut off what is behind the point.
        return pa.float64()
    if schema.kind is Kind.BYTES:
        return pa.string()
    if schema.kind is Kind.STRUCT:
        return pa.struct([pa.field(one.name, _wire_type(one.schema, numeric)) for one in schema.fields])
    if schema.value is not None:
        value = _wire_type(schema.value, numeric)
        return pa.list_(value) if schema.key is None else pa.map_(pa.string(), value)
    return schema.arrow_type


def _cast(values: pa.Array, schema: ConnectSchema, fills: bool) -> pa.Array:
    """In the schema's own type; raises where Java might say something else."""
    found = _with_nulls(_converted(values, schema, fills), schema, fills)
    if found.null_count and not schema.optional:
        raise ValueError("null in a required field")
    return found


def _with_nulls(values: pa.Array, schema: ConnectSchema, fills: bool) -> pa.Array:
    return filled(Column(values, schema)).values if fills else values


def _converted(values: pa.Array, schema: ConnectSchema, fills: bool) -> pa.Array:
    if schema.kind is Kind.STRUCT:
        return _struct(values, schema, fills)
    if schema.value is not None:
        return _nested(values, schema, schema.value, fills)
    if schema.name == DECIMAL:
        return _decimals(values, schema)
    if schema.name in _MOMENTS:
        return _moments(values, schema)
    if schema.kind is Kind.BYTES:
        return _unbase64(values)
    if schema.kind in (Kind.FLOAT32, Kind.FLOAT64):
        # Java reads numbers as decimals first, which have no zero below zero.
        return pc.add(values, pa.scalar(0.0, values.type))
    return values if values.type == schema.arrow_type else values.cast(schema.arrow_type)


def _struct(values: pa.Array, schema: ConnectSchema, fills: bool) -> pa.Array:
    null = values.is_null() if values.null_count else None
    children = values.flatten()
    if null is not None:
        # Only where there is a struct must its required fields be there.
        present = pc.invert(null)
        children = [
            _spread(_cast(child.filter(present), field.schema, fills), present)
            for child, field in zip(children, schema.fields, strict=True)
        ]
    else:
        children = [
            _cast(child, field.schema, fills) for child, field in zip(children, schema.fields, strict=True)
        ]
    kind = schema.arrow_type
    fields = [kind.field(position) for position in range(kind.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=null)


def _spread(values: pa.Array, present: pa.Array) -> pa.Array:
    """Put back where the rows are that were present."""
    flags = present.to_numpy(zero_copy_only=False)
    places = np.cumsum(flags) - 1
    return values.take(pa.array(places, mask=~flags))


def _nested(values: pa.Array, schema: ConnectSchema, of: ConnectSchema, fills: bool) -> pa.Array:
    mask = values.is_null() if values.null_count else None
    if schema.key is None:
        items = _cast(values.values, of, fills)
        return pa.ListArray.from_arrays(values.offsets, items, type=schema.arrow_type, mask=mask)
    if _repeat_keys(values):
        raise ValueError("the last of equal keys counts")
    items = _cast(values.items, of, fills)
    return pa.MapArray.from_arrays(values.offsets, values.keys, items, type=schema.arrow_type, mask=mask)


def _repeat_keys(maps: pa.Array) -> bool:
    """Whether a map has a key twice."""
    codes = maps.keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    bounds = maps.offsets.to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(maps)), np.diff(bounds))
    pairs = owners * (len(codes) + 1) + codes[bounds[0] : bounds[-1]]
    return len(np.unique(pairs)) < len(pairs)


def _moments(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """Raises unless all are whole numbers that are exact as doubles, too."""
    low, high = _MOMENTS[schema.name or ""]
    if len(values) > values.null_count:
        range_ = pc.min_max(values).as_py()
        if range_["min"] < low or range_["max"] > high:
            raise ValueError("not a moment")
    whole = values.cast(pa.int64())
    return whole.cast(pa.int32() if schema.kind is Kind.INT32 else pa.int64()).cast(schema.arrow_type)


def _decimals(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    if not pa.types.is_string(values.type):
        return values.cast(schema.arrow_type)
    scale = int(schema.parameter(SCALE) or "")
    unscaled = [
        None if data is None else Decimal(_unscaled(data)).scaleb(-scale, _WIDE)
        for data in _unbase64(values).to_pylist()
    ]
    return pa.array(unscaled, schema.arrow_type)


def _unbase64(values: pa.Array) -> pa.Array:
    texts = values.to_pylist()
    return pa.array(
        [None if text is None else base64.b64decode(text, validate=True) for text in texts], pa.binary()
    )


def _unscaled(data: bytes) -> int:
    if not data:
        raise ValueError("no bytes for a decimal")
    return int.from_bytes(data, "big", signed=True)
