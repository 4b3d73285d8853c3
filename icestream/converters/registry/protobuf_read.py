"""Protobuf messages of one type to an Arrow struct column; called by the Protobuf converter.

`protobuf_scan` finds the occurrences of each field; this makes columns of them. A field that is written
more than once has its last value; a message that is, is merged, which is to read its pieces as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry.byte_columns import map_array, numbers, spans, strict_texts, texts
from icestream.converters.registry.protobuf_plan import ProtoField, ProtoMessage, ProtoUnion
from icestream.converters.registry.protobuf_scan import (
    BAD_VARINT,
    BYTES,
    FIXED32,
    FIXED64,
    TRUNCATED,
    VARINT,
    Cursors,
    Occurrences,
    Scanner,
    unpacked,
)
from icestream.converters.registry.protobuf_values import (
    Numbers,
    converted,
    dates,
    decimals,
    list_array,
    spread,
    struct_array,
    symbols,
    times,
    timestamps,
)
from icestream.converters.registry.wire import Bodies
from icestream.jsontext.connect_values import TIME_RANGE
from icestream.records.payloads import Payloads
from icestream.records.rows import Flags, Indexes
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, Kind

_WIRE: Final[Mapping[str, int]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), VARINT),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), FIXED64),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), FIXED32),
    **dict.fromkeys(("string", "bytes", "message"), BYTES),
}
_BAD_UTF8: Final = "Protocol message had invalid UTF-8."


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Occurrences of one field: which message has each, and its bits, or where its bytes are."""

    owners: Indexes
    first: Indexes
    last: Indexes

    def latest(self) -> _Pieces:
        """The last one of each message."""
        if not len(self.owners):
            return self
        keep = np.append(self.owners[1:] != self.owners[:-1], True)
        return self if keep.all() else _Pieces(self.owners[keep], self.first[keep], self.last[keep])


_NONE: Final = _Pieces(*(np.empty(0, np.int64) for _ in range(3)))


def decode(message: ProtoMessage, bodies: Bodies) -> tuple[pa.Array, dict[int, str]]:
    """The column, and why rows failed; their places in it hold anything."""
    scanner = Scanner(bodies)
    cursors = Cursors(np.arange(len(bodies)), bodies.begin.copy(), bodies.end)
    return _Reader(scanner).message(message, cursors), scanner.failed


@dataclass(frozen=True, eq=False)
class _Made:
    column: pa.Array
    places: Indexes = field(default_factory=lambda: np.empty(0, np.int64))
    """Where the last occurrence of each message ends; 0 where there is none. For members of a oneof."""


