"""MongoDB's documents as structs of their schemas, for MongoDebeziumTransform: Python's own values, checked
as Java's `Struct.put` checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.records.schema import TIMESTAMP, ConnectSchema, Kind
from icestream.transforms.failures import GroupFailed, schema_text
from icestream.transforms.iceberg.extended_json import DateTime, Document, Int64, Timestamp, kind
from icestream.transforms.iceberg.mongo_schemas import elements, first

_SCALARS: Final = {
    *("STRING", "OBJECT_ID", "DECIMAL128", "JAVASCRIPT", "BINARY", "BOOLEAN", "DOUBLE", "INT32", "INT64"),
    *("DATE_TIME", "TIMESTAMP"),
}
_DATE: Final = "java.util.Date"
_CLASSES: Final[Mapping[type, str]] = {
    str: "java.lang.String",
    int: "java.lang.Integer",
    Int64: "java.lang.Long",
    float: "java.lang.Double",
    bool: "java.lang.Boolean",
    bytes: "[B",
    DateTime: _DATE,
    list: "java.util.ArrayList",
    dict: "org.apache.kafka.connect.data.Struct",
}
_CLASSES_OF_KINDS: Final[Mapping[Kind, str]] = {
    Kind.STRING: _CLASSES[str],
    Kind.INT32: _CLASSES[int],
    Kind.INT64: _CLASSES[Int64],
    Kind.FLOAT64: _CLASSES[float],
    Kind.BOOLEAN: _CLASSES[bool],
    Kind.BYTES: _CLASSES[bytes],
    Kind.ARRAY: _CLASSES[list],
    Kind.STRUCT: _CLASSES[dict],
}


@dataclass(frozen=True)
class Values:
    """All methods raise GroupFailed for documents that do not fit."""

    arrays_as_documents: bool

    def of(
        self, document: Document, schema: ConnectSchema | None, lookup: ConnectSchema | None = None
    ) -> Document:
        """A document as a struct. Java looks for the schemas of nested fields in `lookup`."""
        if schema is None or schema.kind is not Kind.STRUCT:
            assert schema is not None
            raise GroupFailed(f"Not a struct schema: {schema_text(schema)}")
        made: Document = dict.fromkeys((one.name for one in schema.fields), None)
        for key, value in document.items():
            found = kind(value)
            if found in _LEFT_OUT:
                continue
            fitted = None if found == "NULL" else self._field(key, value, found, lookup or schema)
            if key not in schema:
                raise GroupFailed(f"{key} is not a valid field name")
            _check(schema[key], fitted, f'field: "{key}"')
            made[key] = fitted
        return made

    def _field(self, key: str, value: Any, found: str, lookup: ConnectSchema) -> Any:
        if found in _SCALARS:
            return _scalar(value)
        match found:
            case "REGULAR_EXPRESSION":
                return {"regex": value.pattern, "options": value.options}
            case "JAVASCRIPT_WITH_SCOPE":
                schema = lookup[key]
                return {"code": value.code, "scope": self.of(value.scope, schema["scope"], schema)}
            case "DOCUMENT":
                if key not in lookup:
                    raise GroupFailed(f"Failed to find field '{key}' in schema {lookup.name or 'null'}")
                return self.of(value, lookup[key])
        return self._array(key, value, lookup)

    def _array(self, key: str, values: list[Any], lookup: ConnectSchema) -> Any:
        if self.arrays_as_documents:
            return self.of(elements(values), lookup[key])
        if not values:
            return []
        nested = kind(values[0]) in ("ARRAY", "DOCUMENT")
        schema = lookup[key].value if nested else None
        made: list[Any] = []
        for value in values:
            self._add(made, value, schema)
        return made

    def _add(self, made: list[Any], value: Any, schema: ConnectSchema | None) -> None:
        """An element of an array; nulls are left out."""
        found = kind(value)
        if found in _SCALARS:
            made.append(_scalar(value))
        elif found == "DOCUMENT":
            made.append(self.of(value, schema))
        elif found == "ARRAY":
            assert schema is not None
            inner = schema.value if kind(first(value)) in ("ARRAY", "DOCUMENT") else None
            items: list[Any] = []
            for item in value:
                self._add(items, item, inner)
            made.append(items)


_LEFT_OUT: Final = {"SYMBOL", "MIN_KEY", "MAX_KEY", "UNDEFINED", "DB_POINTER"}


def _scalar(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return DateTime(1000 * value)
    return str(value) if isinstance(value, str) else value


def _check(schema: ConnectSchema, value: Any, location: str) -> None:
    if value is None:
        return  # all fields are optional
    found = _CLASSES[type(value)]
    if found != (_DATE if schema.name == TIMESTAMP else _CLASSES_OF_KINDS[schema.kind]):
        named = "" if schema.name is None else f' "{schema.name}"'
        wanted = f"schema{named} with type {schema.kind}"
        raise GroupFailed(f"Invalid Java object for {wanted}: class {found} for {location}")
    if schema.kind is Kind.ARRAY and schema.value is not None:
        for item in value:
            _check(schema.value, item, f"element of array {location}")
