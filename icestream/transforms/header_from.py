"""`HeaderFrom`: fields of the key or value are copied or moved into headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Header, Records
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields
from icestream.transforms.failures import is_null, not_a_map, not_a_struct, refused_setting, schema_text
from icestream.transforms.groups import Picked, Side, all_failed, got, kept, picked
from icestream.transforms.structs import nulls_in_required, read_fields, rebuilt, rebuilt_column

_MOVE: Final = "move"


@dataclass(frozen=True)
class HeaderFrom:
    side: Side
    fields: Sequence[str]
    headers: Sequence[str]
    operation: str
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        fields, headers = tuple(settings["fields"]), tuple(settings["headers"])
        if len(fields) != len(headers):
            problem = "'fields' config must have the same number of elements as 'headers' config."
            raise refused_setting("fields", problem)
        return cls(side, fields, headers, settings["operation"], settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        purpose = f"header {self.operation}"
        if isinstance(value, Column) and value.schema is not None:
            if value.schema.kind is not Kind.STRUCT or is_null(value):
                return all_failed(records, not_a_struct(value, purpose))
            return self._with_schema(records, value, value.schema)
        if not isinstance(value, Fields):
            return all_failed(records, not_a_map(value, purpose))
        return Applied([self._schemaless(group) for group in picked(records, self.side, self.fields)])

    def _schemaless(self, group: Picked) -> Records:
        headers = tuple(map(Header, self.headers, map(got, group.values)))
        fields = self.side.get(group.records)
        assert isinstance(fields, Fields)
        if self.operation == _MOVE:
            fields = fields.put(dict.fromkeys(self.fields))
        return self.side.put(replace(group.records, headers=(*group.records.headers, *headers)), fields)

    def _with_schema(self, records: Records, value: Column, schema: ConnectSchema) -> Applied:
        columns = read_fields(value, defaults=self.replace_null_with_default)
        refused: dict[int, Failure] = {}
        if self.operation == _MOVE:
            stay = [name for name in columns if name not in self.fields]
            smaller = rebuilt(schema, [(name, schema[name]) for name in stay])
            arrays = [columns[name].values for name in stay]
            refused = nulls_in_required(smaller, arrays)
            records = self.side.put(records, rebuilt_column(smaller, arrays, len(records)))
        unknown = next((name for name in self.fields if name not in schema), None)
        if unknown is not None:
            return all_failed(records, Failure(f"Unknown field: {unknown}"))
        for name in self.fields:
            refused = _null_headers(columns[name]) | refused
        headers = (
            Header(name, columns[field]) for name, field in zip(self.headers, self.fields, strict=True)
        )
        return kept(replace(records, headers=(*records.headers, *headers)), refused)


def _null_headers(column: Column) -> dict[int, Failure]:
    schema = column.schema
    if schema is None or schema.optional or not column.values.null_count:
        return {}
    why = Failure(f"A null value requires an optional schema but was {schema_text(schema)}")
    return dict.fromkeys(np.flatnonzero(column.nulls).tolist(), why)
