"""`MongoDebeziumTransform`: Debezium's events of MongoDB, whose documents are JSON in strings, with documents
as structs. DebeziumTransform goes on from there.

Each record's schema comes from its own documents, so records are read one by one and gathered by schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, children, filled, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import (
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    ConnectSchema,
    Kind,
    array,
    struct,
    timestamp,
)
from icestream.records.values import Value
from icestream.transforms.cdc.events import texts
from icestream.transforms.cdc.extended_json import DateTime, Document, Int64, Other, parse
from icestream.transforms.failures import SCHEMA_BUILDER_EXCEPTION, GroupFailed, is_null, not_a_struct
from icestream.transforms.groups import Side, all_failed

_AFTER, _BEFORE, _UPDATE = "after", "before", "updateDescription"
_UPDATED, _REMOVED = "updatedFields", "removedFields"
_ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
_MOST_SHAPES: Final = 1000
_UNKNOWN: Final = ConnectSchema(Kind.STRING, optional=True, doc="only nulls so far")
_SCALARS: Final[Mapping[type, ConnectSchema]] = {
    type(None): _UNKNOWN,
    str: OPTIONAL_STRING,
    float: ConnectSchema(Kind.FLOAT64, optional=True),
    bytes: OPTIONAL_BYTES,
    int: ConnectSchema(Kind.INT32, optional=True),
    Int64: ConnectSchema(Kind.INT64, optional=True),
    DateTime: timestamp(optional=True),
    bool: ConnectSchema(Kind.BOOLEAN, optional=True),
}


@dataclass(frozen=True)
class Documents:
    """The key, the document before and the one after of one record; None: there is none."""

    key: Document
    before: Document | None
    after: Document | None


@dataclass(frozen=True)
class Shape:
    """The schemas of one record's documents."""

    key: ConnectSchema
    before: ConnectSchema | None
    after: ConnectSchema | None

    @property
    def identity(self) -> tuple[int, int, int]:
        """Equal for records of one group: schemas of one shape are one object."""
        return id(self.key), id(self.before), id(self.after)


@dataclass(frozen=True)
class MongoDebeziumTransform:
    schemas: Schemas

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(Schemas((settings["array_handling_mode"] or "").strip().lower() == "document"))

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        if not _is_named(records.key, ".Key") or not _is_named(records.value, ".Envelope"):
            return Applied([replace(records, key=None, value=None)])
        try:
            events = Events.of(records)
        except GroupFailed as failed:
            return all_failed(records, failed.failure)
        failures: dict[int, Failure] = {}
        groups: dict[tuple[int, int, int], tuple[Shape, dict[int, Documents]]] = {}
        for position in range(len(records)):
            try:
                found = events.documents(position)
                shape = Shape(
                    self.schemas.of(found.key, optional=False),
                    None if found.before is None else self.schemas.of(found.before),
                    None if found.after is None else self.schemas.of(found.after),
                )
                groups.setdefault(shape.identity, (shape, {}))[1][position] = found
            except GroupFailed as failed:
                failures[int(records.rows[position])] = failed.failure
        return Applied([events.group(shape, rows) for shape, rows in groups.values()], failures)


@dataclass(frozen=True)
class Events:
    """The parts of a group's change events, each by position; None for nulls."""

    records: Records
    keys: list[str | None]
    before: list[str | None]
    after: list[str | None]
    updates: Column

    @classmethod
    def of(cls, records: Records) -> Self:
        key, after, before = (
            texts(_extracted(value, name), len(records)).to_pylist()
            for value, name in ((records.key, "id"), (records.value, _AFTER), (records.value, _BEFORE))
        )
        return cls(records, key, before, after, _extracted(records.value, _UPDATE))

    def documents(self, position: int) -> Documents:
        """Raises GroupFailed for events that are none."""
        before, after, update = self.before[position], self.after[position], self.updates.values[position]
        if before is None and after is None and not update.is_valid:
            raise GroupFailed(f"malformed record {_place(self.records, position)}", _ILLEGAL_ARGUMENT)
        if self.keys[position] is None:
            raise GroupFailed("The change event has no id in its key")
        key = parse(f'{{ "id" : {self.keys[position]}}}')
        first = None if before is None else parse(before)
        if after is not None:
            return Documents(key, first, parse(after))
        if not update.is_valid:
            return Documents(key, first, None)
        return Documents(key, first, _updated(update.as_py(), dict(first or {}), key))

    def group(self, shape: Shape, rows: Mapping[int, Documents]) -> Records:
        mine = self.records.take(np.fromiter(rows, np.int64, len(rows)))
        found = list(rows.values())
        assert isinstance(mine.value, Column) and mine.value.schema is not None
        fields: list[tuple[str, ConnectSchema]] = []
        arrays: list[pa.Array] = []
        for name, column in children(mine.value).items():
            if name in (_AFTER, _BEFORE):
                schema = shape.after if name == _AFTER else shape.before
                if schema is None:
                    continue
                column = _column([one.after if name == _AFTER else one.before for one in found], schema)
            assert column.schema is not None
            fields.append((name, column.schema))
            arrays.append(filled(column).values)
        nowhere = np.zeros(len(mine), np.bool_)
        value = struct_column(struct(*fields, name=mine.value.schema.name), arrays, nowhere)
        return replace(mine, key=_column([one.key for one in found], shape.key), value=value)


