"""Groups of records as transforms take them: the side they work on, groups parted by the Java types of their
fields, and the rows that fail, check by check. Shared by all transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Records
from icestream.records.values import Fields, Node, Part, Typed, Value, typed


class Side(Enum):
    """`Cast$Key` works on keys, `Cast$Value` on values."""

    KEY = "Key"
    VALUE = "Value"

    def get(self, records: Records) -> Value:
        return records.key if self is Side.KEY else records.value

    def put(self, records: Records, value: Value) -> Records:
        return replace(records, key=value) if self is Side.KEY else replace(records, value=value)


def without_failed(records: Records, failed: Mapping[int, Failure]) -> Applied:
    """The group without the rows that failed, given by their position in it."""
    if not failed:
        return Applied([records])
    why = {int(records.rows[position]): failure for position, failure in failed.items()}
    if len(failed) == len(records):
        return Applied([], why)
    keep = np.setdiff1d(np.arange(len(records)), np.fromiter(failed, np.int64, len(failed)))
    return Applied([records.take(keep)], why)


def all_failed(records: Records, failure: Failure) -> Applied:
    return Applied([], dict.fromkeys(records.rows.tolist(), failure))


@dataclass(frozen=True)
class Changed:
    """What a field became; None: it is removed. Failures by position."""

    value: Node | None
    failed: Mapping[int, Failure] = field(default_factory=dict)


def change_field(records: Records, side: Side, name: str, change: Callable[[Typed], Changed]) -> Applied:
    """A field of a schemaless map changed, in groups of one Java type each; a key that is missing is given
    as a column of nulls with its `absent` flags."""
    fields = side.get(records)
    assert isinstance(fields, Fields)
    parts = typed(fields.get(name), len(records))
    changes = [change(part.value) for part in parts]
    whole = _rejoined(parts, changes)
    if whole is not None:
        return without_failed(side.put(records, fields.put({name: whole.value})), whole.failed)
    outcomes = []
    for part, changed in zip(parts, changes, strict=True):
        group = records if part.rows is None else records.take(part.rows)
        mine = side.get(group)
        assert isinstance(mine, Fields)
        outcomes.append(without_failed(side.put(group, mine.put({name: changed.value})), changed.failed))
    return merged(outcomes)


def _rejoined(parts: Sequence[Part], changes: Sequence[Changed]) -> Changed | None:
    """Parts that are of one Java type now, as one: otherwise each further field of mixed types would double
    the number of groups. None if they are not."""
    if len(parts) == 1:
        return changes[0]
    columns = [one.value for one in changes if isinstance(one.value, Column) and one.value.absent is None]
    kinds = {column.values.type for column in columns} - {pa.null()} or {pa.null()}
    if len(columns) < len(parts) or len(kinds) > 1:
        return None
    (kind,) = kinds
    rows = [np.empty(0, np.int64) if part.rows is None else part.rows for part in parts]
    values = pa.concat_arrays([column.values.cast(kind) for column in columns])
    failed = {
        int(mine[at]): why for mine, one in zip(rows, changes, strict=True) for at, why in one.failed.items()
    }
    return Changed(Column(values.take(pa.array(np.argsort(np.concatenate(rows))))), failed)


def merged(outcomes: list[Applied]) -> Applied:
    """What became of the parts of a group, together."""
    if len(outcomes) == 1:
        return outcomes[0]
    failed: dict[int, Failure] = {}
    for outcome in outcomes:
        failed.update(outcome.failed)
    return Applied(
        [records for outcome in outcomes for records in outcome.records],
        failed,
        [row for outcome in outcomes for row in outcome.dropped],
    )


@dataclass(frozen=True)
class Picked:
    """A group of records, and some of their fields in the order of the names asked for: each has one Java
    type."""

    records: Records
    values: Sequence[Typed]


def pick_keys(records: Records, side: Side, names: Sequence[str]) -> list[Picked]:
    """Keys of schemaless maps, as they are there: null and absent differ."""
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


def absent_as_null(value: Typed) -> Typed:
    """As `Map.get` answers: null for a key that is absent."""
    return replace(value, absent=None) if isinstance(value, Column) else value


def split_by_types(records: Records, nodes: Mapping[str, Node | None]) -> list[Records]:
    """Groups in which each node has one Java type; they have the nodes for their value, see `node_named`."""
    groups = pick_keys(replace(records, value=Fields(nodes, None, len(records))), Side.VALUE, list(nodes))
    return [replace(one.records, value=_fields(nodes, one)) for one in groups]


def _fields(names: Iterable[str], group: Picked) -> Fields:
    return Fields(dict(zip(names, map(absent_as_null, group.values), strict=True)), None, len(group.records))


def node_named(records: Records, name: str) -> Typed:
    """One of the nodes of a parted group."""
    assert isinstance(records.value, Fields)
    node = records.value.named[name]
    assert isinstance(node, Typed)
    return node
