"""`HeaderFrom`: fields of the key or value are copied or moved into headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from icestream.api.errors import ConfigError, Problem
from icestream.records.column import Column, struct_column
from icestream.records.records import Applied, Failure, Header, Records
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields
from icestream.transforms.picked_fields import Picked, got, picked
from icestream.transforms.requirements import is_null, not_a_map, not_a_struct, schema_text
from icestream.transforms.side import Side, all_failed, kept
from icestream.transforms.struct_fields import nulls_refused, read_fields

_MOVE: Final = "move"
_UNKNOWN_FIELD: Final = Failure(
    'Cannot invoke "org.apache.kafka.connect.data.Field.schema()" because the return value of '
    '"org.apache.kafka.connect.data.Schema.field(String)" is null',
    "java.lang.NullPointerException",
)


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
            raise ConfigError([Problem("fields", problem)])
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
            stay = {name: column for name, column in columns.items() if name not in self.fields}
            for name, column in stay.items():
                refused = nulls_refused(name, column) | refused
            records = self.side.put(records, _struct_of(schema, stay, len(records)))
        if not all(name in schema for name in self.fields):
            return all_failed(records, _UNKNOWN_FIELD)
        for name in self.fields:
            refused = _null_headers(columns[name]) | refused
        headers = (
            Header(name, columns[field]) for name, field in zip(self.headers, self.fields, strict=True)
        )
        return kept(replace(records, headers=(*records.headers, *headers)), refused)


def _struct_of(schema: ConnectSchema, columns: Mapping[str, Column], length: int) -> Column:
    """A struct of some of the fields. Java takes over neither the default nor whether it is optional."""
    fields = tuple(field for field in schema.fields if field.name in columns)
    smaller = replace(schema, optional=False, default=None, fields=fields)
    arrays = [columns[field.name].values for field in fields]
    return struct_column(smaller, arrays, np.zeros(length, np.bool_))


def _null_headers(column: Column) -> dict[int, Failure]:
    schema = column.schema
    if schema is None or schema.optional or not column.values.null_count:
        return {}
    why = Failure(f"A null value requires an optional schema but was {schema_text(schema)}")
    return dict.fromkeys(np.flatnonzero(column.nulls).tolist(), why)
