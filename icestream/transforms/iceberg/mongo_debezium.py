"""`MongoDebeziumTransform`: Debezium's events of MongoDB, whose documents are JSON in strings, with documents
as structs. DebeziumTransform goes on from there.

Each record's schema comes from its own documents, so records are read one by one and gathered by schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, children, filled, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import ConnectSchema, Kind, struct
from icestream.records.values import Value
from icestream.transforms.failures import NULL_POINTER, GroupFailed, is_null, not_a_struct, null_result
from icestream.transforms.groups import Side, all_failed
from icestream.transforms.iceberg.cdc import texts
from icestream.transforms.iceberg.extended_json import Document, parse
from icestream.transforms.iceberg.mongo_schemas import Schemas
from icestream.transforms.iceberg.mongo_values import Values

_AFTER, _BEFORE, _UPDATE = "after", "before", "updateDescription"
_UPDATED, _REMOVED = "updatedFields", "removedFields"
_ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
_EXTRACTION: Final = "field extraction"
_NO_KEY: Final = null_result("Object.toString()", "org.apache.kafka.connect.sink.SinkRecord.key()")
_NO_UPDATE: Final = 'Cannot invoke "String.length()" because "this.buffer" is null'


@dataclass(frozen=True)
class Documents:
    """Of one record."""

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
    values: Values

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        as_documents = (settings["array_handling_mode"] or "").strip().lower() == "document"
        return cls(Schemas(as_documents), Values(as_documents))

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        if not _is_named(records.key, ".Key") or not _is_named(records.value, ".Envelope"):
            return Applied([replace(records, key=None, value=None)])
        try:
            events = Events.of(records)
        except GroupFailed as refused:
            return all_failed(records, refused.failure)
        failed: dict[int, Failure] = {}
        groups: dict[tuple[int, int, int], tuple[Shape, dict[int, Documents]]] = {}
        for position in range(len(records)):
            try:
                shape, documents = self._read(events, position)
                groups.setdefault(shape.identity, (shape, {}))[1][position] = documents
            except GroupFailed as refused:
                failed[int(records.rows[position])] = refused.failure
        return Applied([events.group(shape, rows) for shape, rows in groups.values()], failed)

    def _read(self, events: Events, position: int) -> tuple[Shape, Documents]:
        found = events.documents(position)
        key = self.schemas.at_top(found.key, optional=False)
        key_struct = self.values.of(found.key, key)
        before = None if found.before is None else self.schemas.at_top(found.before)
        after = None if found.after is None else self.schemas.at_top(found.after)
        return Shape(key, before, after), Documents(
            key_struct,
            None if found.before is None else self.values.of(found.before, before),
            None if found.after is None else self.values.of(found.after, after),
        )


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
        """Raises GroupFailed in the order in which Java extracts the fields."""
        length = len(records)
        key = _texts(_extracted(records.key, "id"), length)
        after, before = (_texts(_extracted(records.value, name), length) for name in (_AFTER, _BEFORE))
        return cls(records, key, before, after, _extracted(records.value, _UPDATE))

    def documents(self, position: int) -> Documents:
        before, after, update = self.before[position], self.after[position], self.updates.values[position]
        if before is None and after is None and not update.is_valid:
            raise GroupFailed(f"malformed record {_place(self.records, position)}", _ILLEGAL_ARGUMENT)
        key_text = self.keys[position]
        if key_text is None:
            raise GroupFailed(_NO_KEY)
        key = parse(f'{{ "id" : {key_text}}}')
        first = None if before is None else parse(before)
        if after is not None:
            return Documents(key, first, parse(after))
        if not update.is_valid:
            return Documents(key, first, None)
        return Documents(key, first, self._updated(update.as_py(), dict(first or {}), key))

    def _updated(self, update: Any, document: Document, key: Document) -> Document:
        """The document after an update that tells of nothing but the changes."""
        schema = self.updates.schema
        if schema is None or schema.kind is not Kind.STRUCT:
            raise GroupFailed(not_a_struct(self.updates, _UPDATE))
        for name, wanted in ((_UPDATED, Kind.STRING), (_REMOVED, Kind.ARRAY)):
            if name not in schema:
                raise GroupFailed(f"{name} is not a valid field name")
            if schema[name].kind is not wanted:
                raise GroupFailed(f"Field '{name}' is not of type {wanted}")
        if update[_UPDATED] is None:
            raise GroupFailed(_NO_UPDATE, NULL_POINTER)
        document.update(parse(update[_UPDATED]))
        for name in update[_REMOVED] or ():
            document.pop(name, None)
        document.setdefault("_id", key.get("id"))
        return document

    def group(self, shape: Shape, rows: Mapping[int, Documents]) -> Records:
        mine = self.records.take(np.fromiter(rows, np.int64, len(rows)))
        found = list(rows.values())
        assert isinstance(mine.value, Column) and mine.value.schema is not None
        fields: list[tuple[str, ConnectSchema]] = []
        arrays: list[pa.Array] = []
        for name, column in children(mine.value).items():
            if name in (_AFTER, _BEFORE):
                schema = shape.after if name == _AFTER else shape.before
                documents = [one.after if name == _AFTER else one.before for one in found]
                if schema is None:
                    continue
                column = Column(pa.array(documents, schema.arrow_type), schema)
            assert column.schema is not None
            fields.append((name, column.schema))
            arrays.append(filled(column).values)
        value = struct_column(
            struct(*fields, name=mine.value.schema.name), arrays, np.zeros(len(mine), np.bool_)
        )
        key = Column(pa.array([one.key for one in found], shape.key.arrow_type), shape.key)
        return replace(mine, key=key, value=value)


def _is_named(value: Value, suffix: str) -> bool:
    schema = value.schema if isinstance(value, Column) else None
    return schema is not None and schema.name is not None and schema.name.endswith(suffix)


def _extracted(value: Value, name: str) -> Column:
    """As ExtractField does it."""
    assert isinstance(value, Column) and value.schema is not None
    if value.schema.kind is not Kind.STRUCT:
        raise GroupFailed(not_a_struct(value, _EXTRACTION))
    if name not in value.schema:
        raise GroupFailed(f"Unknown field: {name}", _ILLEGAL_ARGUMENT)
    found = children(value)[name]
    return found if is_null(value) else filled(found)


def _texts(column: Column, length: int) -> list[str | None]:
    found: list[str | None] = texts(column, length).to_pylist()
    return found


def _place(records: Records, position: int) -> str:
    partition = None if records.partitions is None else records.partitions[position]
    offset = None if records.offsets is None else records.offsets[position]
    return f"topic: {records.topic}, partition: {partition}, offset: {offset}"
