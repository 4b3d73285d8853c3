"""`CopyValue`: a field of the value once more, under another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from icestream.records.column import Column
from icestream.records.records import Applied, Records
from icestream.records.schema import ConnectSchema
from icestream.records.values import Fields
from icestream.transforms.failures import GroupFailed, is_null
from icestream.transforms.groups import Picked, Side, absent_as_null, all_failed, merged
from icestream.transforms.structs import Added, SchemaCache, add_fields, pick_fields

_PURPOSE: Final = "copy value"


@dataclass(frozen=True)
class CopyValue:
    source: str
    target: str
    _schemas: SchemaCache[ConnectSchema] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(settings["source.field"], settings["target.field"])

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        try:
            groups = pick_fields(records, Side.VALUE, [self.source], _PURPOSE, defaults=True)
            return merged([self._copied(group) for group in groups])
        except GroupFailed as failed:
            return all_failed(records, failed.failure)

    def _copied(self, group: Picked) -> Applied:
        records, (value,) = group.records, group.values
        if isinstance(records.value, Fields):
            copied = records.value.put({self.target: absent_as_null(value)})
            return Applied([replace(records, value=copied)])
        assert isinstance(value, Column) and value.schema is not None
        added = [Added(self.target, value.schema, value.values)]
        return add_fields(records, Side.VALUE, added, _PURPOSE, self._schemas, defaults=True)
