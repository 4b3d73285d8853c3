"""The items of Avro's lists and maps, one of each list at a time for all rows; used by `avro_columns`.

When only few lists go on, because they are longer than the others or because the chunk is small, the
beginnings of their items are found first, and then all items are read at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.converters.registry.avro_lanes import Lanes, Reading, Slots
from icestream.converters.registry.avro_skip import TOO_SHORT, Skip, block
from icestream.records.rows import Indexes

_FEW: Final = 12


@dataclass
class Items:
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


One = Callable[[Lanes, Slots], pa.Array]
"""Reads one item at each lane."""


def collect(reader: Reading, lanes: Lanes, smallest: int, skip: Skip, one: One) -> Items:
    """All items of the lists at the lanes. An item takes `smallest` bytes at least; `skip` finds its end."""
    items = Items()
    left = np.zeros(len(lanes.at), np.int64)
    active = np.arange(len(lanes.at))
    while len(active) > _FEW:
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
            items.columns.append(one(part, Slots(len(active))))
            items.owners.append(active)
            lanes.at[active] = part.at
            left[active] -= 1
    _collect_rest(reader, lanes, active, left, skip, one, items)
    return items


def _collect_rest(
    reader: Reading, lanes: Lanes, active: Indexes, left: Indexes, skip: Skip, one: One, items: Items
) -> None:
    owners: list[int] = []
    begins: list[int] = []
    for lane in active.tolist():
        found, lanes.at[lane] = _begins(reader, lanes, lane, int(left[lane]), skip)
        owners.extend([lane] * len(found))
        begins.extend(found)
    if owners:
        belongs = np.array(owners, np.int64)
        part = Lanes(lanes.row[belongs], np.array(begins, np.int64), lanes.end[belongs])
        items.columns.append(one(part, Slots(len(owners))))
        items.owners.append(belongs)


def _begins(reader: Reading, lanes: Lanes, lane: int, left: int, skip: Skip) -> tuple[list[int], int]:
    """Where the items of the rest of a list begin, and where the list ends."""
    text, at, end = reader.datums.text, int(lanes.at[lane]), int(lanes.end[lane])
    found: list[int] = []
    here = np.array([lane])
    try:
        while True:
            if not left:
                left, at = block(text, at)
                if not left:
                    return found, at
            begin, at = at, skip(text, at)
            alike = left if at == begin else 1
            if at > end or (alike > 1 and not reader.believes_empty(lanes.take(here), alike).all()):
                raise IndexError
            found.extend([begin] * alike)
            left -= alike
    except (IndexError, ValueError) as error:
        reason = str(error) if isinstance(error, ValueError) else TOO_SHORT
        reader.failed.setdefault(int(lanes.row[lane]), reason)
        return [], end


def _block(reader: Reading, lanes: Lanes, smallest: int) -> Indexes:
    """How many items the next block of each list has; 0: the list is over."""
    count = reader.longs(lanes)
    sized = np.flatnonzero(count < 0)
    if len(sized):
        part = lanes.take(sized)
        reader.longs(part)  # the size of the block in bytes, for those who skip it
        lanes.at[sized] = part.at
        count[sized] = -count[sized]
    if smallest:
        wrong = (count < 0) | (count > np.maximum(lanes.end - lanes.at, 0) // smallest)
    else:
        wrong = (count < 0) | ~reader.believes_empty(lanes, count)
    reader.fail(lanes, wrong, TOO_SHORT)
    lanes.at[wrong] = lanes.end[wrong]  # what follows could look like ever more items
    return np.where(wrong, 0, count)
