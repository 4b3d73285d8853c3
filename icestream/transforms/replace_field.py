"""ReplaceField: keeps, drops and renames fields."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.records.records import Applied, Records
from icestream.records.rows import Flags
from icestream.records.schema import ConnectSchema
from icestream.records.values import Fields, Node, Text
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    is_null,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Side, all_failed, without_failed
from icestream.transforms.settings import at_colons
from icestream.transforms.structs import (
    SchemaCache,
    field_arrays,
    full_struct_column,
    required_null_failures,
    with_fields,
)

_PURPOSE: Final = "field replacement"


@dataclass(frozen=True)
class _Replaced:
    """A changed schema, and for each of its fields the position of the one whose value it gets."""

    schema: ConnectSchema
    origins: Sequence[int]


@dataclass(frozen=True)
class ReplaceField:
    side: Side
    include: frozenset[str]
    """Empty: all."""
    exclude: frozenset[str]
    renames: Mapping[str, str]
    """Old name → new name."""
    replace_null_with_default: bool = True
    _schemas: SchemaCache[_Replaced] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        renames = dict(map(at_colons, settings["renames"]))
        return cls(
            side,
            frozenset(settings["include"]),
            frozenset(settings["exclude"]),
            renames,
            settings["replace.null.with.default"],
        )

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if is_null(value):
            return Applied([records])
        try:
            if has_schema(value):
                return self._with_schema(records)
            require_map(value, _PURPOSE)
            return self._schemaless(records)
        except GroupFailed as why:
            return all_failed(records, why.failure)

    def _passes(self, name: str) -> bool:
        return name not in self.exclude and (not self.include or name in self.include)

    @functools.cached_property
    def _sources(self) -> Mapping[str, Sequence[str]]:
        """New name → the keys that may become it, those that come later in `renames` winning over earlier
        ones."""
        sources: dict[str, list[str]] = {}
        for old, new in self.renames.items():
            if self._passes(old):
                sources.setdefault(new, []).append(old)
        for new, olds in sources.items():
            if self._passes(new) and new not in self.renames:
                olds.insert(0, new)
        return sources

    def _schemaless(self, records: Records) -> Applied:
        groups: list[tuple[Records, Mapping[str, str]]] = [(records, {})]
        for new, olds in self._sources.items():
            groups = [more for group in groups for more in self._chosen(*group, new, olds)]
        return Applied([self._renamed(*group) for group in groups])

    def _chosen(
        self, records: Records, chosen: Mapping[str, str], new: str, olds: Sequence[str]
    ) -> list[tuple[Records, Mapping[str, str]]]:
        """Rows apart by the key that becomes the new one."""
        if len(olds) == 1:
            return [(records, {**chosen, new: olds[0]})]
        fields = require_map(self.side.get(records), _PURPOSE)
        others = [old for old in olds if old != new]
        if len(others) == 1 and not _present(fields, new).any():
            return [(records, {**chosen, new: others[0]})]
        present = [_present(fields, old) for old in olds]
        winners = np.full(len(records), -1)
        for at, flags in enumerate(present):
            winners[flags] = at
        return [
            (records.take(np.flatnonzero(winners == at)), {**chosen, **({new: olds[at]} if at >= 0 else {})})
            for at in np.unique(winners).tolist()
        ]

    def _renamed(self, records: Records, chosen: Mapping[str, str]) -> Records:
        fields = require_map(self.side.get(records), _PURPOSE)
        moved = {new: fields.get(old) for new, old in chosen.items()}
        if self.include:
            stay = [name for name in self.include if self._passes(name) and name not in self.renames]
            named = {name: fields.get(name) for name in stay} | moved
            return self.side.put(records, Fields(_existing(named), None, len(fields)))
        gone: dict[str, Node | None] = dict.fromkeys([*self.exclude, *self.renames])
        return self.side.put(records, fields.put(gone | moved))

    def _with_schema(self, records: Records) -> Applied:
        column, schema = require_struct(self.side.get(records), _PURPOSE)
        replaced = self._schemas.get(schema, self._replaced)
        before = field_arrays(column, self.replace_null_with_default)
        arrays = [before[at] for at in replaced.origins]
        failed = required_null_failures(replaced.schema, arrays)
        return without_failed(
            self.side.put(records, full_struct_column(replaced.schema, arrays, len(records))), failed
        )

    def _replaced(self, schema: ConnectSchema) -> _Replaced:
        origins = [at for at, one in enumerate(schema.fields) if self._passes(one.name)]
        stay = [schema.fields[at] for at in origins]
        fields = [(self.renames.get(one.name, one.name), one.schema) for one in stay]
        return _Replaced(with_fields(schema, fields), origins)


def _existing(named: Mapping[str, Node | None]) -> dict[str, Node | None]:
    return {name: node for name, node in named.items() if node is not None}


def _present(fields: Fields, name: str) -> Flags:
    """Which rows have the key."""
    node = fields.get(name)
    if node is None:
        return np.zeros(len(fields), np.bool_)
    if isinstance(node, Text):
        objects = node.objects()
        absent = objects.count(ABSENT)
        if absent in (0, len(objects)):
            return np.full(len(objects), not absent)
        return np.fromiter((value is not ABSENT for value in objects), np.bool_, len(objects))
    if isinstance(node, Column) and node.absent is not None:
        return ~node.absent
    return np.ones(len(fields), np.bool_)
