"""How many columns the records of a batch may add to a table, and how long their names may be.

A record with thousands of keys is a mistake or an attack: every reader of the table would pay for its columns
for ever. Used by `surplus.py`, which gathers what records have and a table lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pt

from icestream.api.config import Config
from icestream.api.connector_settings import NEW_COLUMNS, NEW_NAMES

Path = tuple[str, ...]


@dataclass(frozen=True)
class GrowthLimit:
    """`columns` is what the table may still get; `of` what a batch may add in all, for the reason."""

    columns: int = NEW_COLUMNS.default
    longest_name: int = NEW_NAMES.default
    of: int = NEW_COLUMNS.default
    reserved: frozenset[str] = frozenset()
    """Columns that the tables have by themselves: no other may have their names."""

    @classmethod
    def from_config(cls, config: Config, reserved: frozenset[str] = frozenset()) -> GrowthLimit:
        given = [config.get(one.name, str(one.default)) for one in (NEW_COLUMNS, NEW_NAMES)]
        most, longest = NEW_COLUMNS.parse(given[0]), NEW_NAMES.parse(given[1])
        return cls(most, longest, most, reserved)

    def less(self, used: int) -> GrowthLimit:
        return replace(self, columns=max(0, self.columns - used))

    def refusal(self, fields: Mapping[Path, pa.DataType], columns: int) -> str | None:
        """Why fields of a record are not added, which would make it so many columns in all."""
        long = next((name for name in _names(fields) if len(name) > self.longest_name), None)
        if long is not None:
            return (
                f"the name of the field '{long[:40]}…' has {len(long)} characters, and a new column may have "
                f"{self.longest_name} ({NEW_NAMES.name})"
            )
        if (strange := next(_strange_names(fields, self.reserved), None)) is not None:
            return strange
        if columns > self.columns:
            return (
                f"the record has {column_count(fields)} fields that the table lacks, and a batch may add "
                f"{self.of} columns ({NEW_COLUMNS.name})"
            )
        return None


def column_count(fields: Mapping[Path, pa.DataType]) -> int:
    """Columns that hold values: a struct counts as its fields."""
    return sum(map(_leaves, fields.values()))


def trimmed(fields: Mapping[Path, pa.DataType], most: int) -> dict[Path, pa.DataType]:
    """As many of the fields as make no more columns; always the same ones."""
    kept: dict[Path, pa.DataType] = {}
    left = most
    for path in sorted(fields):
        cost = _leaves(fields[path])
        if cost <= left:
            kept[path] = fields[path]
            left -= cost
    if fields and not kept:
        # Tasks found parts of one field each: none would be a batch whose rows were left out for nothing.
        path = min(fields)
        kept[path] = _cut(fields[path], most)
    return kept


def _cut(kind: pa.DataType, most: int) -> pa.DataType:
    """A type with as many of its columns as allowed; at least one, and one that cannot be cut whole."""
    if pt.is_list(kind):
        return pa.list_(_cut(kind.value_type, most))
    if not pt.is_struct(kind) or not kind.num_fields:
        return kind
    inside: dict[Path, pa.DataType] = {
        (kind.field(at).name,): kind.field(at).type for at in range(kind.num_fields)
    }
    return pa.struct([pa.field(name, one) for (name, *_), one in trimmed(inside, most).items()])


def _leaves(kind: pa.DataType) -> int:
    if pt.is_null(kind):
        return 0  # no column: one that is there is no longer required
    if pt.is_struct(kind):
        return sum(_leaves(kind.field(position).type) for position in range(kind.num_fields))
    if pt.is_list(kind):
        return _leaves(kind.value_type)
    return _leaves(kind.item_type) + 1 if pt.is_map(kind) else 1


def _strange_names(fields: Mapping[Path, pa.DataType], reserved: frozenset[str]) -> Iterator[str]:
    """Names that engines cannot write down, or have a meaning of their own for: tables stay readable."""
    for name in _names(fields):
        if not name or any(ord(character) < 32 or ord(character) == 127 for character in name):
            yield f"the record has a field named {name[:40]!r}, a name that no new column may have; rename it"
    for path in fields:
        if path[0] in reserved and len(path) == 1:
            yield f"the record has a field named '{path[0]}', which engines of the table reserve; rename it"


def _names(fields: Mapping[Path, pa.DataType]) -> Iterator[str]:
    for path, kind in fields.items():
        yield from path
        yield from _names_in(kind)


def _names_in(kind: pa.DataType) -> Iterator[str]:
    if pt.is_struct(kind):
        for position in range(kind.num_fields):
            yield kind.field(position).name
            yield from _names_in(kind.field(position).type)
    elif pt.is_list(kind):
        yield from _names_in(kind.value_type)
    elif pt.is_map(kind):
        yield from _names_in(kind.item_type)
