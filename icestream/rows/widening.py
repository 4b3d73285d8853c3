"""Columns of a table that records no longer fit: which could be wider, and which need not be required.

Asked by `schema_drift` about the few records that failed to become rows. What a table's rules allow is
offered: a long for an int, a double for a float, more digits of a decimal.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.jsontext.coerce import CastError, coerced
from icestream.records.json_source import ABSENT
from icestream.rows.new_columns import (
    LIST_ELEMENT,
    MAP_VALUE,
    MOST_DIGITS,
    NO_LONGER_REQUIRED,
    Path,
    fields_of,
)

_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def widenings(value: Any, kind: pa.DataType) -> dict[Path, pa.DataType]:
    """The wider types that would hold a value, by path; none if it would not fit even then."""
    wide = _wider(value, kind)
    if wide is kind:
        return {}
    try:
        coerced(value, wide, "")
    except CastError:
        return {}
    return dict(_differences(kind, wide, ()))


def _wider(value: Any, kind: pa.DataType) -> pa.DataType:
    """The type itself, or one that is wider somewhere inside."""
    if value is None or value is ABSENT:
        return kind
    if pt.is_struct(kind) and isinstance(value, dict):
        fields = fields_of(kind)
        wide = [one.with_type(_wider(value.get(one.name), one.type)) for one in fields]
        return kind if all(map(_is_same, fields, wide)) else pa.struct(wide)
    if pt.is_list(kind) and isinstance(value, list):
        item = kind.value_field
        inner = _widest(value, item.type)
        return kind if inner is item.type else pa.list_(item.with_type(inner))
    if pt.is_map(kind) and isinstance(value, dict):
        item = kind.item_field
        inner = _widest(list(value.values()), item.type)
        return kind if inner is item.type else pa.map_(kind.key_field, item.with_type(inner))
    if pt.is_nested(kind) or isinstance(value, bool):
        return kind
    return _wider_number(value, kind)


def _widest(values: list[Any], kind: pa.DataType) -> pa.DataType:
    for value in values:
        kind = _wider(value, kind)
    return kind


def _is_same(one: pa.Field, other: pa.Field) -> bool:
    return bool(one.type == other.type)


def _wider_number(value: Any, kind: pa.DataType) -> pa.DataType:
    try:
        if pt.is_int32(kind) and not -(2**31) <= int(value) < 2**31:
            return pa.int64()
        if pt.is_float32(kind) and _LARGEST_FLOAT < abs(float(value)) < float("inf"):
            return pa.float64()
        if pt.is_decimal(kind):
            return _wider_decimal(decimal.Decimal(str(value)), kind)
    except (ValueError, TypeError, ArithmeticError):
        return kind
    return kind


def _wider_decimal(value: decimal.Decimal, kind: pa.Decimal128Type) -> pa.DataType:
    digits = value.adjusted() + 1 + kind.scale
    return pa.decimal128(digits, kind.scale) if kind.precision < digits <= MOST_DIGITS else kind


def _differences(one: pa.DataType, other: pa.DataType, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
    if pt.is_struct(one):
        for before, after in zip(fields_of(one), fields_of(other), strict=True):
            yield from _differences(before.type, after.type, (*path, before.name))
    elif pt.is_list(one):
        yield from _differences(one.value_type, other.value_type, (*path, LIST_ELEMENT))
    elif pt.is_map(one):
        yield from _differences(one.item_type, other.item_type, (*path, MAP_VALUE))
    elif one != other:
        yield path, other


def explicit_nulls(value: Any, kind: pa.StructType, path: Path = ()) -> Iterator[Path]:
    """The required fields that a record says are null. One that it does not have at all may belong to
    another kind of record, and stays required."""
    for one in fields_of(kind):
        held = value.get(one.name, ABSENT)
        if held is not ABSENT:
            yield from _nulls_at(held, one, (*path, one.name))


def _nulls_at(value: Any, field: pa.Field, path: Path) -> Iterator[Path]:
    kind = field.type
    if value is None:
        if not field.nullable:
            yield (*path, NO_LONGER_REQUIRED)
    elif pt.is_struct(kind) and isinstance(value, dict):
        yield from explicit_nulls(value, kind, path)
    elif pt.is_list(kind) and isinstance(value, list):
        for item in value:
            yield from _nulls_at(item, kind.value_field, (*path, LIST_ELEMENT))
    elif pt.is_map(kind) and isinstance(value, dict):
        for item in value.values():
            yield from _nulls_at(item, kind.item_field, (*path, MAP_VALUE))
