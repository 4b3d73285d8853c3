"""Fields of schemaless maps by name, in groups where each has one Java type. For ValueToKey and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.values import Fields, Typed, typed
from icestream.transforms.side import Side


@dataclass(frozen=True)
class Picked:
    """A group of records, and the fields in the order of the names asked for."""

    records: Records
    values: Sequence[Typed]


def picked(records: Records, side: Side, names: Sequence[str]) -> list[Picked]:
    groups = [Picked(records, ())]
    for name in names:
        groups = [more for group in groups for more in _with(group, side, name)]
    return groups


def _with(group: Picked, side: Side, name: str) -> list[Picked]:
    fields = side.get(group.records)
    assert isinstance(fields, Fields)
    grown = []
    for part in typed(fields.get(name), len(group.records)):
        if part.rows is None:
            grown.append(Picked(group.records, [*group.values, part.value]))
        else:
            before = [one.take(part.rows) for one in group.values]
            grown.append(Picked(group.records.take(part.rows), [*before, part.value]))
    return grown


def got(value: Typed) -> Typed:
    """As `Map.get` answers: null for a key that is absent."""
    return replace(value, absent=None) if isinstance(value, Column) else value
