"""MaskField: puts the empty value of its type, or a replacement, in the place of a field's value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.column import Column, nulls
from icestream.records.java_classes import java_class
from icestream.records.json_source import JsonSource
from icestream.records.records import Applied, Records
from icestream.records.values import Fields, Listing, Text, Typed
from icestream.transforms.failures import GroupFailed, is_null, values_failed
from icestream.transforms.groups import Changed, Side, all_failed
from icestream.transforms.structs import change_fields

_PURPOSE: Final = "mask fields"
_NUMBER: Final = re.compile(r"[-+]?(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_MOST_POWERS: Final = 100_000
_EMPTY_LISTS: Final = JsonSource([b"[]"])


@dataclass(frozen=True)
class MaskField:
    side: Side
    fields: tuple[str, ...]
    replacement: str | None = None
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        names = tuple(settings["fields"])
        return cls(side, names, settings.get("replacement"), settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        try:
            return change_fields(
                records,
                self.side,
                dict.fromkeys(self.fields, self._masked_or_failed),
                _PURPOSE,
                schema_after=lambda schema: schema,
                defaults=self.replace_null_with_default,
            )
        except GroupFailed as why:
            return all_failed(records, why.failure)

    def _masked_or_failed(self, value: Typed) -> Changed:
        if is_null(value):
            return Changed(nulls(len(value)))
        try:
            return Changed(self._masked(value))
        except GroupFailed as why:
            return Changed(nulls(len(value)), values_failed(value, why.failure))

    def _masked(self, value: Typed) -> Typed:
        if self.replacement is None:
            return _emptied(value)
        name = java_class(value)
        if not isinstance(value, Column) or not _is_replaceable(value.values.type):
            raise GroupFailed(f"Cannot mask value of type class {name} with custom replacement.")
        return _filled(value, _replacement(self.replacement, value.values.type))


def _filled(column: Column, scalar: pa.Scalar) -> Column:
    """The scalar wherever there is a value."""
    values = column.values
    masked = pa.repeat(scalar, len(values))
    if values.null_count:
        masked = pc.if_else(values.is_valid(), masked, pa.scalar(None, values.type))
    return Column(masked, column.schema)


def _emptied(value: Typed) -> Typed:
    if isinstance(value, Fields):
        return Fields({}, None, len(value))
    if isinstance(value, Listing):
        return Listing(Text(_EMPTY_LISTS, (), np.zeros(len(value), np.int64)))
    kind = value.values.type
    if pt.is_list(kind) or pt.is_map(kind):
        empty = pa.array([[], None], kind)
        return Column(empty.take(pa.array(value.nulls.astype(np.int64))), value.schema)
    return _filled(value, _empty(value))


def _empty(column: Column) -> pa.Scalar:
    kind = column.values.type
    if pt.is_binary(kind) or pt.is_struct(kind):
        raise GroupFailed(f"Cannot mask value of type: class {java_class(column)}")
    if pt.is_boolean(kind):
        return pa.scalar(False)
    if pt.is_string(kind):
        return pa.scalar("")
    if pt.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    return pa.scalar(0).cast(pa.int32() if pt.is_date(kind) or pt.is_time(kind) else pa.int64()).cast(kind)


def _is_replaceable(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_string(kind) or pt.is_decimal(kind))


def _replacement(text: str, kind: pa.DataType) -> pa.Scalar:
    if pt.is_string(kind):
        return pa.scalar(text)
    if pt.is_decimal(kind):
        return _decimal(text, kind)
    number = _parsed(text)
    if number is None:
        raise GroupFailed(f"Unable to convert {text} (class java.lang.String) to a number")
    if pt.is_floating(kind):
        return pa.scalar(float(number)).cast(kind, safe=False)
    width: int = kind.bit_width
    half = 1 << (width - 1)
    return pa.scalar((int(number) + half) % (2 * half) - half, kind)


def _decimal(text: str, kind: pa.DataType) -> pa.Scalar:
    number = _parsed(text)
    if number is None:
        raise GroupFailed(f"Unable to convert {text} (class java.lang.String) to number")
    try:
        return pa.scalar(number, kind)
    except pa.ArrowInvalid:
        exponent = number.as_tuple().exponent
        raise GroupFailed(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {kind.scale}, value has scale {-int(exponent)}."
        ) from None


def _parsed(text: str) -> Decimal | None:
    """As Java's BigDecimal reads it."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if abs(number.adjusted()) < _MOST_POWERS else None
