"""`schema.compatibility`: which records may share an object although their schemas differ, and how they are
brought into the schema that the object began with."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from icestream.records.column import Column, children, struct_column
from icestream.records.schema import ConnectSchema, Kind


class Compatibility(StrEnum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"

    @classmethod
    def named(cls, name: str) -> Compatibility:
        """Any other word silently means NONE, as in Java."""
        return cls(name.upper()) if name.upper() in cls.__members__ else cls.NONE

    @property
    def needs_versions(self) -> bool:
        return self is not Compatibility.NONE

    def is_change(self, began: ConnectSchema | None, schema: ConnectSchema | None) -> bool:
        """Whether a record of the second schema cannot go into an object that began with the first."""
        if began == schema:
            return False
        if self is Compatibility.NONE or began is None or schema is None:
            return True
        if began.version is None or schema.version is None or not _are_alike(began, schema):
            return True
        is_beyond = (
            schema.version < began.version
            if self is Compatibility.FORWARD
            else schema.version > began.version
        )
        return is_beyond or not can_be_projected(schema, began)


def _are_alike(one: ConnectSchema, other: ConnectSchema) -> bool:
    facts = ((schema.kind, schema.name, schema.parameters, schema.optional) for schema in (one, other))
    first, second = facts
    return first == second


_WIDER: Final = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64)


def can_be_projected(source: ConnectSchema, target: ConnectSchema) -> bool:
    """Whether values of one schema have a form in another: fields that are gone are left out, new ones have a
    default or may be null, numbers grow."""
    if source.optional and not target.optional and target.default is None:
        return False
    if source.kind is not target.kind:
        are_numbers = source.kind in _WIDER and target.kind in _WIDER and source.name is target.name is None
        return are_numbers and _WIDER.index(source.kind) < _WIDER.index(target.kind)
    if source.name != target.name or source.parameters != target.parameters:
        return False
    if source.kind is not Kind.STRUCT:
        inner = ((source.key, target.key), (source.value, target.value))
        return all(one == other for one, other in inner)
    return all(
        can_be_projected(source[field.name], field.schema)
        if field.name in source
        else field.schema.optional or field.schema.default is not None
        for field in target.fields
    )


def projected(column: Column, target: ConnectSchema) -> Column:
    """Values in another schema, which `can_be_projected` has allowed."""
    source = column.schema
    if source == target or source is None:
        return column
    if source.kind is not Kind.STRUCT:
        return Column(column.values.cast(target.arrow_type), target)
    mine = children(column)
    fields = [
        projected(mine[field.name], field.schema).values
        if field.name in mine
        else _defaults(field.schema, len(column))
        for field in target.fields
    ]
    return struct_column(target, fields, column.nulls)


def _defaults(schema: ConnectSchema, length: int) -> pa.Array:
    if schema.default is None:
        return pa.nulls(length, schema.arrow_type)
    return pa.array([schema.default] * length, schema.arrow_type)
