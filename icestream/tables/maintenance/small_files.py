"""Which small files of a table are worth merging: the same rule for every format. Used by compactions.

A file is merged with others that are as large together: so a row is written again only as often as its file
doubles, whatever the size of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def growing(items: Iterable[T], size: Callable[[T], int]) -> list[T]:
    """The smallest first, up to the last that is no larger than all before it together.

    So what is merged at least doubles, and nothing is written again more often than its size doubles.
    """
    ordered = sorted(items, key=size)
    chosen = total = 0
    for place, item in enumerate(ordered):
        if place and size(item) <= total:
            chosen = place + 1
        total += size(item)
    return ordered[:chosen]


def packed(
    items: Sequence[T], size: Callable[[T], int], target: int, *, alone: bool = False
) -> Iterator[list[T]]:
    """Groups of about `target` bytes, in order; with `alone` also those of a single one."""
    held: list[T] = []
    total = 0
    for item in items:
        if held and total + size(item) > target:
            if alone or len(held) > 1:
                yield held
            held, total = [], 0
        held.append(item)
        total += size(item)
    if held and (alone or len(held) > 1):
        yield held
