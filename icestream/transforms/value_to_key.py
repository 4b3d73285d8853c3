"""`ValueToKey`: fields of the value make a new key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import ConnectSchema, Kind, struct
from icestream.records.values import Fields
from icestream.transforms.failures import GroupFailed, is_null, not_a_map, not_a_struct
from icestream.transforms.groups import Picked, Side, all_failed, got, kept, picked
from icestream.transforms.structs import nulls_in_required, read_fields, rebuilt, rebuilt_column

_PURPOSE = "copying fields from value to key"


@dataclass(frozen=True)
class ValueToKey:
    fields: Sequence[str]
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(tuple(settings["fields"]), settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        value = records.value
        if isinstance(value, Column) and value.schema is not None:
            return self._with_schema(records, value, value.schema)
        if not isinstance(value, Fields):
            return all_failed(records, not_a_map(value, _PURPOSE))
        return Applied([self._schemaless(group) for group in picked(records, Side.VALUE, self.fields)])

    def _schemaless(self, group: Picked) -> Records:
        named = dict(zip(self.fields, map(got, group.values), strict=True))
        return replace(group.records, key=Fields(named, None, len(group.records)))

    def _with_schema(self, records: Records, value: Column, schema: ConnectSchema) -> Applied:
        if schema.kind is not Kind.STRUCT or is_null(value):
            return all_failed(records, not_a_struct(value, _PURPOSE))
        unknown = next((name for name in self.fields if name not in schema), None)
        if unknown is not None:
            return all_failed(records, Failure(f"Field does not exist: {unknown}"))
        try:
            key_schema = rebuilt(struct(), [(name, schema[name]) for name in self.fields])
        except GroupFailed as refusal:
            return all_failed(records, refusal.failure)
        columns = read_fields(value, defaults=self.replace_null_with_default)
        arrays = [columns[name].values for name in self.fields]
        key = rebuilt_column(key_schema, arrays, len(records))
        return kept(replace(records, key=key), nulls_in_required(key_schema, arrays))
