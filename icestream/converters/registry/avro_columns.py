"""Avro datums of one schema to Arrow, all rows abreast; called by the Avro converter.

Every row has a cursor into one buffer of all datums. A field is read for all rows at once with a few numpy
operations, so the cost is per field and chunk, not per record. A datum that is broken fails alone: its
cursor only ever moves on, and one that ends behind its datum has read what is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry.avro_defaults import UNION
from icestream.converters.registry.avro_items import Items, collect
from icestream.converters.registry.avro_lanes import Lanes, Reading, Slots
from icestream.converters.registry.avro_schema import AvroType
from icestream.converters.registry.avro_skip import TOO_SHORT, in_turn, skip_bytes, skipper
from icestream.converters.registry.byte_columns import booleans, decimals, numbers, spans, texts
from icestream.converters.registry.map_columns import map_array
from icestream.converters.registry.wire import Bodies
from icestream.jsontext.connect_values import TIME_RANGE
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import DECIMAL, TIME, ConnectSchema, Kind

_DAY_MS: Final = 86_400_000
_TOO_WIDE: Final = "the decimal has more than 76 digits, which no column can hold"


@dataclass(frozen=True)
class Decoded:
    column: pa.Array
    failed: Mapping[int, str]
    """Why rows failed; their places in the column hold anything."""
    trailing: Flags
    """Rows whose datum is followed by something."""


def decode(kind: AvroType, schema: ConnectSchema, datums: Bodies) -> Decoded:
    reader = Reading(datums)
    lanes = Lanes(np.arange(len(datums)), datums.begin.copy(), datums.end)
    column = _read(reader, kind, schema, lanes, Slots(len(datums)))
    reader.fail(lanes, lanes.at > lanes.end, TOO_SHORT)
    return Decoded(column, reader.failed, lanes.at < lanes.end)


def decode_bare(schema: ConnectSchema, datums: Bodies) -> Decoded:
    """Datums of the schema `bytes`: alone, they have no length before them."""
    found = spans(datums.text, datums.begin, datums.end, len(datums), None)
    trailing = np.zeros(len(datums), np.bool_)
    if schema.name != DECIMAL:
        return Decoded(found, {}, trailing)
    unscaled, wide = decimals(found)
    failed = dict.fromkeys(np.flatnonzero(wide).tolist(), _TOO_WIDE)
    return Decoded(numbers(unscaled, None, schema.arrow_type), failed, trailing)


def _read(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    return _READERS[kind.kind](reader, kind, schema, lanes, slots)


def _boolean(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    flags = reader.data.take(lanes.at, mode="clip") == 1
    lanes.at += 1
    return booleans(slots.spread(flags), slots.nulls)


def _number(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    found = reader.ints(lanes) if kind.kind == "int" else reader.longs(lanes)
    if schema.name == TIME:
        reader.fail(lanes, (found < 0) | (found >= _DAY_MS), TIME_RANGE)
    return numbers(slots.spread(found), slots.nulls, schema.arrow_type)


def _float(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    width = 4 if kind.kind == "float" else 8
    begin, _ = reader.skip(lanes, width)
    raw = reader.data.take(begin[:, None] + np.arange(width), mode="clip")
    found = np.ascontiguousarray(raw).view(f"<f{width}").ravel()
    return numbers(slots.spread(found), slots.nulls, schema.arrow_type)


def _string(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    return texts(reader.cut(lanes, slots, reader.within(lanes, reader.longs(lanes))))


def _bytes(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    size = kind.size if kind.kind == "fixed" else reader.within(lanes, reader.longs(lanes))
    if schema.name != DECIMAL:
        return reader.cut(lanes, slots, size)
    found = reader.cut(lanes, Slots(len(lanes.at)), size)
    unscaled, wide = decimals(found)
    reader.fail(lanes, wide, _TOO_WIDE)
    return numbers(slots.spread(unscaled), slots.nulls, schema.arrow_type)


def _enum(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    found = reader.ints(lanes)
    wrong = (found < 0) | (found >= len(kind.symbols))
    reader.fail(lanes, wrong, f"the enum {kind.name} has no such symbol")
    places = slots.spread(np.where(wrong, 0, found))
    return pa.array(kind.symbols, pa.string()).take(pa.array(places, mask=slots.nulls))


def _record(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    children = [
        _read(reader, one.type, mine.schema, lanes, slots)
        for one, mine in zip(kind.fields, schema.fields, strict=True)
    ]
    return _struct(schema, children, slots.length, slots.nulls)


def _struct(schema: ConnectSchema, children: list[pa.Array], length: int, nulls: Flags | None) -> pa.Array:
    if not children:
        return pa.array([{}] * length, schema.arrow_type, mask=nulls)
    fields = [schema.arrow_type.field(position) for position in range(len(children))]
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _union(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    branch = reader.longs(lanes)
    wrong = (branch < 0) | (branch >= len(kind.branches))
    reader.fail(lanes, wrong, "the union has no such branch")
    valued = [position for position, one in enumerate(kind.branches) if one.kind != "null"]
    if schema.name != UNION and len(valued) == 1:
        return _branch(reader, kind.branches[valued[0]], schema, lanes, slots, branch == valued[0])
    children = [
        _branch(reader, kind.branches[position], mine.schema, lanes, slots, branch == position)
        for position, mine in zip(valued, schema.fields, strict=True)
    ]
    chosen = slots.take(np.flatnonzero(np.isin(branch, valued)))
    return _struct(schema, children, slots.length, chosen.nulls)


def _branch(
    reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots, mine: Flags
) -> pa.Array:
    if mine.all():
        return _read(reader, kind, schema, lanes, slots)
    chosen = np.flatnonzero(mine)
    if not len(chosen):
        return pa.nulls(slots.length, schema.arrow_type)
    part = lanes.take(chosen)
    column = _read(reader, kind, schema, part, slots.take(chosen))
    lanes.at[chosen] = part.at
    return column


def _offsets(counts: Indexes, slots: Slots) -> pa.Array:
    offsets = np.zeros(slots.length + 1, np.int32)
    np.cumsum(slots.spread(counts), out=offsets[1:])
    nulls = slots.nulls
    return pa.array(offsets, mask=None if nulls is None else np.append(nulls, False))


def _list(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    item, inner = kind.item, schema.value
    assert item is not None and inner is not None
    if schema.kind is Kind.MAP:
        return _entries(reader, item, schema, lanes, slots)
    found = collect(
        reader,
        lanes,
        smallest(item),
        skipper(item),
        lambda part, into: _read(reader, item, inner, part, into),
    )
    items, counts = found.ordered(len(lanes.at), inner.arrow_type)
    return pa.ListArray.from_arrays(_offsets(counts, slots), items, type=schema.arrow_type)


def _map(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    item, key_schema, inner = kind.item, schema.key, schema.value
    assert item is not None and key_schema is not None and inner is not None

    def entry(part: Lanes, into: Slots) -> pa.Array:
        key = _string(reader, item, key_schema, part, into)
        return pa.StructArray.from_arrays([key, _read(reader, item, inner, part, into)], ["key", "value"])

    skip = in_turn([skip_bytes, skipper(item)])
    return _map_array(collect(reader, lanes, 1 + smallest(item), skip, entry), schema, lanes, slots)


def _entries(reader: Reading, kind: AvroType, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    """A map whose keys are no strings, which Connect writes as a list of records of key and value."""
    sides: Mapping[str, ConnectSchema | None] = {"key": schema.key, "value": schema.value}

    def entry(part: Lanes, into: Slots) -> pa.Array:
        columns = {}
        for one in kind.fields:
            inner = sides[one.name]
            assert inner is not None
            columns[one.name] = _read(reader, one.type, inner, part, into)
        return pa.StructArray.from_arrays([columns["key"], columns["value"]], ["key", "value"])

    return _map_array(collect(reader, lanes, smallest(kind), skipper(kind), entry), schema, lanes, slots)


def _map_array(found: Items, schema: ConnectSchema, lanes: Lanes, slots: Slots) -> pa.Array:
    pairs = pa.struct([("key", schema.arrow_type.key_type), ("value", schema.arrow_type.item_type)])
    entries, counts = found.ordered(len(lanes.at), pairs)
    keys, values = entries.flatten()
    return map_array(schema, keys, values, slots.spread(counts), slots.nulls)


def smallest(kind: AvroType) -> int:
    """How many bytes a value takes at least."""
    sizes = {"null": 0, "float": 4, "double": 8, "fixed": kind.size}
    if kind.kind == "record":
        return sum(smallest(one.type) for one in kind.fields)
    return sizes.get(kind.kind, 1)


_READERS: Final[Mapping[str, Callable[..., pa.Array]]] = {
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": _float,
    "double": _float,
    "string": _string,
    "bytes": _bytes,
    "fixed": _bytes,
    "enum": _enum,
    "record": _record,
    "union": _union,
    "array": _list,
    "map": _map,
}
