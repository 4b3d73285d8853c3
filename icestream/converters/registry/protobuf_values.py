"""Columns of Protobuf's numbers, enums, lists and structs; used by the reader of messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from icestream.converters.registry.byte_columns import numbers
from icestream.converters.registry.protobuf_plan import ProtoField
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import ConnectSchema, Kind

Numbers = np.ndarray[tuple[int], Any]


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
