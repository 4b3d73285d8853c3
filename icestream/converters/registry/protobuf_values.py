"""Columns of Protobuf's numbers, enums, lists, structs and well-known types; used by `protobuf_read`."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry import byte_columns
from icestream.converters.registry.byte_columns import numbers
from icestream.converters.registry.protobuf_plan import ProtoField
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import SCALE, ConnectSchema, Kind

Numbers = np.ndarray[tuple[int], Any]
_NANOS_A_MS: Final = 1_000_000
_SECONDS: Final = 2**63 // 1000 - 1
"""Before or after 1970: in milliseconds more would not fit."""
_EXACT: Final = Context(prec=76, traps=[Inexact, InvalidOperation])


def spread(values: pa.Array, owners: Indexes, length: int) -> pa.Array:
    if not len(owners):
        return pa.nulls(length, values.type)
    index, nulls = np.zeros(length, np.int64), np.ones(length, np.bool_)
    index[owners], nulls[owners] = np.arange(len(owners)), False
    return values.take(pa.array(index, mask=nulls))


def struct_array(
    schema: ConnectSchema, columns: list[pa.Array], length: int, nulls: Flags | None = None
) -> pa.Array:
    if not columns:
        return pa.array([{}] * length, schema.arrow_type, mask=nulls)
    fields = [schema.arrow_type.field(position) for position in range(len(columns))]
    mask = None if nulls is None or not nulls.any() else pa.array(nulls)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def list_offsets(owners: Indexes, length: int) -> pa.Array:
    offsets = np.zeros(length + 1, np.int32)
    np.cumsum(np.bincount(owners, minlength=length), out=offsets[1:])
    return pa.array(offsets)


def list_array(schema: ConnectSchema, items: pa.Array, owners: Indexes, length: int) -> pa.Array:
    return pa.ListArray.from_arrays(list_offsets(owners, length), items, type=schema.arrow_type)


def converted(kind: str, bits: Indexes) -> Numbers:
    """The bits of a varint or a fixed number as what the type says."""
    match kind:
        case "double":
            return bits.view(np.float64)
        case "float":
            return bits.astype(np.uint32).view(np.float32)
        case "int32" | "sfixed32" | "enum":
            return bits.astype(np.int32)
        case "uint32" | "fixed32":
            return bits & 0xFFFFFFFF
        case "sint32" | "sint64":
            unsigned = bits.view(np.uint64)
            if kind == "sint32":
                unsigned = unsigned & np.uint64(0xFFFFFFFF)
            sign = -(unsigned & np.uint64(1)).view(np.int64)
            return np.asarray((unsigned >> np.uint64(1)).view(np.int64) ^ sign)
        case "bool":
            return np.not_equal(bits, 0)
    return bits


def symbols(one: ProtoField, schema: ConnectSchema, values: Numbers, nulls: Flags | None) -> pa.Array:
    if schema.kind is Kind.INT32:
        return numbers(values, nulls, pa.int32())
    known = dict(one.symbols)
    distinct, codes = np.unique(values, return_inverse=True)
    names = [
        known.get(number, f"UNKNOWN_ENUM_VALUE_{one.enum_name}_{number}") for number in distinct.tolist()
    ]
    return pa.array(names, pa.string()).take(pa.array(codes, mask=nulls))


def _field(message: pa.Array, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values: np.ndarray[Any, Any] = message.field(name).to_numpy(zero_copy_only=False)
    return values.astype(np.int64)


def timestamps(message: pa.Array) -> tuple[pa.Array, Flags]:
    seconds, nanos = _field(message, "seconds"), _field(message, "nanos")
    broken = (seconds < -_SECONDS) | (seconds > _SECONDS) | (nanos < 0) | (nanos >= 10**9)
    found = np.where(broken, 0, seconds) * 1000 + nanos // _NANOS_A_MS
    return numbers(found, None, pa.timestamp("ms", "UTC")), broken


def dates(message: pa.Array) -> tuple[pa.Array, Flags]:
    year, month, day = (_field(message, name) for name in ("year", "month", "day"))
    broken = (year < 1) | (year > 9999) | (month < 1) | (month > 12) | (day < 1) | (day > 31)
    months = np.where(broken, 0, (year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + np.where(broken, 0, day - 1)
    broken |= days.astype("datetime64[M]") != months
    return numbers(days.astype(np.int64), None, pa.date32()), broken


def times(message: pa.Array) -> tuple[pa.Array, Flags]:
    hours, minutes, seconds, nanos = (
        _field(message, name) for name in ("hours", "minutes", "seconds", "nanos")
    )
    bounds = ((hours, 24), (minutes, 60), (seconds, 60), (nanos, 10**9))
    broken = np.zeros(len(message), np.bool_)
    for values, limit in bounds:
        broken |= (values < 0) | (values >= limit)
    found = ((hours * 60 + minutes) * 60 + seconds) * 1000 + nanos // _NANOS_A_MS
    return numbers(np.where(broken, 0, found), None, pa.time32("ms")), broken


def decimals(message: pa.Array, schema: ConnectSchema) -> tuple[pa.Array, Flags]:
    """Of the scale that the field's schema has; a message of another scale must fit into it."""
    unscaled, broken = byte_columns.decimals(message.field("value"))
    column = numbers(unscaled, None, schema.arrow_type)
    wanted = int(schema.parameter(SCALE) or 0)
    scales = _field(message, "scale")
    if np.all(scales == wanted):
        return column, broken
    values: list[Decimal | None] = []
    for row, scale in enumerate(scales.tolist()):
        try:
            number = int.from_bytes(message.field("value")[row].as_py(), "big", signed=True)
            shifted = Decimal(number).scaleb(-scale, _EXACT)
            values.append(shifted.quantize(Decimal(1).scaleb(-wanted), context=_EXACT))
        except (Inexact, InvalidOperation):
            values.append(None)
            broken[row] = True
    return pa.array(values, schema.arrow_type), broken