@dataclass
class _Reader:
    scanner: Scanner

    def message(self, message: ProtoMessage, cursors: Cursors) -> pa.Array:
        found = self.scanner.scan(cursors, message.fields)
        made = {number: self._field(one, found, cursors) for number, one in message.fields.items()}
        for members in message.flat:
            self._choose(members, made)
        columns = [self._part(part, made) for part in message.parts]
        return struct_array(message.schema, columns, len(cursors))

    def _part(self, part: ProtoField | ProtoUnion, made: dict[int, _Made]) -> pa.Array:
        if isinstance(part, ProtoField):
            return made[part.number].column
        there = self._choose(part.members, made)
        columns = [made[member.number].column for member in part.members]
        return struct_array(part.schema, columns, len(there), ~there)

    def _choose(self, members: tuple[ProtoField, ...], made: dict[int, _Made]) -> Flags:
        """Of a oneof's members only the last that was written is there; tells which messages have one."""
        places = np.stack([made[member.number].places for member in members])
        if np.any(np.count_nonzero(places, axis=0) > 1):
            winner = places.argmax(axis=0)
            for position, member in enumerate(members):
                column = made[member.number].column
                kept = pa.array(np.arange(len(column)), mask=winner != position)
                made[member.number] = _Made(column.take(kept), made[member.number].places)
        return np.asarray(places.any(axis=0))

    def _field(self, one: ProtoField, found: Occurrences, cursors: Cursors) -> _Made:
        if one.is_repeated:
            return _Made(self._repeated(one, found, cursors))
        known = found.get((one.number, _WIRE[one.type]))
        pieces = _NONE if known is None else _Pieces(*known.together())
        if one.is_required:
            self._require(one, pieces, cursors)
        places = np.zeros(len(cursors), np.int64)
        places[pieces.owners] = pieces.last
        if one.message is not None:
            return _Made(self._nested(one, one.message, pieces, cursors), places)
        pieces = pieces.latest()
        if one.schema.kind in (Kind.STRING, Kind.BYTES) and one.type != "enum":
            return _Made(self._bytes(one, pieces, cursors), places)
        return _Made(self._scalars(one, pieces, cursors), places)

    def _require(self, one: ProtoField, pieces: _Pieces, cursors: Cursors) -> None:
        there = np.zeros(len(cursors), np.bool_)
        there[pieces.owners] = True
        self.scanner.fail(cursors, ~there, f"Message missing required fields: {one.name}")

    def _scalars(self, one: ProtoField, pieces: _Pieces, cursors: Cursors) -> pa.Array:
        values = converted(one.type, pieces.first)
        if len(pieces.owners) == len(cursors):
            return self._values(one, values, None)
        nulls = None
        full = np.full(len(cursors), 0 if one.default is None else one.default, values.dtype)
        if one.has_presence:
            nulls = np.ones(len(cursors), np.bool_)
            nulls[pieces.owners] = False
        full[pieces.owners] = values
        return self._values(one, full, nulls)

    def _values(self, one: ProtoField, values: Numbers, nulls: Flags | None) -> pa.Array:
        """Numbers of a field as a column, of symbols if it is an enum."""
        kind = one.schema if one.schema.value is None else one.schema.value
        if one.type == "enum":
            return symbols(one, kind, values, nulls)
        if kind.kind is Kind.BOOLEAN:
            return pa.array(values.astype(np.bool_), mask=nulls)
        return numbers(values, nulls, kind.arrow_type)

    def _bytes(self, one: ProtoField, pieces: _Pieces, cursors: Cursors) -> pa.Array:
        text = self.scanner.bodies.text
        places = None if len(pieces.owners) == len(cursors) else pieces.owners
        column = spans(text, pieces.first, pieces.last, len(cursors), places)
        if places is not None and not one.has_presence:
            default = one.default if isinstance(one.default, bytes) else (one.default or "").encode()
            column = column.fill_null(default)
        return self._text(one, column, cursors.row) if one.type == "string" else column

    def _text(self, one: ProtoField, column: pa.Array, rows: Indexes) -> pa.Array:
        if not one.is_strict:
            return texts(column)
        column, broken = strict_texts(column)
        for row in rows[broken].tolist():
            self.scanner.failed.setdefault(row, _BAD_UTF8)
        return column

    def _nested(self, one: ProtoField, message: ProtoMessage, pieces: _Pieces, cursors: Cursors) -> pa.Array:
        if len(pieces.owners) != len(pieces.latest().owners):
            return self._merged(one, message, pieces, cursors)
        owners, begin, end = pieces.owners, pieces.first.copy(), pieces.last
        if not one.has_presence and len(owners) < len(cursors):
            owners, begin, end = _with_empty(pieces, len(cursors))
        inner = self.message(message, Cursors(cursors.row[owners], begin, end))
        values = self._meaning(one, inner, cursors.row[owners])
        return values if len(owners) == len(cursors) else spread(values, owners, len(cursors))

    def _merged(self, one: ProtoField, message: ProtoMessage, pieces: _Pieces, cursors: Cursors) -> pa.Array:
        """A message in several pieces, which mean what they mean back to back if each is whole."""
        self.scanner.scan(Cursors(cursors.row[pieces.owners], pieces.first.copy(), pieces.last), ())
        parts: dict[int, list[bytes]] = (
            {} if one.has_presence else {cursor: [] for cursor in range(len(cursors))}
        )
        for owner, low, high in zip(
            *(part.tolist() for part in (pieces.owners, pieces.first, pieces.last)), strict=True
        ):
            parts.setdefault(owner, []).append(self.scanner.bodies.text[low:high])
        owners, joined = (
            np.fromiter(parts, np.int64),
            Payloads.of([b"".join(part) for part in parts.values()]),
        )
        bodies = Bodies(joined.text, joined.offsets[:-1], joined.offsets[1:])
        apart = _Reader(Scanner(bodies, self.scanner.failed))
        inner = apart.message(message, Cursors(cursors.row[owners], bodies.begin.copy(), bodies.end))
        values = self._meaning(one, inner, cursors.row[owners])
        return values if len(owners) == len(cursors) else spread(values, owners, len(cursors))

    def _meaning(self, one: ProtoField, inner: pa.Array, rows: Indexes) -> pa.Array:
        """What a message stands for: a date, a decimal, the value in a wrapper, or itself."""
        schema = one.schema.value if one.is_repeated and one.schema.kind is Kind.ARRAY else one.schema
        assert schema is not None
        if one.unwraps:
            return inner.field(0).cast(schema.arrow_type)
        convert = {DATE: dates, TIME: times, TIMESTAMP: timestamps}.get(schema.name or "")
        if convert is not None:
            column, broken = convert(inner)
            reason = TIME_RANGE if schema.name == TIME else "the date or time does not exist"
        elif schema.name == DECIMAL:
            column, broken = decimals(inner, schema)
            reason = "the decimal does not fit the scale of its field, or 76 digits"
        else:
            return inner
        for row in rows[broken].tolist():
            self.scanner.failed.setdefault(row, reason)
        return column

    def _repeated(self, one: ProtoField, found: Occurrences, cursors: Cursors) -> pa.Array:
        kind = _WIRE[one.type]
        known = found.get((one.number, kind))
        pieces = _NONE if known is None else _Pieces(*known.together())
        if one.message is not None:
            return self._messages(one, one.message, pieces, cursors)
        if kind == BYTES:
            column = spans(self.scanner.bodies.text, pieces.first, pieces.last, len(pieces.owners), None)
            items = self._text(one, column, cursors.row[pieces.owners]) if one.type == "string" else column
            return list_array(one.schema, items, pieces.owners, len(cursors))
        owners, bits = pieces.owners, pieces.first
        if (packed := found.get((one.number, BYTES))) is not None:
            owners, bits = self._with_packed(pieces, _Pieces(*packed.together()), kind, cursors)
        items = self._values(one, converted(one.type, bits), None)
        return list_array(one.schema, items, owners, len(cursors))

    def _with_packed(
        self, single: _Pieces, packed: _Pieces, kind: int, cursors: Cursors
    ) -> tuple[Indexes, Indexes]:
        """Numbers that were written one by one and those in packed pieces, with their owners."""
        more = unpacked(self.scanner.bodies, packed.first, packed.last, kind)
        self.scanner.fail(cursors, packed.owners[more.cut_off], TRUNCATED)
        self.scanner.fail(cursors, packed.owners[more.endless], BAD_VARINT)
        owners, places = packed.owners[more.pieces], packed.last[more.pieces]
        if not len(single.owners):
            return owners, more.bits
        owners, places, bits = (
            np.concatenate(both)
            for both in ((single.owners, owners), (single.last, places), (single.first, more.bits))
        )
        order = np.lexsort((places, owners))
        return owners[order], bits[order]

    def _messages(
        self, one: ProtoField, message: ProtoMessage, pieces: _Pieces, cursors: Cursors
    ) -> pa.Array:
        rows = cursors.row[pieces.owners]
        inner = self.message(message, Cursors(rows, pieces.first.copy(), pieces.last))
        if one.schema.kind is not Kind.MAP:
            return list_array(one.schema, self._meaning(one, inner, rows), pieces.owners, len(cursors))
        keys, values = inner.flatten()
        if keys.null_count:  # of entries that have failed
            keys = keys.fill_null("")
        counts = np.bincount(pieces.owners, minlength=len(cursors))
        return map_array(one.schema, keys, values, counts)


def _with_empty(pieces: _Pieces, length: int) -> tuple[Indexes, Indexes, Indexes]:
    begin, end = np.zeros(length, np.int64), np.zeros(length, np.int64)
    begin[pieces.owners], end[pieces.owners] = pieces.first, pieces.last
    return np.arange(length), begin, end
