"""`io.confluent.connect.json.JsonSchemaConverter`: JSON under JSON Schemas of a registry."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.api.config import trimmed
from icestream.converters.registry.client import RegisteredSchema, UnusableSchema
from icestream.converters.registry.converter import Read
from icestream.converters.registry.json_schema_connect import (
    ONE_OF,
    JsonSchemaOptions,
    connect_schema,
    json_schema,
)
from icestream.converters.registry.subjects import Subjects
from icestream.converters.registry.wire import Bodies, head
from icestream.jsontext.connect_values import connect_value
from icestream.jsontext.encode import JsonWriter
from icestream.jsontext.one_value import exact_one
from icestream.jsontext.with_schema import PayloadReader
from icestream.records.column import Column
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.records.values import Value

JSON: Final = "JSON"


@dataclass(frozen=True)
class JsonSchemaFormat:
    options: JsonSchemaOptions
    numeric: bool
    """`decimal.format=NUMERIC`."""
    open_objects: bool
    """`object.additional.properties`: whether schemas that are written allow other properties."""
    subjects: Subjects
    kind: str = JSON

    @classmethod
    def configured(cls, settings: Mapping[str, str], subjects: Subjects) -> Self:
        def flag(key: str, default: bool) -> bool:
            return trimmed(settings.get(key, str(default))).lower() == "true"

        return cls(
            JsonSchemaOptions(
                flag("use.optional.for.nonrequired", False), flag("flatten.singleton.unions", True)
            ),
            settings.get("decimal.format", "BASE64").upper() == "NUMERIC",
            flag("object.additional.properties", True),
            subjects,
        )

    def failure(self, topic: str) -> str:
        return f"Converting byte[] to Kafka Connect data failed due to serialization error of topic {topic}:"

    def unwritable(self, topic: str) -> str:
        return f"Converting Kafka Connect data to byte[] failed due to serialization error of topic {topic}:"

    def retrieving(self, is_key: bool, schema_id: int) -> str:
        return f"Error retrieving JSON schema for id {schema_id}"

    def reader(self, schema: RegisteredSchema) -> JsonSchemaReader:
        return JsonSchemaReader(schema.id, connect_schema(schema.text, schema.references, self.options))

    def write(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        if value is None:
            return [None] * length
        if not isinstance(value, Column) or value.schema is None:
            raise UnusableSchema("the value has no schema; give it one, or use the JSON converter")
        if _has_unions(value.schema):
            raise UnusableSchema("a oneOf is not written yet; choose one of its branches by a transform")
        text = json.dumps(json_schema(value.schema, self.numeric, self.open_objects), ensure_ascii=False)
        prefix = head(self.subjects.schema_id(topic, value.schema.name, JSON, text))
        values = JsonWriter(False, self.numeric).written(value, length)
        null = value.nulls
        return [None if one is None or null[row] else prefix + one for row, one in enumerate(values)]


@dataclass(frozen=True)
class JsonSchemaReader:
    schema_id: int
    schema: ConnectSchema

    @functools.cached_property
    def _lenient(self) -> ConnectSchema:
        """A property that is missing is no error even where the schema requires it: Java looks at nulls that
        are written only."""
        return _lenient(self.schema)

    @functools.cached_property
    def _payloads(self) -> PayloadReader:
        return PayloadReader(self._lenient, True)

    def read(self, bodies: Bodies) -> Read:
        if _has_unions(self.schema):
            return self._one_by_one(bodies, np.arange(len(bodies)))
        values = bodies.each()
        index, column, failed = self._payloads.read(values)
        about = {row: self._about(failure.reason) for row, failure in failed.items()}
        about |= self._written_nulls(values, index, column)
        made = Column(column.values, self.schema)
        return Read([(None if len(index) == len(bodies) else index, made)], about)

    def _about(self, reason: str) -> str:
        return f"Error deserializing JSON message for id {self.schema_id}: {reason}"

    def _written_nulls(self, values: Sequence[bytes], index: Any, column: Column) -> dict[int, str]:
        found = {}
        for place in np.flatnonzero(_nulls_where_required(column.values, self.schema)).tolist():
            row = int(index[place])
            if (kind := _written_null(self.schema, exact_one(values[row]))) is not None:
                found[row] = self._about(f"Invalid null value for required {kind} field")
        return found

    def _one_by_one(self, bodies: Bodies, rows: Any) -> Read:
        good, values, failed = [], [], {}
        for row in rows.tolist():
            try:
                node = exact_one(bodies.one(row))
                if (kind := _written_null(self.schema, node)) is not None:
                    raise ValueError(f"Invalid null value for required {kind} field")
                values.append(connect_value(self._lenient, _chosen(self.schema, node), True))
                good.append(row)
            except ValueError as error:
                failed[row] = self._about(str(error))
        column = Column(pa.array(values, self.schema.arrow_type), self.schema)
        return Read([(np.array(good, np.int64), column)], failed)


def _inner(schema: ConnectSchema) -> list[ConnectSchema]:
    found = [field.schema for field in schema.fields]
    return found + [one for one in (schema.key, schema.value) if one is not None]


def _has_unions(schema: ConnectSchema) -> bool:
    return schema.name == ONE_OF or any(map(_has_unions, _inner(schema)))


def _lenient(schema: ConnectSchema) -> ConnectSchema:
    return replace(
        schema,
        optional=True,
        fields=tuple(Field(one.name, _lenient(one.schema)) for one in schema.fields),
        value=None if schema.value is None else _lenient(schema.value),
    )


def _nulls_where_required(values: pa.Array, schema: ConnectSchema) -> Any:
    """Rows with a null somewhere inside where the schema wants a value."""
    flags = np.zeros(len(values), np.bool_)
    if schema.kind is Kind.STRUCT:
        here = values.is_valid().to_numpy(zero_copy_only=False)
        for field, child in zip(schema.fields, values.flatten(), strict=True):
            inner = _nulls_where_required(child, field.schema)
            if not field.schema.optional and child.null_count:
                inner |= child.is_null().to_numpy(zero_copy_only=False)
            flags |= here & inner
    elif schema.value is not None and not schema.value.optional:
        items = values.values if schema.kind is Kind.ARRAY else values.items
        if items.null_count or schema.value.fields:
            flags |= True  # rare enough to look at every row
    if not schema.optional and values.null_count:
        flags |= values.is_null().to_numpy(zero_copy_only=False)
    return flags


def _written_null(schema: ConnectSchema, node: Any) -> Kind | None:
    """The kind of a required field for which the text has a null; None if there is no such field."""
    if node is None:
        return None if schema.optional or schema.default is not None else schema.kind
    if schema.name == ONE_OF:
        return None
    if schema.kind is Kind.STRUCT and isinstance(node, dict):
        parts = [(field.schema, node[field.name]) for field in schema.fields if field.name in node]
    elif schema.value is not None and isinstance(node, list | dict):
        of = schema.value
        parts = [(of, one) for one in (node.values() if isinstance(node, dict) else node)]
    else:
        parts = []
    return next((kind for one, value in parts if (kind := _written_null(one, value))), None)


def _chosen(schema: ConnectSchema, node: Any) -> Any:
    """A node in which each value of a oneOf is an object with the field of its branch."""
    if node is None:
        return None
    if schema.name == ONE_OF:
        field = _branch(schema, node)
        return {field.name: _chosen(field.schema, node)}
    if schema.kind is Kind.STRUCT and isinstance(node, dict):
        return {one.name: _chosen(one.schema, node[one.name]) for one in schema.fields if one.name in node}
    if schema.value is not None and isinstance(node, list):
        return [_chosen(schema.value, one) for one in node]
    if schema.value is not None and isinstance(node, dict):
        return {name: _chosen(schema.value, one) for name, one in node.items()}
    return node


def _branch(schema: ConnectSchema, node: Any) -> Field:
    best, most = None, 0
    for field in schema.fields:
        if _is_simply(field.schema, node):
            return field
        matching = _matching(field.schema, node)
        if matching > most:
            best, most = field, matching
    if best is None:
        raise ValueError("Did not find matching oneof field for data")
    return best


def _is_simply(schema: ConnectSchema, node: Any) -> bool:
    match schema.kind:
        case Kind.BOOLEAN:
            return isinstance(node, bool)
        case Kind.INT8 | Kind.INT16 | Kind.INT32 | Kind.INT64:
            return isinstance(node, int) and not isinstance(node, bool)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return not isinstance(node, bool | str | list | dict)
        case Kind.STRING:
            return isinstance(node, str)
        case Kind.ARRAY:
            return isinstance(node, list)
        case Kind.MAP:
            return isinstance(node, list | dict)
    return False


def _matching(schema: ConnectSchema, node: Any) -> int:
    """How many properties of an object a branch knows, and those inside them."""
    if schema.kind is not Kind.STRUCT or not isinstance(node, dict):
        return 0
    known = [field for field in schema.fields if field.name in node]
    return len(known) + sum(_matching(field.schema, node[field.name]) for field in known)
