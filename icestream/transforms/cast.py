"""Cast: fields, or the whole value, as another type."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa

from icestream.records.column import Column, nulls
from icestream.records.java_classes import java_class
from icestream.records.java_text import hash_order
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema, Kind
from icestream.records.values import Fields, Typed
from icestream.transforms.java_casts import cast_one, cast_values, unsupported
from icestream.transforms.refusals import Refused, values_failed
from icestream.transforms.requirements import is_null, require_map, require_struct
from icestream.transforms.schema_cache import SchemaCache
from icestream.transforms.setting_rules import at_colons
from icestream.transforms.side import Changed, Side, all_failed, change_field, has_schema, kept, merged
from icestream.transforms.structs import field_arrays, nulls_refused, rebuilt, rebuilt_column

_PURPOSE: Final = "cast types"
_LOGICAL: Final = frozenset((DATE, TIME, TIMESTAMP, DECIMAL))
_KINDS: Final[Mapping[pa.DataType, Kind]] = {
    ConnectSchema(kind).arrow_type: kind for kind in Kind if kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT)
}


@dataclass(frozen=True)
class Cast:
    side: Side
    casts: Mapping[str, Kind]
    whole: Kind | None = None
    replace_null_with_default: bool = True
    _schemas: SchemaCache[ConnectSchema] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        casts: dict[str, Kind] = {}
        whole = None
        for one in settings["spec"]:
            *names, kind = (part.strip() for part in at_colons(one))
            if names:
                casts[names[0]] = Kind(kind.upper())
            else:
                whole = Kind(kind.upper())
        ordered = {name: casts[name] for name in hash_order(casts)}
        return cls(side, ordered, whole, settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if is_null(value) or value is None:
            return Applied([records])
        try:
            if has_schema(value):
                assert isinstance(value, Column)
                return self._with_schema(records, value)
            return self._schemaless(records, value)
        except Refused as why:
            return all_failed(records, why.failure)

    def _schemaless(self, records: Records, value: Typed) -> Applied:
        if self.whole is not None:
            changed = _cast_schemaless(value, self.whole)
            assert isinstance(changed.value, Column)
            return kept(self.side.put(records, changed.value), changed.failed)
        require_map(value, _PURPOSE)
        applied = Applied([records])
        for name, kind in self.casts.items():
            change = functools.partial(_cast_schemaless, target=kind)
            more = [change_field(one, self.side, name, change) for one in applied.records]
            applied = merged([*more, Applied([], applied.failed)])
        return applied

    def _with_schema(self, records: Records, value: Column) -> Applied:
        assert value.schema is not None
        if self.whole is None and value.schema.kind is not Kind.STRUCT:
            raise Refused("Cannot list fields on non-struct type")
        changed = self._schemas.get(value.schema, self._changed)
        if self.whole is not None:
            values, failed = cast_values(value.values, value.schema.kind, self.whole)
            return kept(self.side.put(records, Column(values, changed)), failed)
        return self._struct(records, value, changed)

    def _struct(self, records: Records, value: Column, changed: ConnectSchema) -> Applied:
        column, schema = require_struct(value, _PURPOSE)
        arrays = field_arrays(column, self.replace_null_with_default)
        failed: dict[int, Failure] = {}
        for position, one in enumerate(schema.fields):
            if one.name in self.casts:
                kind = self.casts[one.name]
                arrays[position], bad = cast_values(arrays[position], one.schema.kind, kind)
                failed = {**bad, **failed}
            failed = {**nulls_refused(one.name, Column(arrays[position], changed[one.name])), **failed}
        return kept(self.side.put(records, rebuilt_column(changed, arrays, len(records))), failed)

    def _changed(self, schema: ConnectSchema) -> ConnectSchema:
        if self.whole is not None:
            # Java keeps a logical type's name on what is none any more: no converter could write it.
            name = None if schema.name in _LOGICAL else schema.name
            changed = replace(schema, kind=self.whole, name=name, default=None)
        else:
            fields = [(one.name, self._changed_field(one.name, one.schema)) for one in schema.fields]
            changed = replace(rebuilt(schema, fields), optional=schema.optional)
        if schema.default is None:
            return changed
        return replace(changed, default=cast_one(schema.default, schema, changed.kind))

    def _changed_field(self, name: str, schema: ConnectSchema) -> ConnectSchema:
        if name not in self.casts:
            return schema
        kind = self.casts[name]
        default = None if schema.default is None else cast_one(schema.default, schema, kind)
        return ConnectSchema(kind, optional=schema.optional, default=default)


def _cast_schemaless(value: Typed, target: Kind) -> Changed:
    if is_null(value):
        return Changed(nulls(len(value)))
    refusal = _refusal(value)
    if refusal is not None:
        return Changed(nulls(len(value)), values_failed(value, Failure(refusal)))
    assert isinstance(value, Column)
    values, failed = cast_values(value.values, _KINDS[value.values.type], target)
    return Changed(Column(values), failed)


def _refusal(value: Typed) -> str | None:
    """Why values of this Java class cannot be cast without a schema."""
    if not isinstance(value, Column):
        return unsupported(Kind.MAP if isinstance(value, Fields) else Kind.ARRAY)
    name = java_class(value)
    if name not in ("java.util.Date", "java.math.BigDecimal"):
        return None
    what = f"class {name} which is not supported by Connect's data API"
    return f"Cast transformation was passed a value of type {what}"
