"""Cast: fields, or the whole value, as another type, with numbers and texts as Java narrows, reads and prints
them."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.column import Column, nulls
from icestream.records.java_classes import java_class
from icestream.records.java_text import java_double, java_float, java_long
from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema, Kind
from icestream.records.values import Fields, Typed
from icestream.transforms.date_patterns import DAY
from icestream.transforms.dates import DateFormat, milliseconds
from icestream.transforms.failures import GroupFailed, is_null, values_failed
from icestream.transforms.groups import Changed, Side, all_failed, without_failed
from icestream.transforms.settings import at_colons
from icestream.transforms.structs import SchemaCache, change_fields, with_fields

_PURPOSE: Final = "cast types"
_LOGICAL: Final = frozenset((DATE, TIME, TIMESTAMP, DECIMAL))
_INPUTS: Final = tuple(kind for kind in Kind if kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT))
_PLAIN_SCALE: Final = 6
"""A decimal of so many digits after the point is never written with an exponent."""
_TIME: Final = DateFormat.of("HH:mm:ss.SSS'Z'")
_DATE: Final = DateFormat.of("yyyy-MM-dd")
_TIMESTAMP: Final = DateFormat.of("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
_LONG: Final = re.compile(r"([-+]?)0*(?!0[0-9])([0-9]{1,19})")
_REAL: Final = re.compile(r"([-+]?)(NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")
_SPACES: Final = "".join(map(chr, range(33)))
"""What Java's String.trim takes off."""
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
"""Between them, Java prints floating point numbers without an exponent."""


