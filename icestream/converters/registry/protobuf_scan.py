"""Finds the occurrences of the fields of Protobuf messages, all rows at once; used by `protobuf_read`.

Every row has a cursor. At each step the rows that stand at the smallest tag read that field together, so
rows whose fields come in the usual order stay together, whatever each of them leaves out.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from icestream.converters.registry.byte_columns import spans, varints
from icestream.converters.registry.wire import Bodies
from icestream.records.rows import Flags, Indexes

TRUNCATED: Final = "While parsing a protocol message, the input ended unexpectedly in the middle of a field."
ZERO_TAG: Final = "Protocol message contained an invalid tag (zero)."
BAD_WIRE_TYPE: Final = "Protocol message tag had invalid wire type."
BAD_VARINT: Final = "CodedInputStream encountered a malformed varint."
BAD_END: Final = "Protocol message end-group tag did not match expected tag."
TOO_DEEP: Final = "Protocol message had too many levels of nesting."
VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
WIDTHS: Final = {FIXED64: 8, FIXED32: 4}
TAGS: Final = 2**32
"""A tag is below it."""
_DEEPEST: Final = 100
_DONE: Final = np.iinfo(np.int64).max
_FEW: Final = 12
"""So many rows or fewer are read one by one: a step for all costs as much."""


@dataclass
class FieldReader:
    """Reads one message field by field; for the few rows that are not read together."""

    text: bytes
    at: int
    end: int

    def field(self) -> tuple[int, int, int]:
        """Number, wire type, and the number's bits or where the bytes begin. Raises ValueError."""
        number, kind = self._tag()
        if kind == GROUP:
            self.pass_group(number)
            return number, kind, self.at
        return number, kind, self._value(kind)

    def pass_group(self, number: int) -> None:
        """To behind the end of a group that has begun. Raises ValueError."""
        above = [number]
        while above:
            number, kind = self._tag()
            if kind == GROUP:
                above.append(number)
                if len(above) > _DEEPEST:
                    raise ValueError(TOO_DEEP)
            elif kind != GROUP_END:
                self._value(kind)
            elif above.pop() != number:
                raise ValueError(BAD_END)

    def _tag(self) -> tuple[int, int]:
        tag = self._varint()
        if not 8 <= tag < TAGS:
            raise ValueError(ZERO_TAG)
        return tag >> 3, tag & 7

    def _value(self, kind: int) -> int:
        if kind == VARINT:
            value = self._varint()
            return value - 2**64 if value >= 2**63 else value
        if kind == BYTES:
            return self._skip(self._varint())
        if kind in WIDTHS:
            begin = self._skip(WIDTHS[kind])
            return int.from_bytes(self.text[begin : self.at], "little", signed=kind == FIXED64)
        raise ValueError(BAD_END if kind == GROUP_END else BAD_WIRE_TYPE)

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            if self.at >= self.end:
                raise ValueError(TRUNCATED)
            byte = self.text[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & (2**64 - 1)
            shift += 7
        raise ValueError(BAD_VARINT)

    def _skip(self, length: int) -> int:
        begin = self.at
        if length > self.end - begin:
            raise ValueError(TRUNCATED)
        self.at += length
        return begin


@dataclass(frozen=True, eq=False)
class Unpacked:
    pieces: Indexes
    """Of each number: the piece it is from."""
    bits: Indexes
    cut_off: Indexes
    """Pieces that end within a number; they have no numbers here."""
    endless: Indexes
    """Pieces with a number that is too long."""


def unpacked(bodies: Bodies, first: Indexes, last: Indexes, kind: int) -> Unpacked:
    """The numbers in some pieces, in their order."""
    sizes = last - first
    if kind == VARINT:
        is_cut = (sizes > 0) & (bodies.data.take(last - 1, mode="clip") > 0x7F)
    else:
        is_cut = sizes % WIDTHS[kind] != 0
    # A piece that is cut off would take what it lacks from the next.
    whole = np.flatnonzero(~is_cut)
    sizes = sizes[whole]
    raw = spans(bodies.text, first[whole], last[whole], len(whole), None).buffers()[2]
    data = np.frombuffer(raw or b"", np.uint8)[: int(sizes.sum())]
    if kind == VARINT:
        numbers, bits, endless = _varints(data, sizes)
    else:
        width = WIDTHS[kind]
        numbers, endless = sizes // width, whole[:0]
        bits = data.view(f"<u{width}").astype(np.uint64).view(np.int64)
    return Unpacked(np.repeat(whole, numbers), bits, np.flatnonzero(is_cut), whole[endless])


def _varints(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], sizes: Indexes
) -> tuple[Indexes, Indexes, Indexes]:
    """How many numbers each piece has, their bits, and which pieces have one that is too long."""
    ends = np.flatnonzero(data < 0x80) + 1
    if not len(ends):
        return np.zeros_like(sizes), ends, ends
    values, endless = varints(data, np.concatenate(([0], ends[:-1])))
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    pieces = np.searchsorted(bounds, ends - 1, side="right") - 1
    return np.bincount(pieces, minlength=len(sizes)), values.view(np.int64), pieces[endless]


@dataclass(eq=False)
class Cursors:
    """Messages in a buffer, in its order."""

    row: Indexes
    """The row of the chunk that each is from."""
    at: Indexes
    end: Indexes

    def __len__(self) -> int:
        return len(self.at)


