"""The order in which Java's HashMap gives its keys: it decides which of several bad fields an error names."""

from __future__ import annotations

from collections.abc import Iterable


def java_order(names: Iterable[str]) -> list[str]:
    """Of a map that grew as names were put into it, one after the other."""
    distinct = list(dict.fromkeys(names))
    capacity = 16
    while len(distinct) > capacity * 3 // 4:
        capacity *= 2
    return sorted(distinct, key=lambda name: _spread(name) % capacity)


def _spread(name: str) -> int:
    code = 0
    units = name.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + low + (high << 8)) & 0xFFFFFFFF
    return code ^ (code >> 16)
