"""`HoistField`: the whole key or value becomes the one field of a struct or map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from icestream.records.column import Column, nulls, struct_column
from icestream.records.records import Applied, Records
from icestream.records.schema import struct
from icestream.records.values import Fields
from icestream.transforms.failures import GroupFailed
from icestream.transforms.groups import Side, all_failed, without_failed
from icestream.transforms.structs import null_failures, with_fields


@dataclass(frozen=True)
class HoistField:
    side: Side
    field: str

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(side, settings["field"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if isinstance(value, Column) and value.schema is not None:
            try:
                schema = with_fields(struct(), [(self.field, value.schema)])
            except GroupFailed as refused:
                return all_failed(records, refused.failure)
            hoisted = struct_column(schema, [value.values])
            return without_failed(self.side.put(records, hoisted), null_failures(self.field, value))
        inner = nulls(len(records)) if value is None else value
        return Applied([self.side.put(records, Fields({self.field: inner}, None, len(records)))])
