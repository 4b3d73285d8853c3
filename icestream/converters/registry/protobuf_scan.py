"""Protobuf messages taken apart into the occurrences of their fields, all rows abreast.

Every row has a cursor. At each step the rows that stand at the smallest tag read that field together, so
rows whose fields come in the usual order stay together, whatever each of them leaves out.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from icestream.converters.registry.byte_columns import varints
from icestream.converters.registry.protobuf_cursor import (
    BAD_END,
    BAD_VARINT,
    BAD_WIRE_TYPE,
    BYTES,
    FIXED32,
    FIXED64,
    GROUP,
    GROUP_END,
    TAGS,
    TRUNCATED,
    VARINT,
    WIDTHS,
    ZERO_TAG,
    Cursor,
)
from icestream.converters.registry.wire import Bodies
from icestream.records.rows import Flags, Indexes

_DONE: Final = np.iinfo(np.int64).max
_FEW: Final = 12
"""So many rows or fewer are read one by one: a step for all costs as much."""


@dataclass
class Lanes:
    """Messages in a buffer, in its order."""

    row: Indexes
    """The row of the chunk that each is from."""
    at: Indexes
    end: Indexes

    def __len__(self) -> int:
        return len(self.at)


@dataclass
class Found:
    """Occurrences of one field with one wire type, in order for each message."""

    owners: list[Indexes] = field(default_factory=list)
    first: list[Indexes] = field(default_factory=list)
    """The number's bits, or where the bytes begin."""
    last: list[Indexes] = field(default_factory=list)
    """Where the occurrence ends."""

    def add(self, owners: Indexes, first: Indexes, last: Indexes) -> None:
        self.owners.append(owners)
        self.first.append(first)
        self.last.append(last)

    def together(self) -> tuple[Indexes, Indexes, Indexes]:
        """Those of a message together."""
        owners, first, last = map(np.concatenate, (self.owners, self.first, self.last))
        if len(self.owners) > 1 and np.any(owners[1:] < owners[:-1]):
            order = np.argsort(owners, kind="stable")
            owners, first, last = owners[order], first[order], last[order]
        return owners, first, last


Occurrences = dict[tuple[int, int], Found]
"""By field number and wire type."""


@dataclass
class Scanner:
    bodies: Bodies
    failed: dict[int, str] = field(default_factory=dict)

    def fail(self, lanes: Lanes, flags: Flags | Indexes, reason: str) -> None:
        for row in lanes.row[flags].tolist():
            self.failed.setdefault(row, reason)

    def scan(self, lanes: Lanes, wanted: Container[int]) -> Occurrences:
        found: Occurrences = {}
        tag, before = np.zeros(len(lanes), np.int64), lanes.at.copy()
        active = fresh = np.flatnonzero(lanes.at < lanes.end)
        while len(active) > _FEW:
            before[fresh] = lanes.at[fresh]
            tag[fresh] = np.minimum(self._varints(lanes, fresh), TAGS).view(np.int64)
            current = tag[active]
            smallest = int(current.min())
            chosen = active[current == smallest]
            self._field(found, wanted, smallest, lanes, chosen)
            over = lanes.at[chosen] >= lanes.end[chosen]
            fresh = chosen[~over]
            tag[chosen[over]] = _DONE
            active = active[tag[active] != _DONE]
        # Those that have read their tag already are put back before it: it is read again.
        waiting = np.setdiff1d(active, fresh)
        lanes.at[waiting] = before[waiting]
        for lane in active.tolist():
            self._scan_one(found, wanted, lanes, lane)
        self.fail(lanes, lanes.at > lanes.end, TRUNCATED)
        return found

    def _varints(self, lanes: Lanes, chosen: Indexes) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        at = lanes.at[chosen]
        values, endless = varints(self.bodies.data, at)
        lanes.at[chosen] = at
        if len(endless):
            self.fail(lanes, chosen[endless], BAD_VARINT)
            lanes.at[chosen[endless]] = lanes.end[chosen[endless]]
        return values

    def _field(
        self, found: Occurrences, wanted: Container[int], tag: int, lanes: Lanes, chosen: Indexes
    ) -> None:
        number, kind = tag >> 3, tag & 7
        if kind == GROUP and 8 <= tag < TAGS:
            self._pass_groups(lanes, chosen, number)
            return
        if not 8 <= tag < TAGS or kind not in (VARINT, FIXED64, BYTES, FIXED32):
            wrong_kind = BAD_END if kind == GROUP_END else BAD_WIRE_TYPE
            self.fail(lanes, chosen, wrong_kind if 8 <= tag < TAGS else ZERO_TAG)
            lanes.at[chosen] = lanes.end[chosen]
            return
        if kind == VARINT:
            first = self._varints(lanes, chosen).view(np.int64)
        elif kind == BYTES:
            first = self._cut(lanes, chosen)
        else:
            first = self._fixed(lanes, chosen, WIDTHS[kind])
        if number in wanted:
            known = found.setdefault((number, kind), Found())
            known.add(chosen, first, np.minimum(lanes.at[chosen], lanes.end[chosen]))

    def _cut(self, lanes: Lanes, chosen: Indexes) -> Indexes:
        lengths = self._varints(lanes, chosen)
        begin, end = lanes.at[chosen], lanes.end[chosen]
        beyond = (begin > end) | (lengths > np.maximum(end - begin, 0).astype(np.uint64))
        if beyond.any():
            self.fail(lanes, chosen[beyond], TRUNCATED)
            begin = np.where(beyond, end, begin)
            lengths = np.where(beyond, 0, lengths)
        lanes.at[chosen] = begin + lengths.view(np.int64)
        return begin

    def _fixed(self, lanes: Lanes, chosen: Indexes, width: int) -> Indexes:
        begin = lanes.at[chosen]
        raw = self.bodies.data.take(begin[:, None] + np.arange(width), mode="clip")
        lanes.at[chosen] = begin + width
        return np.ascontiguousarray(raw).view(f"<u{width}").ravel().astype(np.uint64).view(np.int64)

    def _pass_groups(self, lanes: Lanes, chosen: Indexes, number: int) -> None:
        """No field that we know is a group."""
        for lane in chosen.tolist():
            reader = Cursor(self.bodies.text, int(lanes.at[lane]), int(lanes.end[lane]))
            try:
                reader.pass_group(number)
            except ValueError as error:
                self.failed.setdefault(int(lanes.row[lane]), str(error))
                reader.at = reader.end
            lanes.at[lane] = reader.at

    def _scan_one(self, found: Occurrences, wanted: Container[int], lanes: Lanes, lane: int) -> None:
        """The rest of one message."""
        reader = Cursor(self.bodies.text, int(lanes.at[lane]), int(lanes.end[lane]))
        seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
        try:
            while reader.at < reader.end:
                number, kind, first = reader.field()
                if number in wanted:
                    seen.setdefault((number, kind), []).append((first, reader.at))
        except ValueError as error:
            self.failed.setdefault(int(lanes.row[lane]), str(error))
        lanes.at[lane] = lanes.end[lane]
        for key, occurrences in seen.items():
            pairs = np.array(occurrences, np.int64)
            owners = np.full(len(pairs), lane, np.int64)
            found.setdefault(key, Found()).add(owners, pairs[:, 0].copy(), pairs[:, 1].copy())
