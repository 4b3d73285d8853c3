"""Cursors into Avro datums: the bytes and numbers at them, and where a value ends without being read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry.avro_schema import AvroType
from icestream.converters.registry.byte_columns import spans, varints
from icestream.converters.registry.wire import Bodies
from icestream.records.rows import Flags, Indexes

TOO_SHORT: Final = "the datum ends too early"
Skip = Callable[[bytes, int], int]
"""From where a value begins to where it ends; raises IndexError behind the buffer, or ValueError."""
_SIZES: Final[Mapping[str, int]] = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_MANY_EMPTY: Final = 1_000


def skipper(kind: AvroType) -> Skip:
    if kind.kind in _SIZES:
        return _fixed(_SIZES[kind.kind])
    match kind.kind:
        case "fixed":
            return _fixed(kind.size)
        case "string" | "bytes":
            return skip_bytes
        case "record":
            return in_turn([skipper(one.type) for one in kind.fields])
        case "union":
            return _union([skipper(branch) for branch in kind.branches])
        case "array" | "map":
            assert kind.item is not None
            item = skipper(kind.item)
            return _blocks(item if kind.kind == "array" else in_turn([skip_bytes, item]))
    return _varint_end


def number(text: bytes, at: int) -> tuple[int, int]:
    """A variable-length number and where it ends."""
    value = shift = 0
    while True:
        byte = text[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("Invalid long encoding")


def _fixed(size: int) -> Skip:
    return lambda text, at: at + size


def _varint_end(text: bytes, at: int) -> int:
    return number(text, at)[1]


def skip_bytes(text: bytes, at: int) -> int:
    length, at = number(text, at)
    if length < 0:
        raise ValueError(f"Malformed data. Length is negative: {length}")
    return at + length


def in_turn(parts: Sequence[Skip]) -> Skip:
    def skip(text: bytes, at: int) -> int:
        for part in parts:
            at = part(text, at)
        return at

    return skip


def _union(branches: Sequence[Skip]) -> Skip:
    def skip(text: bytes, at: int) -> int:
        branch, at = number(text, at)
        if not 0 <= branch < len(branches):
            raise ValueError("the union has no such branch")
        return branches[branch](text, at)

    return skip


def _blocks(item: Skip) -> Skip:
    def skip(text: bytes, at: int) -> int:
        while True:
            count, at = block(text, at)
            if not count:
                return at
            for _ in range(count):
                begin, at = at, item(text, at)
                if at == begin:
                    break  # it takes no bytes, and neither do the others
                if at > len(text):
                    raise IndexError(TOO_SHORT)

    return skip


def block(text: bytes, at: int) -> tuple[int, int]:
    """How many items the next block of a list has, and where the first begins."""
    count, at = number(text, at)
    if count >= 0:
        return count, at
    return -count, _varint_end(text, at)


@dataclass(eq=False)
class Cursors:
    """Where each of some rows is being read."""

    row: Indexes
    at: Indexes
    end: Indexes

    def take(self, chosen: Indexes) -> Cursors:
        return Cursors(self.row[chosen], self.at[chosen], self.end[chosen])


@dataclass(frozen=True, eq=False)
class Slots:
    """Where in a column the values of cursors go; every other place is null."""

    length: int
    places: Indexes | None = None
    """None: the cursors are the column."""

    def take(self, chosen: Indexes) -> Slots:
        return Slots(self.length, chosen if self.places is None else self.places[chosen])

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


@dataclass
class Reading:
    """Datums being read, and why rows failed."""

    datums: Bodies
    failed: dict[int, str] = field(default_factory=dict)

    @cached_property
    def _empty_items(self) -> Indexes:
        return np.zeros(len(self.datums), np.int64)

    def believes_empty(self, cursors: Cursors, counts: Indexes | int) -> Flags:
        """Whether rows may have so many more items that take no bytes: no end of the datum bounds them."""
        np.add.at(self._empty_items, cursors.row, np.clip(counts, 0, _MANY_EMPTY + 1))
        return self._empty_items[cursors.row] <= _MANY_EMPTY

    @property
    def data(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return self.datums.data

    def fail(self, cursors: Cursors, flags: Flags, reason: str) -> None:
        if flags.any():
            for row in cursors.row[flags].tolist():
                self.failed.setdefault(row, reason)

    def longs(self, cursors: Cursors) -> Indexes:
        """The next variable-length number of each cursor."""
        value, endless = varints(self.data, cursors.at)
        if len(endless):
            self.fail(cursors.take(endless), np.ones(len(endless), np.bool_), "Invalid long encoding")
        signed = value.view(np.int64)
        found: Indexes = ((value >> np.uint64(1)).view(np.int64)) ^ -(signed & 1)
        return found

    def ints(self, cursors: Cursors) -> Indexes:
        found = self.longs(cursors)
        self.fail(cursors, found != found.astype(np.int32), "Invalid int encoding")
        return found

    def within(self, cursors: Cursors, lengths: Indexes) -> Indexes:
        """Lengths of what follows; those that make no sense are taken as 0."""
        negative = lengths < 0
        beyond = lengths > cursors.end - cursors.at
        if negative.any():
            for row, length in zip(cursors.row[negative].tolist(), lengths[negative].tolist(), strict=True):
                self.failed.setdefault(row, f"Malformed data. Length is negative: {length}")
        if beyond.any():
            self.fail(cursors, beyond, TOO_SHORT)
        bad = negative | beyond
        return np.where(bad, 0, lengths) if bad.any() else lengths

    def skip(self, cursors: Cursors, lengths: Indexes | int) -> tuple[Indexes, Indexes]:
        """Moves on by so many bytes; tells where they begin and end."""
        begin = cursors.at.copy()
        cursors.at += lengths
        return begin, cursors.at.copy()

    def cut(self, cursors: Cursors, slots: Slots, lengths: Indexes | int) -> pa.Array:
        """The bytes that follow, as a binary column."""
        begin, end = self.skip(cursors, lengths)
        # A broken datum has nothing of the next one, which would also cost the order that `spans` wants.
        begin, end = np.minimum(begin, cursors.end), np.minimum(end, cursors.end)
        return spans(self.datums.text, begin, end, slots.length, slots.places)
