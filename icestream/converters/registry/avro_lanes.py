"""Cursors into Avro datums, and the bytes and numbers at them; what readers of all types stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry.avro_skip import TOO_SHORT
from icestream.converters.registry.byte_columns import spans, varints
from icestream.converters.registry.wire import Bodies
from icestream.records.rows import Flags, Indexes


@dataclass
class Lanes:
    """Where each of some rows is being read."""

    row: Indexes
    at: Indexes
    end: Indexes

    def take(self, chosen: Indexes) -> Lanes:
        return Lanes(self.row[chosen], self.at[chosen], self.end[chosen])


@dataclass(frozen=True)
class Slots:
    """Where in a column the values of lanes go; every other place is null."""

    length: int
    places: Indexes | None = None
    """None: the lanes are the column."""

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


_MANY_EMPTY: Final = 1_000


@dataclass
class Reading:
    """Datums being read, and why rows failed."""

    datums: Bodies
    failed: dict[int, str] = field(default_factory=dict)

    @cached_property
    def _empty_items(self) -> Indexes:
        return np.zeros(len(self.datums), np.int64)

    def believes_empty(self, lanes: Lanes, counts: Indexes | int) -> Flags:
        """Whether rows may have so many more items that take no bytes: no end of the datum bounds them."""
        np.add.at(self._empty_items, lanes.row, np.clip(counts, 0, _MANY_EMPTY + 1))
        return self._empty_items[lanes.row] <= _MANY_EMPTY

    @property
    def data(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return self.datums.data

    def fail(self, lanes: Lanes, flags: Flags, reason: str) -> None:
        if flags.any():
            for row in lanes.row[flags].tolist():
                self.failed.setdefault(row, reason)

    def longs(self, lanes: Lanes) -> Indexes:
        """The next variable-length number of each lane."""
        value, endless = varints(self.data, lanes.at)
        if len(endless):
            self.fail(lanes.take(endless), np.ones(len(endless), np.bool_), "Invalid long encoding")
        signed = value.view(np.int64)
        found: Indexes = ((value >> np.uint64(1)).view(np.int64)) ^ -(signed & 1)
        return found

    def ints(self, lanes: Lanes) -> Indexes:
        found = self.longs(lanes)
        self.fail(lanes, found != found.astype(np.int32), "Invalid int encoding")
        return found

    def within(self, lanes: Lanes, lengths: Indexes) -> Indexes:
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

    def skip(self, lanes: Lanes, lengths: Indexes | int) -> tuple[Indexes, Indexes]:
        """Moves on by so many bytes; tells where they begin and end."""
        begin = lanes.at.copy()
        lanes.at += lengths
        return begin, lanes.at.copy()

    def cut(self, lanes: Lanes, slots: Slots, lengths: Indexes | int) -> pa.Array:
        """The bytes that follow, as a binary column."""
        begin, end = self.skip(lanes, lengths)
        # A broken datum has nothing of the next one, which would also cost the order that `spans` wants.
        begin, end = np.minimum(begin, lanes.end), np.minimum(end, lanes.end)
        return spans(self.datums.text, begin, end, slots.length, slots.places)