def _updated(update: Any, document: Document, key: Document) -> Document:
    """The document after an update that tells of nothing but the changes."""
    if not isinstance(update, dict) or not isinstance(update.get(_UPDATED), str) or _REMOVED not in update:
        raise GroupFailed(f"The change event has no {_UPDATED} and {_REMOVED} in its {_UPDATE}")
    document.update(parse(update[_UPDATED]))
    for name in update[_REMOVED] or ():
        document.pop(name, None)
    document.setdefault("_id", key.get("id"))
    return document


@dataclass(frozen=True)
class Schemas:
    """Infers the schemas of documents from their values."""

    arrays_as_documents: bool
    _known: dict[tuple[Any, bool], ConnectSchema] = field(default_factory=dict, compare=False)

    def of(self, document: Document, *, optional: bool = True) -> ConnectSchema:
        """The same object for all documents of one shape. Raises GroupFailed if there is none."""
        shape = (self._shape(document), optional)
        if shape not in self._known:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            found = replace(self._struct(document, None), optional=optional)
            self._known[shape] = _settled(found)
        return self._known[shape]

    def _shape(self, value: Any) -> Any:
        """All that the schema depends on."""
        if type(value) is dict:
            return ("{", *((key, self._shape(item)) for key, item in value.items()))
        if type(value) is list:
            items = map(self._shape, value)
            return ("[", *(items if self.arrays_as_documents else dict.fromkeys(items)))
        return type(value)

    def _struct(self, document: Document, name: str | None) -> ConnectSchema:
        fields = []
        for key, value in document.items():
            if type(value) is Other:
                continue
            if not key:
                raise GroupFailed("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
            fields.append((key, self._inferred(value, f"{'null' if name is None else name}.{key}")))
        return struct(*fields, name=name, optional=True)

    def _inferred(self, value: Any, name: str) -> ConnectSchema:
        if type(value) is list and self.arrays_as_documents:
            value = _elements(value)
        if type(value) is dict:
            return self._struct(value, name)
        if type(value) is not list:
            return _SCALARS[type(value)]
        item = _UNKNOWN
        for one in value:
            if type(one) is not Other:
                item = _common(item, self._inferred(one, name), name)
        return array(item, optional=True)


def _common(first: ConnectSchema, second: ConnectSchema, name: str) -> ConnectSchema:
    """The schema of elements of one array: documents have the fields of all of them."""
    if first == second or second is _UNKNOWN:
        return first
    if first is _UNKNOWN:
        return second
    if first.kind is second.kind is Kind.STRUCT:
        fields = {one.name: one.schema for one in first.fields}
        for one in second.fields:
            fields[one.name] = _common(fields.get(one.name, _UNKNOWN), one.schema, f"{name}.{one.name}")
        return struct(*fields.items(), name=first.name, optional=True)
    if first.kind is second.kind is Kind.ARRAY:
        assert first.value is not None and second.value is not None
        return array(_common(first.value, second.value, name), optional=True)
    raise GroupFailed(
        f"The array at {name.removeprefix('null.')} has elements of different types; use "
        "array_handling_mode=document",
        "java.lang.RuntimeException",
    )


def _settled(schema: ConnectSchema) -> ConnectSchema:
    """What had only nulls is a string."""
    if schema is _UNKNOWN:
        return OPTIONAL_STRING
    fields = tuple(replace(one, schema=_settled(one.schema)) for one in schema.fields)
    return replace(schema, fields=fields, value=None if schema.value is None else _settled(schema.value))


def _elements(values: Sequence[Any]) -> Document:
    """An array as a document: `_0`, `_1` and so on."""
    return {f"_{position}": value for position, value in enumerate(values)}


def _column(documents: Sequence[Document | None], schema: ConnectSchema) -> Column:
    return Column(pa.array([_fitted(one, schema) for one in documents], schema.arrow_type), schema)


def _fitted(value: Any, schema: ConnectSchema) -> Any:
    """A value as Arrow takes it for its schema. Nulls in arrays are left out."""
    if value is None or type(value) is Other:
        return None
    if schema.kind is Kind.STRUCT:
        named = _elements(value) if type(value) is list else value
        return {one.name: _fitted(named.get(one.name), one.schema) for one in schema.fields}
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        kept = [item for item in value if item is not None and type(item) is not Other]
        return [_fitted(item, schema.value) for item in kept]
    return value


def _is_named(value: Value, suffix: str) -> bool:
    schema = value.schema if isinstance(value, Column) else None
    return schema is not None and schema.name is not None and schema.name.endswith(suffix)


def _extracted(value: Value, name: str) -> Column:
    """As ExtractField does it."""
    assert isinstance(value, Column) and value.schema is not None
    if value.schema.kind is not Kind.STRUCT:
        raise GroupFailed(not_a_struct(value, "field extraction"))
    if name not in value.schema:
        raise GroupFailed(f"Unknown field: {name}", _ILLEGAL_ARGUMENT)
    found = children(value)[name]
    return found if is_null(value) else filled(found)


def _place(records: Records, position: int) -> str:
    partition = None if records.partitions is None else records.partitions[position]
    offset = None if records.offsets is None else records.offsets[position]
    return f"topic: {records.topic}, partition: {partition}, offset: {offset}"
