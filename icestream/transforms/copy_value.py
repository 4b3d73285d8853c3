"""`CopyValue`: a field of the value once more, under another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from icestream.records.column import struct_column
from icestream.records.records import Applied, Records
from icestream.records.schema import ConnectSchema
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    is_null,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Side, all_failed, got, kept, picked
from icestream.transforms.structs import SchemaCache, field_arrays, nulls_in_required, rebuilt

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
            return self._with_schema(records) if has_schema(records.value) else self._schemaless(records)
        except GroupFailed as refused:
            return all_failed(records, refused.failure)

    def _schemaless(self, records: Records) -> Applied:
        require_map(records.value, _PURPOSE)
        groups = []
        for group in picked(records, Side.VALUE, [self.source]):
            fields = require_map(group.records.value, _PURPOSE)
            groups.append(replace(group.records, value=fields.put({self.target: got(group.values[0])})))
        return Applied(groups)

    def _with_schema(self, records: Records) -> Applied:
        value, schema = require_struct(records.value, _PURPOSE)
        changed = self._schemas.get(schema, self._changed)
        arrays = field_arrays(value, defaults=True)
        arrays.append(arrays[schema.position(self.source)])
        failed = nulls_in_required(changed, arrays)
        return kept(replace(records, value=struct_column(changed, arrays)), failed)

    def _changed(self, schema: ConnectSchema) -> ConnectSchema:
        if self.source not in schema:
            raise GroupFailed(f"Unknown field: {self.source}")
        fields = [(one.name, one.schema) for one in schema.fields]
        return rebuilt(schema, [*fields, (self.target, schema[self.source])])
