"""`ValueToKey`: fields of the value make a new key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from icestream.records.column import Column
from icestream.records.records import Applied, Records
from icestream.records.schema import struct
from icestream.records.values import Fields
from icestream.transforms.failures import GroupFailed, has_schema
from icestream.transforms.groups import Picked, Side, absent_as_null, all_failed, merged, without_failed
from icestream.transforms.structs import full_struct_column, pick_fields, required_null_failures, with_fields

_PURPOSE: Final = "copying fields from value to key"


@dataclass(frozen=True)
class ValueToKey:
    fields: Sequence[str]
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(tuple(settings["fields"]), settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        try:
            groups = pick_fields(
                records, Side.VALUE, self.fields, _PURPOSE, defaults=self.replace_null_with_default
            )
            return merged([self._keyed(group) for group in groups])
        except GroupFailed as failed:
            return all_failed(records, failed.failure)

    def _keyed(self, group: Picked) -> Applied:
        named = dict(zip(self.fields, map(absent_as_null, group.values), strict=True))
        if not has_schema(group.records.value):
            return Applied([replace(group.records, key=Fields(named, None, len(group.records)))])
        columns = [one for one in group.values if isinstance(one, Column)]
        fields = [(name, one.schema) for name, one in zip(self.fields, columns, strict=True) if one.schema]
        schema = with_fields(struct(), fields)
        arrays = [one.values for one in columns]
        key = full_struct_column(schema, arrays, len(group.records))
        return without_failed(replace(group.records, key=key), required_null_failures(schema, arrays))