@dataclass(frozen=True)
class Cast:
    side: Side
    casts: Mapping[str, Kind]
    whole: Kind | None = None
    replace_null_with_default: bool = True
    _schemas: SchemaCache[ConnectSchema] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        casts: dict[str, Kind] = {}
        whole = None
        for one in settings["spec"]:
            *names, kind = (part.strip() for part in at_colons(one))
            if names:
                casts[names[0]] = Kind(kind.upper())
            else:
                whole = Kind(kind.upper())
        return cls(side, casts, whole, settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if value is None or is_null(value):
            return Applied([records])
        try:
            if self.whole is not None:
                return self._whole(records, value, self.whole)
            if isinstance(value, Column) and value.schema is not None:
                self._schema_after(value.schema)
            changes = {name: functools.partial(_cast, target=kind) for name, kind in self.casts.items()}
            return change_fields(
                records,
                self.side,
                changes,
                _PURPOSE,
                schema_after=self._schema_after,
                defaults=self.replace_null_with_default,
            )
        except GroupFailed as why:
            return all_failed(records, why.failure)

    def _whole(self, records: Records, value: Typed, kind: Kind) -> Applied:
        changed = _cast(value, kind)
        assert isinstance(changed.value, Column)
        column = changed.value
        if isinstance(value, Column) and value.schema is not None:
            column = replace(column, schema=self._schema_after(value.schema))
        return without_failed(self.side.put(records, column), changed.failed)

    def _schema_after(self, schema: ConnectSchema) -> ConnectSchema:
        return self._schemas.get(schema, self._changed_schema)

    def _changed_schema(self, schema: ConnectSchema) -> ConnectSchema:
        if self.whole is not None:
            # Java keeps a logical type's name on what is none any more: no converter could write it.
            name = None if schema.name in _LOGICAL else schema.name
            changed = replace(schema, kind=self.whole, name=name, default=None)
        elif schema.kind is not Kind.STRUCT:
            raise GroupFailed("Cannot list fields on non-struct type")
        else:
            fields = [(one.name, self._changed_field(one.name, one.schema)) for one in schema.fields]
            changed = replace(with_fields(schema, fields), optional=schema.optional)
        if schema.default is None:
            return changed
        return replace(changed, default=_cast_one(schema.default, schema, changed.kind))

    def _changed_field(self, name: str, schema: ConnectSchema) -> ConnectSchema:
        if name not in self.casts:
            return schema
        kind = self.casts[name]
        default = None if schema.default is None else _cast_one(schema.default, schema, kind)
        return ConnectSchema(kind, optional=schema.optional, default=default)


def _cast(value: Typed, target: Kind) -> Changed:
    """In the Arrow type of the target; what cannot be cast is null and has a failure."""
    if is_null(value):
        return Changed(nulls(len(value)))
    refusal = _refusal(value, target)
    if refusal is not None:
        return Changed(nulls(len(value)), values_failed(value, Failure(refusal)))
    assert isinstance(value, Column)
    values, bad = _cast_values(value.values, target)
    return Changed(Column(values), {row: _out_of_range(text) for row, text in bad.items()})


def _refusal(value: Typed, target: Kind) -> str | None:
    """Why values of this type cannot be cast."""
    if not isinstance(value, Column):
        return _unsupported(Kind.MAP if isinstance(value, Fields) else Kind.ARRAY)
    if value.schema is None and java_class(value) in ("java.util.Date", "java.math.BigDecimal"):
        what = f"class {java_class(value)} which is not supported by Connect's data API"
        return f"Cast transformation was passed a value of type {what}"
    if value.schema is not None and value.schema.kind not in _INPUTS:
        return _unsupported(value.schema.kind)
    if pt.is_binary(value.values.type) and target is not Kind.STRING:
        return "Unexpected type in Cast transformation: class [B"
    return None


def _unsupported(source: Kind) -> str:
    supported = f"supported types are [{', '.join(_INPUTS)}]"
    return f"Cast transformation does not support casting from {source}; {supported}"


def _out_of_range(text: str) -> Failure:
    return Failure(f"Value ({text}) was out of range for requested data type")


def _cast_values(values: pa.Array, target: Kind) -> tuple[pa.Array, Mapping[int, str]]:
    """And the texts that are no numbers, by position."""
    kind = ConnectSchema(target).arrow_type
    if target is Kind.STRING:
        return printed(values), {}
    if pt.is_temporal(values.type):
        values = values.cast(pa.int64() if pt.is_timestamp(values.type) else pa.int32())
    if target is Kind.BOOLEAN:
        return _booleans(values), {}
    if pt.is_string(values.type):
        return parsed_integers(values, kind) if pt.is_integer(kind) else parsed_reals(values, kind)
    return _numbers(values, kind), {}


def _cast_one(value: Any, schema: ConnectSchema, target: Kind) -> Any:
    """A schema's default."""
    changed = _cast(Column(pa.array([value], schema.arrow_type), schema), target)
    for failure in changed.failed.values():
        raise GroupFailed(failure)
    assert isinstance(changed.value, Column)
    return changed.value.values[0].as_py()


def _numbers(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pt.is_decimal(values.type):
        if pt.is_floating(target):
            return printed(values).cast(target)
        longs, _ = _over_distinct(values, lambda value: java_long(int(value)), pa.int64())
        return longs.cast(target, safe=False)
    if pt.is_floating(values.type) and pt.is_integer(target):
        return _cut_off(values, target)
    return values.cast(target, safe=False)


def _booleans(values: pa.Array) -> pa.Array:
    if pt.is_boolean(values.type):
        return values
    if pt.is_string(values.type):
        return pc.equal(pc.ascii_lower(values), "true")
    return pc.not_equal(_numbers(values, pa.int64()), 0)


def _cut_off(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Floating point numbers as integers: cut off, at the ends of the range if beyond, NaN is 0; then bytes
    and shorts keep the low bits of an int, as Java's narrowing does."""
    wide: pa.DataType = pa.int64() if target == pa.int64() else pa.int32()
    info = np.iinfo(wide.to_pandas_dtype())
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    low, high = float(info.min), float(info.max)  # 2^63-1 is 2^63 here, which is too much
    inside = (numbers > low) & (numbers < high)
    whole = np.where(inside, numbers, 0.0).astype(info.dtype)
    whole[numbers <= low] = info.min
    whole[numbers >= high] = info.max
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(whole, wide, mask=mask).cast(target, safe=False)


def _over_distinct(
    values: pa.Array, change: Callable[[Any], Any], target: pa.DataType
) -> tuple[pa.Array, dict[int, Any]]:
    """Each distinct value changed by a function of Python's own values. Those that it has None for are told
    of by position."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    changed = [change(value) for value in distinct]
    result = pa.array(changed, target).take(encoded.indices)
    if None not in changed:
        return result, {}
    codes: Indexes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    bad = [code for code, one in enumerate(changed) if one is None]
    return result, {row: distinct[int(codes[row])] for row in np.flatnonzero(np.isin(codes, bad)).tolist()}


def parsed_integers(values: pa.Array, target: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """As `Long.parseLong` and its like read ASCII digits."""
    if _is_made_of(values, b"0123456789-"):
        try:
            return values.cast(target), {}
        except pa.ArrowInvalid:
            pass
    info = np.iinfo(target.to_pandas_dtype())

    def parse(text: str) -> int | None:
        match = _LONG.fullmatch(text)
        number = int(match[1] + match[2]) if match else info.max + 1
        return number if info.min <= number <= info.max else None

    return _over_distinct(values, parse, target)


def parsed_reals(values: pa.Array, target: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """As `Double.parseDouble` and `Float.parseFloat` read decimal digits without a suffix."""
    if _is_made_of(values, b"0123456789-+.eE"):
        try:
            return values.cast(target), {}
        except pa.ArrowInvalid:
            pass

    def as_arrow_reads_it(text: str) -> str | None:
        match = _REAL.fullmatch(text.strip(_SPACES))
        return f"{match[1]}{match[2].lower()}" if match else None

    texts, failed = _over_distinct(values, as_arrow_reads_it, pa.string())
    return texts.cast(target), failed


@functools.cache
def _flags(allowed: bytes) -> Flags:
    flags = np.zeros(256, np.bool_)
    flags[list(allowed)] = True
    return flags


def _is_made_of(values: pa.Array, allowed: bytes) -> bool:
    """Whether the texts are made of these ASCII characters."""
    _, offsets, text = values.buffers()
    if text is None:
        return True
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    codes = np.frombuffer(text, np.uint8)[bounds[0] : bounds[-1]]
    return bool(_flags(allowed)[codes].all())


def printed(values: pa.Array) -> pa.Array:
    """As text."""
    kind = values.type
    if pt.is_string(kind):
        return values
    if pt.is_floating(kind):
        return _printed_reals(values)
    if pt.is_binary(kind):
        return _over_distinct(values, lambda data: base64.b64encode(data).decode(), pa.string())[0]
    if pt.is_temporal(kind):
        return _printed_dates(values)
    if pt.is_decimal(kind) and not 0 <= kind.scale <= _PLAIN_SCALE:
        return _over_distinct(values, str, pa.string())[0]
    return values.cast(pa.string())


def _printed_reals(values: pa.Array) -> pa.Array:
    """As `Double.toString` and `Float.toString` do it: the shortest digits that mean the number, at least one
    of them after the point."""
    texts = values.cast(pa.string())
    numbers = np.abs(values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    plain = (numbers >= _PLAIN_FROM) & (numbers < _PLAIN_BELOW)
    pointed = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    if plain.all():
        return pointed
    odd = pa.array(~plain)
    one = java_float if values.type == pa.float32() else java_double
    return pc.replace_with_mask(pointed, odd, _over_distinct(values.filter(odd), one, pa.string())[0])


def _printed_dates(values: pa.Array) -> pa.Array:
    """A time of day until the second of January 1970, from then on a date at midnight or else a timestamp."""
    moments = milliseconds(values)
    numbers = moments.fill_null(0).to_numpy(zero_copy_only=False)
    midnight = pa.array(numbers % DAY == 0)
    later = pc.if_else(midnight, _DATE.format(moments), _TIMESTAMP.format(moments))
    return pc.if_else(pa.array(numbers < DAY), _TIME.format(moments), later)
