"""Which payloads have what a schema wants, told one by one but far cheaper than by decoding them.

The bulk readers fail as a whole. When they do, this finds the payloads to set aside before they try again.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable
from operator import length_hint
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.records.json_source import can_be_projected
from icestream.records.payloads import Payloads
from icestream.records.rows import Flags

Check = Callable[[Payloads], Flags]
"""True for each payload that may be in the way of the others."""


def misfits(wire: pa.Schema, *, is_closed: bool = False) -> Check:
    """Those with a value that arrow-rs would not take for this schema, or take for something else; if it is
    closed, also those with more fields at the top."""
    return functools.partial(_refused, msgspec.json.Decoder(_struct(wire, is_closed)).decode)


def _refused(decode: Callable[[bytes], Any], payloads: Payloads) -> Flags:
    refused = np.zeros(len(payloads), np.bool_)
    left = iter(list(payloads))
    while length_hint(left):
        try:
            # As fast as C can: the iterator stands behind the one that was refused.
            deque(map(decode, left), maxlen=0)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            refused[len(payloads) - length_hint(left) - 1] = True
    return refused


def _struct(fields: Iterable[pa.Field], is_closed: bool = False) -> Any:
    # A field that msgspec cannot name is not checked.
    known = [field for field in fields if can_be_projected(field.name)]
    slots = [f"f{position}" for position in range(len(known))]
    return msgspec.defstruct(
        "Shape",
        [(slot, _shape(field.type) | None, None) for slot, field in zip(slots, known, strict=True)],
        rename=dict(zip(slots, (field.name for field in known), strict=True)),
        forbid_unknown_fields=is_closed,
        gc=False,
    )


def _shape(kind: pa.DataType) -> Any:
    if pt.is_struct(kind):
        return _struct(kind.field(position) for position in range(kind.num_fields))
    if pt.is_map(kind):
        return dict[str, _shape(kind.item_type) | None]  # type: ignore[misc]
    if pt.is_list(kind):
        return list[_shape(kind.value_type) | None]  # type: ignore[misc]
    if pt.is_integer(kind):
        bits = kind.bit_width - 1
        return Annotated[int, msgspec.Meta(ge=-(2**bits), le=2**bits - 1)]
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return float
    return bool if pt.is_boolean(kind) else str