@dataclass(eq=False)
class FieldOccurrences:
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


Occurrences = dict[tuple[int, int], FieldOccurrences]
"""By field number and wire type."""


@dataclass
class Scanner:
    bodies: Bodies
    failed: dict[int, str] = field(default_factory=dict)

    def fail(self, cursors: Cursors, flags: Flags | Indexes, reason: str) -> None:
        for row in cursors.row[flags].tolist():
            self.failed.setdefault(row, reason)

    def scan(self, cursors: Cursors, wanted: Container[int]) -> Occurrences:
        found: Occurrences = {}
        tag, before = np.zeros(len(cursors), np.int64), cursors.at.copy()
        active = fresh = np.flatnonzero(cursors.at < cursors.end)
        while len(active) > _FEW:
            before[fresh] = cursors.at[fresh]
            tag[fresh] = np.minimum(self._varints(cursors, fresh), TAGS).view(np.int64)
            current = tag[active]
            smallest = int(current.min())
            chosen = active[current == smallest]
            self._field(found, wanted, smallest, cursors, chosen)
            over = cursors.at[chosen] >= cursors.end[chosen]
            fresh = chosen[~over]
            tag[chosen[over]] = _DONE
            active = active[tag[active] != _DONE]
        # Those that have read their tag already are put back before it: it is read again.
        waiting = np.setdiff1d(active, fresh)
        cursors.at[waiting] = before[waiting]
        for cursor in active.tolist():
            self._scan_one(found, wanted, cursors, cursor)
        self.fail(cursors, cursors.at > cursors.end, TRUNCATED)
        return found

    def _varints(self, cursors: Cursors, chosen: Indexes) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        at = cursors.at[chosen]
        values, endless = varints(self.bodies.data, at)
        cursors.at[chosen] = at
        if len(endless):
            self.fail(cursors, chosen[endless], BAD_VARINT)
            cursors.at[chosen[endless]] = cursors.end[chosen[endless]]
        return values

    def _field(
        self, found: Occurrences, wanted: Container[int], tag: int, cursors: Cursors, chosen: Indexes
    ) -> None:
        number, kind = tag >> 3, tag & 7
        if kind == GROUP and 8 <= tag < TAGS:
            self._pass_groups(cursors, chosen, number)
            return
        if not 8 <= tag < TAGS or kind not in (VARINT, FIXED64, BYTES, FIXED32):
            wrong_kind = BAD_END if kind == GROUP_END else BAD_WIRE_TYPE
            self.fail(cursors, chosen, wrong_kind if 8 <= tag < TAGS else ZERO_TAG)
            cursors.at[chosen] = cursors.end[chosen]
            return
        if kind == VARINT:
            first = self._varints(cursors, chosen).view(np.int64)
        elif kind == BYTES:
            first = self._cut(cursors, chosen)
        else:
            first = self._fixed(cursors, chosen, WIDTHS[kind])
        if number in wanted:
            known = found.setdefault((number, kind), FieldOccurrences())
            known.add(chosen, first, np.minimum(cursors.at[chosen], cursors.end[chosen]))

    def _cut(self, cursors: Cursors, chosen: Indexes) -> Indexes:
        lengths = self._varints(cursors, chosen)
        begin, end = cursors.at[chosen], cursors.end[chosen]
        beyond = (begin > end) | (lengths > np.maximum(end - begin, 0).astype(np.uint64))
        if beyond.any():
            self.fail(cursors, chosen[beyond], TRUNCATED)
            begin = np.where(beyond, end, begin)
            lengths = np.where(beyond, 0, lengths)
        cursors.at[chosen] = begin + lengths.view(np.int64)
        return begin

    def _fixed(self, cursors: Cursors, chosen: Indexes, width: int) -> Indexes:
        begin = cursors.at[chosen]
        raw = self.bodies.data.take(begin[:, None] + np.arange(width), mode="clip")
        cursors.at[chosen] = begin + width
        return np.ascontiguousarray(raw).view(f"<u{width}").ravel().astype(np.uint64).view(np.int64)

    def _pass_groups(self, cursors: Cursors, chosen: Indexes, number: int) -> None:
        """No field that we know is a group."""
        for cursor in chosen.tolist():
            reader = FieldReader(self.bodies.text, int(cursors.at[cursor]), int(cursors.end[cursor]))
            try:
                reader.pass_group(number)
            except ValueError as error:
                self.failed.setdefault(int(cursors.row[cursor]), str(error))
                reader.at = reader.end
            cursors.at[cursor] = reader.at

    def _scan_one(self, found: Occurrences, wanted: Container[int], cursors: Cursors, cursor: int) -> None:
        """The rest of one message."""
        reader = FieldReader(self.bodies.text, int(cursors.at[cursor]), int(cursors.end[cursor]))
        seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
        try:
            while reader.at < reader.end:
                number, kind, first = reader.field()
                if number in wanted:
                    seen.setdefault((number, kind), []).append((first, reader.at))
        except ValueError as error:
            self.failed.setdefault(int(cursors.row[cursor]), str(error))
        cursors.at[cursor] = cursors.end[cursor]
        for key, occurrences in seen.items():
            pairs = np.array(occurrences, np.int64)
            owners = np.full(len(pairs), cursor, np.int64)
            found.setdefault(key, FieldOccurrences()).add(owners, pairs[:, 0].copy(), pairs[:, 1].copy())
