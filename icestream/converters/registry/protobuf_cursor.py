"""Reads one Protobuf message field by field: for chunks of few messages, and for groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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


@dataclass
class Cursor:
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
