"""From what JSON can say to what a column holds, column by column.

Dates, times, UUIDs and binary are strings in JSON. They are decoded as strings first and cast here, because
arrow-rs would take a bare number for a timestamp in the column's own unit, where Kafka Connect means
milliseconds.
"""

from __future__ import annotations

import base64

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.records import is_uuid

_UUID = r"^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$"


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


_MOST_DIGITS = 38
"""Of a decimal of 128 bits."""


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
