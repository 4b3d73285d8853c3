"""A decoded column in the type of a table's column, with the coercions of Java's table sinks.

Called for columns that carry a schema and for those that transforms made. Whole columns are cast natively;
where a cast fails, the column is cut into pieces until the values that cannot be cast are few, and those are
named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.jsontext.coerce import CastError, coerced
from icestream.jsontext.table_rows import cast_text
from icestream.records.column import array_of, is_uuid
from icestream.records.java_text import java_double, java_float

_SPLIT = 8
_ONE_BY_ONE = 16


NOT_CAST = (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError)
"""What Arrow and Python raise for values that one of them cannot hold."""


class _NoCast(ValueError):
    """There is no native cast that means what Java means."""


def cast_column(values: pa.Array, kind: pa.DataType, path: str) -> tuple[pa.Array, dict[int, str]]:
    """The values in another type; null where one does not fit, with the reason."""
    failed: dict[int, str] = {}
    pieces = list(_pieces(values, kind, path, 0, failed))
    return (pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)), failed


def _pieces(
    values: pa.Array, kind: pa.DataType, path: str, at: int, failed: dict[int, str]
) -> Iterator[pa.Array]:
    try:
        yield _cast(values, kind)
        return
    except NOT_CAST:
        pass
    if len(values) <= _ONE_BY_ONE:
        yield _one_by_one(values, kind, path, at, failed)
        return
    step = max(_ONE_BY_ONE, -(-len(values) // _SPLIT))
    for low in range(0, len(values), step):
        yield from _pieces(values.slice(low, step), kind, path, at + low, failed)


def _one_by_one(values: pa.Array, kind: pa.DataType, path: str, at: int, failed: dict[int, str]) -> pa.Array:
    held: list[Any] = []
    for position, value in enumerate(values):
        try:
            held.append(coerced(value.as_py(maps_as_pydicts="strict"), kind, path))
        except CastError as error:
            held.append(None)
            failed[at + position] = str(error)
        except NOT_CAST:  # Python itself cannot hold it, such as a moment after the year 9999
            held.append(None)
            failed[at + position] = (
                f"field '{path}' is a {value.type} that does not fit a column of type {kind}"
            )
    return array_of(held, kind)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """All values natively; raises if one does not fit or if there is no such cast."""
    source = values.type
    if source == kind:
        return values
    if pt.is_null(source):
        return pa.nulls(len(values), kind)
    for applies, cast in _CASTS:
        if applies(source, kind):
            return cast(values, kind)
    raise _NoCast


def _struct(values: pa.Array, kind: pa.StructType) -> pa.Array:
    """Fields by name: those that the table lacks are left out, those that the value lacks are null."""
    columns = {field.name: column for field, column in zip(values.type, values.flatten(), strict=True)}
    fields = [kind.field(position) for position in range(kind.num_fields)]
    held = [
        _cast(columns[field.name], field.type) if field.name in columns else pa.nulls(len(values), field.type)
        for field in fields
    ]
    return pa.StructArray.from_arrays(held, fields=fields, mask=null_mask(values))


def _list(values: pa.Array, kind: pa.ListType) -> pa.Array:
    items = _cast(values.flatten(), kind.value_type)
    return pa.ListArray.from_arrays(offsets_of(values), items, type=kind, mask=null_mask(values))


def _map(values: pa.Array, kind: pa.MapType) -> pa.Array:
    offsets, keys, items = entries_of(values)
    keys, items = _cast(keys, kind.key_type), _cast(items, kind.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null_mask(values))


def entries_of(values: pa.MapArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Offsets into keys and items, whatever the array was sliced from."""
    entries = pa.ListArray.from_arrays(
        values.offsets,
        pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"]),
        mask=null_mask(values),
    )
    flat = entries.flatten()
    return offsets_of(entries), flat.field(0), flat.field(1)


