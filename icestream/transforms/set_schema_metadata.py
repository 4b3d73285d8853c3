"""`SetSchemaMetadata`: another name or version for the schema of the key or value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from icestream.records.column import Column, nulls
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import ConnectSchema, Kind
from icestream.transforms.failures import is_null, refused_setting
from icestream.transforms.groups import Side, all_failed, without_failed
from icestream.transforms.structs import field_arrays, full_struct_column, required_null_failures


@dataclass(frozen=True)
class SetSchemaMetadata:
    side: Side
    name: str | None
    version: int | None
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        name, version = settings["schema.name"], settings["schema.version"]
        if name is None and version is None:
            raise refused_setting("schema.name", "Neither schema name nor version configured")
        return cls(side, name, version, settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if not isinstance(value, Column) or value.schema is None:
            if is_null(value):
                return Applied([records])
            return all_failed(records, Failure("Schema required for [updating schema metadata]"))
        if value.schema.kind is not Kind.STRUCT:  # since 4.0 Java asks any schema for its fields
            return all_failed(records, Failure("Cannot list fields on non-struct type"))
        schema = self._changed(value.schema)
        if is_null(value):
            return Applied([self.side.put(records, nulls(len(records), schema))])
        return self._rebuilt(records, value, schema)

    def _changed(self, schema: ConnectSchema) -> ConnectSchema:
        return replace(
            schema,
            name=schema.name if self.name is None else self.name,
            version=schema.version if self.version is None else self.version,
        )

    def _rebuilt(self, records: Records, value: Column, schema: ConnectSchema) -> Applied:
        arrays = field_arrays(value, self.replace_null_with_default)
        failed = required_null_failures(schema, arrays)
        return without_failed(
            self.side.put(records, full_struct_column(schema, arrays, len(records))), failed
        )
