"""Avro datums of one schema to Arrow, all rows abreast; called by the Avro converter.

Every row has a cursor into one buffer of all datums. A field is read for all rows at once with a few numpy
operations, so the cost is per field and chunk, not per record. A datum that is broken fails alone: its
cursor only ever moves on, and one that ends behind its datum has read what is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.converters.json_values import TIME_RANGE
from icestream.converters.registry.avro_connect import UNION
from icestream.converters.registry.avro_schema import AvroType
from icestream.converters.registry.byte_columns import booleans, decimals, numbers, spans, texts, varints
from icestream.converters.registry.wire import Bodies
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import DECIMAL, TIME, ConnectSchema, Kind

TOO_SHORT: Final = "the datum ends too early"
_DAY_MS: Final = 86_400_000
_MANY_EMPTY: Final = 10_000
"""Items that take no bytes at all: no datum says how many of them are still believable."""


@dataclass
class _Lanes:
    """Where each of some rows is being read."""

    row: Indexes
    at: Indexes
    end: Indexes

    def take(self, chosen: Indexes) -> _Lanes:
        return _Lanes(self.row[chosen], self.at[chosen], self.end[chosen])


@dataclass(frozen=True)
class _Slots:
    """Where in a column the values of lanes go; every other place is null."""

    length: int
    places: Indexes | None = None
    """None: the lanes are the column."""

    def take(self, chosen: Indexes) -> _Slots:
        return _Slots(self.length, chosen if self.places is None else self.places[chosen])

    @property
    def nulls(self) -> Flags | None:
        if self.places is None:
            return None
        flags = np.ones(self.length, np.bool_)
        flags[self.places] = False
        return flags

    def spread(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.places is None:
            return values
        full = np.zeros((self.length, *values.shape[1:]), values.dtype)
        full[self.places] = values
        return full


@dataclass(frozen=True)
class Decoded:
    column: pa.Array
    failed: Mapping[int, str]
    """Why rows failed; their places in the column hold anything."""
    trailing: Flags
    """Rows whose datum is followed by something."""


def decode(kind: AvroType, schema: ConnectSchema, datums: Bodies) -> Decoded:
    reader = _Reader(datums)
    lanes = _Lanes(np.arange(len(datums)), datums.begin.copy(), datums.end)
    column = reader.read(kind, schema, lanes, _Slots(len(datums)))
    reader.fail(lanes, lanes.at > lanes.end, TOO_SHORT)
    return Decoded(column, reader.failed, lanes.at < lanes.end)


@dataclass
class _Reader:
    datums: Bodies
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def data(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return self.datums.data

    def fail(self, lanes: _Lanes, flags: Flags, reason: str) -> None:
        if flags.any():
            for row in lanes.row[flags].tolist():
                self.failed.setdefault(row, reason)

    def read(self, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
        return _READERS[kind.kind](self, kind, schema, lanes, slots)

    def longs(self, lanes: _Lanes) -> Indexes:
        """The next variable-length number of each lane."""
        value, endless = varints(self.data, lanes.at)
        if len(endless):
            self.fail(lanes.take(endless), np.ones(len(endless), np.bool_), "Invalid long encoding")
        signed = value.view(np.int64)
        found: Indexes = ((value >> np.uint64(1)).view(np.int64)) ^ -(signed & 1)
        return found

    def ints(self, lanes: _Lanes) -> Indexes:
        found = self.longs(lanes)
        self.fail(lanes, found != found.astype(np.int32), "Invalid int encoding")
        return found

    def within(self, lanes: _Lanes, lengths: Indexes) -> Indexes:
        """Lengths of what follows; those that make no sense are taken as 0."""
        negative = lengths < 0
        beyond = lengths > lanes.end - lanes.at
        if negative.any():
            for row, length in zip(lanes.row[negative].tolist(), lengths[negative].tolist(), strict=True):
                self.failed.setdefault(row, f"Malformed data. Length is negative: {length}")
        if beyond.any():
            self.fail(lanes, beyond, TOO_SHORT)
        bad = negative | beyond
        return np.where(bad, 0, lengths) if bad.any() else lengths

    def skip(self, lanes: _Lanes, lengths: Indexes | int) -> tuple[Indexes, Indexes]:
        """Moves on by so many bytes; tells where they begin and end."""
        begin = lanes.at.copy()
        lanes.at += lengths
        return begin, lanes.at.copy()

    def cut(self, lanes: _Lanes, slots: _Slots, lengths: Indexes | int) -> pa.Array:
        """The bytes that follow, as a binary column."""
        begin, end = self.skip(lanes, lengths)
        if isinstance(lengths, int):  # of fixed size, so nobody has looked whether they are there
            limit = np.minimum(end, lanes.end)
            begin, end = np.minimum(begin, limit), limit
        return spans(self.datums.text, begin, end, slots.length, slots.places)


def _boolean(
    reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots
) -> pa.Array:
    flags = reader.data.take(lanes.at, mode="clip") == 1
    lanes.at += 1
    return booleans(slots.spread(flags), slots.nulls)


def _number(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    found = reader.ints(lanes) if kind.kind == "int" else reader.longs(lanes)
    if schema.name == TIME:
        reader.fail(lanes, (found < 0) | (found >= _DAY_MS), TIME_RANGE)
    return numbers(slots.spread(found), slots.nulls, schema.arrow_type)


def _float(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    width = 4 if kind.kind == "float" else 8
    begin, _ = reader.skip(lanes, width)
    raw = reader.data.take(begin[:, None] + np.arange(width), mode="clip")
    found = np.ascontiguousarray(raw).view(f"<f{width}").ravel()
    return numbers(slots.spread(found), slots.nulls, schema.arrow_type)


def _string(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    return texts(reader.cut(lanes, slots, reader.within(lanes, reader.longs(lanes))))


def _bytes(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    size = kind.size if kind.kind == "fixed" else reader.within(lanes, reader.longs(lanes))
    if schema.name != DECIMAL:
        return reader.cut(lanes, slots, size)
    found = reader.cut(lanes, _Slots(len(lanes.at)), size)
    unscaled, wide = decimals(found)
    reader.fail(lanes, wide, "the decimal has more than 76 digits, which no column can hold")
    return numbers(slots.spread(unscaled), slots.nulls, schema.arrow_type)


def _enum(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    found = reader.ints(lanes)
    wrong = (found < 0) | (found >= len(kind.symbols))
    reader.fail(lanes, wrong, f"the enum {kind.name} has no such symbol")
    places = slots.spread(np.where(wrong, 0, found))
    return pa.array(kind.symbols, pa.string()).take(pa.array(places, mask=slots.nulls))


def _record(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    children = [
        reader.read(one.type, mine.schema, lanes, slots)
        for one, mine in zip(kind.fields, schema.fields, strict=True)
    ]
    return _struct(schema, children, slots.length, slots.nulls)


def _struct(schema: ConnectSchema, children: list[pa.Array], length: int, nulls: Flags | None) -> pa.Array:
    if not children:
        return pa.array([{}] * length, schema.arrow_type, mask=nulls)
    fields = [schema.arrow_type.field(position) for position in range(len(children))]
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _union(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
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
    reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots, mine: Flags
) -> pa.Array:
    if mine.all():
        return reader.read(kind, schema, lanes, slots)
    chosen = np.flatnonzero(mine)
    if not len(chosen):
        return pa.nulls(slots.length, schema.arrow_type)
    part = lanes.take(chosen)
    column = reader.read(kind, schema, part, slots.take(chosen))
    lanes.at[chosen] = part.at
    return column


@dataclass
class _Items:
    """Items of lists, read one of each list at a time."""

    owners: list[Indexes] = field(default_factory=list)
    """Lane that each item belongs to."""
    columns: list[pa.Array] = field(default_factory=list)

    def ordered(self, lanes: int, empty: pa.DataType) -> tuple[pa.Array, Indexes]:
        """All items, those of a lane together, and how many each lane has."""
        if not self.columns:
            return pa.nulls(0, empty), np.zeros(lanes, np.int64)
        owners = np.concatenate(self.owners)
        items = pa.concat_arrays(self.columns)
        if len(self.columns) > 1:
            items = items.take(pa.array(np.argsort(owners, kind="stable")))
        return items, np.bincount(owners, minlength=lanes)


def _collect(
    reader: _Reader, lanes: _Lanes, smallest: int, one: Callable[[_Lanes, _Slots], pa.Array]
) -> _Items:
    items = _Items()
    left = np.zeros(len(lanes.at), np.int64)
    active = np.arange(len(lanes.at))
    while len(active):
        part = lanes.take(active)
        begins = np.flatnonzero(left[active] == 0)
        if len(begins):
            heads = part.take(begins)
            left[active[begins]] = _block(reader, heads, smallest)
            part.at[begins] = heads.at
            lanes.at[active[begins]] = heads.at
            going = np.flatnonzero(left[active])
            active, part = active[going], part.take(going)
        if len(active):
            items.columns.append(one(part, _Slots(len(active))))
            items.owners.append(active)
            lanes.at[active] = part.at
            left[active] -= 1
    return items


def _block(reader: _Reader, lanes: _Lanes, smallest: int) -> Indexes:
    """How many items the next block of each list has; 0: the list is over."""
    count = reader.longs(lanes)
    sized = np.flatnonzero(count < 0)
    if len(sized):
        part = lanes.take(sized)
        reader.longs(part)  # the size of the block in bytes, for those who skip it
        lanes.at[sized] = part.at
        count[sized] = -count[sized]
    room = np.maximum(lanes.end - lanes.at, 0) // smallest if smallest else np.full_like(count, _MANY_EMPTY)
    wrong = (count > room) | (count < 0)
    reader.fail(lanes, wrong, TOO_SHORT)
    return np.where(wrong, 0, count)


def _offsets(counts: Indexes, slots: _Slots) -> pa.Array:
    offsets = np.zeros(slots.length + 1, np.int32)
    np.cumsum(slots.spread(counts), out=offsets[1:])
    nulls = slots.nulls
    return pa.array(offsets, mask=None if nulls is None else np.append(nulls, False))


def _list(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    item, inner = kind.item, schema.value
    assert item is not None and inner is not None
    if schema.kind is Kind.MAP:
        return _entries(reader, item, schema, lanes, slots)
    found = _collect(reader, lanes, smallest(item), lambda part, into: reader.read(item, inner, part, into))
    items, counts = found.ordered(len(lanes.at), inner.arrow_type)
    return pa.ListArray.from_arrays(_offsets(counts, slots), items, type=schema.arrow_type)


def _map(reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    item, key_schema, inner = kind.item, schema.key, schema.value
    assert item is not None and key_schema is not None and inner is not None

    def entry(part: _Lanes, into: _Slots) -> pa.Array:
        key = _string(reader, item, key_schema, part, into)
        return pa.StructArray.from_arrays([key, reader.read(item, inner, part, into)], ["key", "value"])

    return _map_array(_collect(reader, lanes, 1 + smallest(item), entry), schema, lanes, slots)


def _entries(
    reader: _Reader, kind: AvroType, schema: ConnectSchema, lanes: _Lanes, slots: _Slots
) -> pa.Array:
    """A map whose keys are no strings, which Connect writes as a list of records of key and value."""
    sides: Mapping[str, ConnectSchema | None] = {"key": schema.key, "value": schema.value}

    def entry(part: _Lanes, into: _Slots) -> pa.Array:
        columns = {}
        for one in kind.fields:
            inner = sides[one.name]
            assert inner is not None
            columns[one.name] = reader.read(one.type, inner, part, into)
        return pa.StructArray.from_arrays([columns["key"], columns["value"]], ["key", "value"])

    return _map_array(_collect(reader, lanes, smallest(kind), entry), schema, lanes, slots)


def _map_array(found: _Items, schema: ConnectSchema, lanes: _Lanes, slots: _Slots) -> pa.Array:
    pairs = pa.struct([("key", schema.arrow_type.key_type), ("value", schema.arrow_type.item_type)])
    entries, counts = found.ordered(len(lanes.at), pairs)
    keys, values = entries.flatten()
    return pa.MapArray.from_arrays(_offsets(counts, slots), keys, values, type=schema.arrow_type)


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