def offsets_of(values: pa.Array) -> pa.Array:
    """Offsets into the flattened items, whatever the array was sliced from."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def null_mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _exactly(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.cast(values, kind)


def _nearest(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.cast(values, kind, safe=False)


def _cut(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.cast(pc.trunc(values), kind)


def _rounded(values: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    if values.type.scale > kind.scale:
        values = pc.round(values, kind.scale, "half_towards_infinity")
    return pc.cast(values, kind)


def _whole_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    # The native cast would take hexadecimal digits, too.
    if not pc.all(pc.match_substring_regex(values, r"^-?[0-9]+$"), min_count=0).as_py():
        raise _NoCast
    return pc.cast(values, kind)


def _java_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    spell = java_float if pt.is_float32(values.type) else java_double
    distinct = values.dictionary_encode()
    texts = pa.array([spell(value) for value in distinct.dictionary.to_pylist()], pa.string())
    return texts.take(distinct.indices)


def _json_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    texts = (
        None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        for value in values.to_pylist(maps_as_pydicts="strict")
    )
    return pa.array(texts, pa.string())


def _naive(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Through UTC: a moment's date, time and wall clock are those of UTC, as in the Java sink."""
    if pt.is_date(values.type):
        values = pc.cast(values, pa.timestamp("ms"))
    if pt.is_timestamp(values.type) and values.type.tz is not None and not pt.is_timestamp(kind):
        values = pc.cast(values, pa.timestamp(values.type.unit))
    return pc.cast(values, kind, safe=not pt.is_date(kind))


def _since_1970(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Milliseconds as moments; milliseconds of a day as times; days as dates."""
    if pt.is_timestamp(kind):
        return pc.cast(pc.cast(pc.cast(values, pa.int64()), pa.timestamp("ms", kind.tz)), kind)
    if pt.is_date(kind):
        return pc.cast(pc.cast(values, pa.int32()), kind)
    return pc.cast(pc.cast(pc.cast(values, pa.int32()), pa.time32("ms")), kind)


def _is_real(kind: pa.DataType) -> bool:
    return bool(pt.is_float32(kind) or pt.is_float64(kind))


def _is_day_or_moment(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) or pt.is_date(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_fixed_size_binary(kind))


def _is_text_in_json(kind: pa.DataType) -> bool:
    return bool(pt.is_temporal(kind) or _is_bytes(kind) or is_uuid(kind))


_Applies = Callable[[pa.DataType], bool]


def _both(one: _Applies, other: _Applies) -> Callable[[pa.DataType, pa.DataType], bool]:
    return lambda source, kind: one(source) and other(kind)


_CASTS: list[tuple[Callable[[pa.DataType, pa.DataType], bool], Callable[[Any, Any], Any]]] = [
    (_both(pt.is_struct, pt.is_struct), _struct),
    (_both(pt.is_list, pt.is_list), _list),
    (_both(pt.is_map, pt.is_map), _map),
    (_both(pt.is_integer, pt.is_integer), _exactly),
    (_both(pt.is_integer, _is_real), _nearest),
    (_both(pt.is_integer, pt.is_string), _exactly),
    (_both(pt.is_integer, pt.is_decimal), _exactly),
    (_both(pt.is_integer, pt.is_temporal), _since_1970),
    (_both(_is_real, _is_real), _nearest),
    (_both(_is_real, pt.is_integer), _cut),
    (_both(_is_real, pt.is_string), _java_text),
    (_both(pt.is_boolean, pt.is_string), _exactly),
    (_both(pt.is_decimal, pt.is_decimal), _rounded),
    (_both(pt.is_decimal, _is_real), _nearest),
    (_both(pt.is_decimal, pt.is_string), _exactly),
    (_both(pt.is_string, pt.is_integer), _whole_text),
    (_both(pt.is_string, _is_text_in_json), cast_text),
    (_both(_is_day_or_moment, _is_day_or_moment), _naive),
    (_both(pt.is_timestamp, pt.is_time), _naive),
    (_both(pt.is_time, pt.is_time), _exactly),
    (_both(_is_bytes, _is_bytes), _exactly),
    (_both(pt.is_nested, pt.is_string), _json_text),
]
