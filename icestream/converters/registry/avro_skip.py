"""Where an Avro value ends, without reading it; for the items of long lists, which have no other index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icestream.converters.registry.avro_schema import AvroType

TOO_SHORT: Final = "the datum ends too early"
Skip = Callable[[bytes, int], int]
"""From where a value begins to where it ends; raises IndexError behind the buffer, or ValueError."""


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


_SIZES: Final[Mapping[str, int]] = {"null": 0, "boolean": 1, "float": 4, "double": 8}


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
