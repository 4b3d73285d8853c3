"""msgspec types of JSON objects, made from the types of a table; and the pass that checks payloads by one.

`object_type` (in `records.json_source`, which projects fields with it) makes every type of an object; here it
is told what the fields of a table's schema may be. msgspec then says of each payload whether it is of a type,
far cheaper than decoding it into rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from operator import length_hint
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.records.json_source import object_type
from icestream.records.payloads import Payloads
from icestream.records.rows import Flags

Check = Callable[[Payloads], Flags]
"""True for each payload that may be in the way of the others when they are decoded at once."""
_Leaf = Callable[[pa.DataType], Any]
"""What msgspec may find where the table has this type; None: look at what is inside of it."""


def exact_type(fields: Iterable[pa.Field], *, closed: bool = False) -> Any:
    """Objects whose values arrow-rs takes for just what the text says; with no other keys, if closed."""
    return object_type({one.name: _kind(one.type, _exact_leaf, False) for one in fields}, closed=closed)


def closed_type(fields: Iterable[pa.Field], edited: Iterable[str] = ()) -> Any:
    """Objects with no other keys than these, and those edited, on any level; whatever their values are."""
    kinds = {one.name: _kind(one.type, _any_leaf, True) for one in fields}
    return object_type(kinds | dict.fromkeys(edited, msgspec.Raw), closed=True)


def held_type(fields: Iterable[pa.Field]) -> Any:
    """Objects with no other keys than these on any level, whose values are of these types; text holds all."""
    return object_type({one.name: _kind(one.type, _held_leaf, True) for one in fields}, closed=True)


def check(kind: Any) -> Check:
    decode = msgspec.json.Decoder(kind).decode
    return lambda payloads: odd_ones(decode, list(payloads))


def odd_ones(decode: Callable[[bytes], Any], texts: list[bytes]) -> Flags:
    """Which texts a decoder does not take."""
    flags = np.zeros(len(texts), np.bool_)
    left = iter(texts)
    while length_hint(left):
        try:
            # As fast as C can: the iterator stands behind the one that was refused.
            deque(map(decode, left), maxlen=0)
        except ValueError:  # msgspec's errors are ValueErrors
            flags[len(texts) - length_hint(left) - 1] = True
    return flags


def _kind(kind: pa.DataType, leaf: _Leaf, closed: bool) -> Any:
    found = leaf(kind)
    if found is not None:
        return found
    if pt.is_map(kind):
        return dict[str, _kind(kind.item_type, leaf, closed)] | None  # type: ignore[misc]
    if pt.is_list(kind):
        return list[_kind(kind.value_type, leaf, closed)] | None  # type: ignore[misc]
    fields = (kind.field(position) for position in range(kind.num_fields))
    return object_type({one.name: _kind(one.type, leaf, closed) for one in fields}, closed=closed) | None


def _exact_leaf(kind: pa.DataType) -> Any:
    if pt.is_nested(kind):
        return None
    if pt.is_integer(kind):
        bits = kind.bit_width - 1
        return Annotated[int, msgspec.Meta(ge=-(2**bits), le=2**bits - 1)] | None
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return float | None
    return bool | None if pt.is_boolean(kind) else str | None


def _held_leaf(kind: pa.DataType) -> Any:
    return msgspec.Raw if pt.is_string(kind) else _exact_leaf(kind)


def _any_leaf(kind: pa.DataType) -> Any:
    if pt.is_struct(kind) or (pt.is_list(kind) and pt.is_nested(kind.value_type)):
        return None
    return None if pt.is_map(kind) and pt.is_nested(kind.item_type) else msgspec.Raw
