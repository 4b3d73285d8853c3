"""Avro datums of one schema to Arrow, all rows at once; called by `avro`.

Every row has a cursor into one buffer of all datums. A field is read for all rows at once with a few numpy
operations, so the cost is per field and chunk, not per record. A datum that is broken fails alone: its
cursor only ever moves on, and one that ends behind its datum has read what is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry.avro_connect import UNION
from icestream.converters.registry.avro_cursors import (
    TOO_SHORT,
    Cursors,
    Reading,
    Skip,
    Slots,
    block,
    in_turn,
    skip_bytes,
    skipper,
)
from icestream.converters.registry.avro_schema import AvroType
from icestream.converters.registry.byte_columns import booleans, decimals, map_array, numbers, spans, texts
from icestream.converters.registry.wire import Bodies
from icestream.jsontext.connect_values import TIME_RANGE
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import DECIMAL, TIME, ConnectSchema, Kind

_FEW: Final = 12
"""When so many lists or fewer go on, the beginnings of their items are found first, and then all are read
together."""
One = Callable[[Cursors, Slots], pa.Array]
"""Reads one item at each cursor."""
_DAY_MS: Final = 86_400_000
_TOO_WIDE: Final = "the decimal has more than 76 digits, which no column can hold"


@dataclass(eq=False)
class Items:
    """Items of lists, read one of each list at a time."""

    owners: list[Indexes] = field(default_factory=list)
    """Cursor that each item belongs to."""
    columns: list[pa.Array] = field(default_factory=list)

    def ordered(self, cursors: int, empty: pa.DataType) -> tuple[pa.Array, Indexes]:
        """All items, those of a cursor together, and how many each cursor has."""
        if not self.columns:
            return pa.nulls(0, empty), np.zeros(cursors, np.int64)
        owners = np.concatenate(self.owners)
        items = pa.concat_arrays(self.columns)
        if len(self.columns) > 1:
            items = items.take(pa.array(np.argsort(owners, kind="stable")))
        return items, np.bincount(owners, minlength=cursors)


def collect(reader: Reading, cursors: Cursors, smallest: int, skip: Skip, one: One) -> Items:
    """All items of lists at the cursors. An item takes `smallest` bytes or more; `skip` finds its end."""
    items = Items()
    left = np.zeros(len(cursors.at), np.int64)
    active = np.arange(len(cursors.at))
    while len(active) > _FEW:
        part = cursors.take(active)
        begins = np.flatnonzero(left[active] == 0)
        if len(begins):
            heads = part.take(begins)
            left[active[begins]] = _block(reader, heads, smallest)
            part.at[begins] = heads.at
            cursors.at[active[begins]] = heads.at
            going = np.flatnonzero(left[active])
            active, part = active[going], part.take(going)
        if len(active):
            items.columns.append(one(part, Slots(len(active))))
            items.owners.append(active)
            cursors.at[active] = part.at
            left[active] -= 1
    _collect_rest(reader, cursors, active, left, skip, one, items)
    return items


def _collect_rest(
    reader: Reading, cursors: Cursors, active: Indexes, left: Indexes, skip: Skip, one: One, items: Items
) -> None:
    owners: list[int] = []
    begins: list[int] = []
    for cursor in active.tolist():
        found, cursors.at[cursor] = _begins(reader, cursors, cursor, int(left[cursor]), skip)
        owners.extend([cursor] * len(found))
        begins.extend(found)
    if owners:
        belongs = np.array(owners, np.int64)
        part = Cursors(cursors.row[belongs], np.array(begins, np.int64), cursors.end[belongs])
        items.columns.append(one(part, Slots(len(owners))))
        items.owners.append(belongs)


def _begins(reader: Reading, cursors: Cursors, cursor: int, left: int, skip: Skip) -> tuple[list[int], int]:
    """Where the items of the rest of a list begin, and where the list ends."""
    text, at, end = reader.datums.text, int(cursors.at[cursor]), int(cursors.end[cursor])
    found: list[int] = []
    here = np.array([cursor])
    try:
        while True:
            if not left:
                left, at = block(text, at)
                if not left:
                    return found, at
            begin, at = at, skip(text, at)
            alike = left if at == begin else 1
            if at > end or (alike > 1 and not reader.believes_empty(cursors.take(here), alike).all()):
                raise IndexError
            found.extend([begin] * alike)
            left -= alike
    except (IndexError, ValueError) as error:
        reason = str(error) if isinstance(error, ValueError) else TOO_SHORT
        reader.failed.setdefault(int(cursors.row[cursor]), reason)
        return [], end


def _block(reader: Reading, cursors: Cursors, smallest: int) -> Indexes:
    """How many items the next block of each list has; 0: the list is over."""
    count = reader.longs(cursors)
    sized = np.flatnonzero(count < 0)
    if len(sized):
        part = cursors.take(sized)
        reader.longs(part)  # the size of the block in bytes, for those who skip it
        cursors.at[sized] = part.at
        count[sized] = -count[sized]
    if smallest:
        wrong = (count < 0) | (count > np.maximum(cursors.end - cursors.at, 0) // smallest)
    else:
        wrong = (count < 0) | ~reader.believes_empty(cursors, count)
    reader.fail(cursors, wrong, TOO_SHORT)
    cursors.at[wrong] = cursors.end[wrong]  # what follows could look like ever more items
    return np.where(wrong, 0, count)


@dataclass(frozen=True, eq=False)
class Decoded:
    column: pa.Array
    failed: Mapping[int, str]
    """Why rows failed; their places in the column hold anything."""
    trailing: Flags
    """Rows whose datum is followed by something."""


def decode(kind: AvroType, schema: ConnectSchema, datums: Bodies) -> Decoded:
    reader = Reading(datums)
    cursors = Cursors(np.arange(len(datums)), datums.begin.copy(), datums.end)
    column = _read(reader, kind, schema, cursors, Slots(len(datums)))
    reader.fail(cursors, cursors.at > cursors.end, TOO_SHORT)
    return Decoded(column, reader.failed, cursors.at < cursors.end)


def decode_bare(schema: ConnectSchema, datums: Bodies) -> Decoded:
    """Datums of the schema `bytes`: alone, they have no length before them."""
    found = spans(datums.text, datums.begin, datums.end, len(datums), None)
    trailing = np.zeros(len(datums), np.bool_)
    if schema.name != DECIMAL:
        return Decoded(found, {}, trailing)
    unscaled, wide = decimals(found)
    failed = dict.fromkeys(np.flatnonzero(wide).tolist(), _TOO_WIDE)
    return Decoded(numbers(unscaled, None, schema.arrow_type), failed, trailing)


def _read(reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots) -> pa.Array:
    return _READERS[kind.kind](reader, kind, schema, cursors, slots)


def _boolean(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    flags = reader.data.take(cursors.at, mode="clip") == 1
    cursors.at += 1
    return booleans(slots.spread(flags), slots.nulls)


def _number(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    found = reader.ints(cursors) if kind.kind == "int" else reader.longs(cursors)
    if schema.name == TIME:
        reader.fail(cursors, (found < 0) | (found >= _DAY_MS), TIME_RANGE)
    return numbers(slots.spread(found), slots.nulls, schema.arrow_type)


def _float(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    width = 4 if kind.kind == "float" else 8
    begin, _ = reader.skip(cursors, width)
    raw = reader.data.take(begin[:, None] + np.arange(width), mode="clip")
    found = np.ascontiguousarray(raw).view(f"<f{width}").ravel()
    return numbers(slots.spread(found), slots.nulls, schema.arrow_type)


def _string(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    return texts(reader.cut(cursors, slots, reader.within(cursors, reader.longs(cursors))))


def _bytes(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    size = kind.size if kind.kind == "fixed" else reader.within(cursors, reader.longs(cursors))
    if schema.name != DECIMAL:
        return reader.cut(cursors, slots, size)
    found = reader.cut(cursors, Slots(len(cursors.at)), size)
    unscaled, wide = decimals(found)
    reader.fail(cursors, wide, _TOO_WIDE)
    return numbers(slots.spread(unscaled), slots.nulls, schema.arrow_type)


def _enum(reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots) -> pa.Array:
    found = reader.ints(cursors)
    wrong = (found < 0) | (found >= len(kind.symbols))
    reader.fail(cursors, wrong, f"the enum {kind.name} has no such symbol")
    places = slots.spread(np.where(wrong, 0, found))
    return pa.array(kind.symbols, pa.string()).take(pa.array(places, mask=slots.nulls))


def _record(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    children = [
        _read(reader, one.type, mine.schema, cursors, slots)
        for one, mine in zip(kind.fields, schema.fields, strict=True)
    ]
    return _struct(schema, children, slots.length, slots.nulls)


def _struct(schema: ConnectSchema, children: list[pa.Array], length: int, nulls: Flags | None) -> pa.Array:
    if not children:
        return pa.array([{}] * length, schema.arrow_type, mask=nulls)
    fields = [schema.arrow_type.field(position) for position in range(len(children))]
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _union(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    branch = reader.longs(cursors)
    wrong = (branch < 0) | (branch >= len(kind.branches))
    reader.fail(cursors, wrong, "the union has no such branch")
    valued = [position for position, one in enumerate(kind.branches) if one.kind != "null"]
    if schema.name != UNION and len(valued) == 1:
        return _branch(reader, kind.branches[valued[0]], schema, cursors, slots, branch == valued[0])
    children = [
        _branch(reader, kind.branches[position], mine.schema, cursors, slots, branch == position)
        for position, mine in zip(valued, schema.fields, strict=True)
    ]
    chosen = slots.take(np.flatnonzero(np.isin(branch, valued)))
    return _struct(schema, children, slots.length, chosen.nulls)


def _branch(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots, mine: Flags
) -> pa.Array:
    if mine.all():
        return _read(reader, kind, schema, cursors, slots)
    chosen = np.flatnonzero(mine)
    if not len(chosen):
        return pa.nulls(slots.length, schema.arrow_type)
    part = cursors.take(chosen)
    column = _read(reader, kind, schema, part, slots.take(chosen))
    cursors.at[chosen] = part.at
    return column


def _offsets(counts: Indexes, slots: Slots) -> pa.Array:
    offsets = np.zeros(slots.length + 1, np.int32)
    np.cumsum(slots.spread(counts), out=offsets[1:])
    nulls = slots.nulls
    return pa.array(offsets, mask=None if nulls is None else np.append(nulls, False))


def _list(reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots) -> pa.Array:
    item, inner = kind.item, schema.value
    assert item is not None and inner is not None
    if schema.kind is Kind.MAP:
        return _entries(reader, item, schema, cursors, slots)
    found = collect(
        reader,
        cursors,
        smallest(item),
        skipper(item),
        lambda part, into: _read(reader, item, inner, part, into),
    )
    items, counts = found.ordered(len(cursors.at), inner.arrow_type)
    return pa.ListArray.from_arrays(_offsets(counts, slots), items, type=schema.arrow_type)


def _map(reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots) -> pa.Array:
    item, key_schema, inner = kind.item, schema.key, schema.value
    assert item is not None and key_schema is not None and inner is not None

    def entry(part: Cursors, into: Slots) -> pa.Array:
        key = _string(reader, item, key_schema, part, into)
        return pa.StructArray.from_arrays([key, _read(reader, item, inner, part, into)], ["key", "value"])

    skip = in_turn([skip_bytes, skipper(item)])
    return _map_array(collect(reader, cursors, 1 + smallest(item), skip, entry), schema, cursors, slots)


def _entries(
    reader: Reading, kind: AvroType, schema: ConnectSchema, cursors: Cursors, slots: Slots
) -> pa.Array:
    """A map whose keys are no strings, which Connect writes as a list of records of key and value."""
    sides: Mapping[str, ConnectSchema | None] = {"key": schema.key, "value": schema.value}

    def entry(part: Cursors, into: Slots) -> pa.Array:
        columns = {}
        for one in kind.fields:
            inner = sides[one.name]
            assert inner is not None
            columns[one.name] = _read(reader, one.type, inner, part, into)
        return pa.StructArray.from_arrays([columns["key"], columns["value"]], ["key", "value"])

    return _map_array(collect(reader, cursors, smallest(kind), skipper(kind), entry), schema, cursors, slots)


def _map_array(found: Items, schema: ConnectSchema, cursors: Cursors, slots: Slots) -> pa.Array:
    pairs = pa.struct([("key", schema.arrow_type.key_type), ("value", schema.arrow_type.item_type)])
    entries, counts = found.ordered(len(cursors.at), pairs)
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
